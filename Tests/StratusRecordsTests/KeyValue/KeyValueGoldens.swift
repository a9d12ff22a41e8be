import StratusCoding
import StratusModel
import StratusRows
import Testing

@testable import StratusRecords

/// Every format of the key-value store, as it is written.
enum KeyValueGoldens {
    static let value = PropertyListValue.dictionary([
        .init(key: "a", value: .array([.integer(-7), .real(1.5), .boolean(true)])),
        .init(key: "b", value: .data([1, 2])), .init(key: "c", value: .date(1_700_000_000_000)),
    ])

    static let samples = Self.operations + Self.questions

    private static let modify = ModifyKeyValues(Bench.privateDatabase) {
        $0.device = "phone-1"
        $0.batch = 300
        $0.nowMilliseconds = 1_700_000_060_000
        $0.isFirst = true
        $0.drawnIncarnation = ZoneIncarnation(0x0123_4567_89AB_CDEF)
        $0.changes = [
            .change("theme", 1_700_000_000_000, Self.value.encoded()), .change("söga", -5, nil),
        ]
    }

    private static let modified = ModifiedKeyValues {
        $0.results = [.taken, .superseded, .refused(.storeFull)]
        $0.refused = [Self.refused(.storeFull)]
    }

    private static func refused(_ reason: KeyValueRefusal) -> ModifiedKeyValues.Refused {
        ModifiedKeyValues.Refused {
            $0.key = "theme"
            $0.reason = reason
        }
    }

    private static let operations = [
        TypedGolden.command("command-modify-key-values-1", Self.modify),
        TypedGolden.outcome("outcome-key-values-1", of: ModifyKeyValues.self, Self.modified),
    ]

    static let asks = [
        KeyValuesAsk(Bench.privateDatabase) {
            $0.after = FeedPosition(
                incarnation: ZoneIncarnation(7), tag: ChangeTag(3), floor: ChangeTag(9))
            $0.keys = ["theme"]
        },
        KeyValuesAsk(Bench.privateDatabase) { _ in },
    ]

    private static let page = KeyValuesPage {
        $0.isFromStart = true
        $0.entries = [
            KeyValuesPage.Entry {
                $0.key = "theme"
                $0.value = Self.value.encoded()
                $0.device = "phone-1"
                $0.batch = 3
            },
            KeyValuesPage.Entry { $0.key = "gone" },
        ]
        $0.position = FeedPosition(incarnation: ZoneIncarnation(7), tag: ChangeTag(3))
        $0.moreComing = true
        $0.use = Self.use
    }

    private static let devices = KeyValueDevices {
        $0.devices = [
            KeyValueDevice {
                $0.device = "phone-1"
                $0.lastBatch = 300
                $0.lastSeenMilliseconds = 1_700_000_000_000
            }
        ]
        $0.hasMore = true
    }

    private static let questions = [
        TypedGolden.query("query-key-values-1", Self.asks[0]),
        TypedGolden.query("query-key-values-2", Self.asks[1]),
        TypedGolden.query(
            "query-key-value-devices-1", KeyValueDevicesAsk(Bench.privateDatabase) { _ in }),
        TypedGolden.answer("answer-key-values-1", to: KeyValuesAsk.self, Self.page),
        TypedGolden.answer("answer-key-value-devices-1", to: KeyValueDevicesAsk.self, Self.devices),
    ]

    static let use: KeyValueUse = {
        var use = KeyValueUse()
        use.keyCount = 300
        use.size = 70_000
        use.removedCount = 1
        use.deviceCount = 2
        return use
    }()

    static let device = KeyValueDeviceRow(
        lastBatch: 300, lastSeenMilliseconds: 1_700_000_000_000,
        refused: [Self.refused(.valueTooLarge)])
}

@Suite struct KeyValueGoldenTests {
    @Test func `the rows read and write as ever`() throws {
        let rows = KeyValueGoldens.use.encoded() + KeyValueGoldens.device.encoded()
        #expect(
            GoldenTests.hexadecimal(rows)
                == (try GoldenTests.golden("rows-key-values-1", now: rows)))
        #expect(
            try KeyValueUse(decoding: KeyValueGoldens.use.encoded()) == KeyValueGoldens.use)
        #expect(
            try KeyValueDeviceRow(decoding: KeyValueGoldens.device.encoded())
                == KeyValueGoldens.device)
    }

    @Test func `a record is named by the bytes of its key`() {
        #expect(KeyValueKeys.recordName("aé") == "k61c3a9")
        #expect(KeyValueKeys.key(ofRecord: "k61c3a9") == "aé")
        for name in ["", "k6", "x61", "k6G", "kff"] {
            #expect(KeyValueKeys.key(ofRecord: name) == nil, "\(name)")
        }
    }
}
