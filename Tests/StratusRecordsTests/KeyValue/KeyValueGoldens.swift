import StratusCoding
import StratusModel
import Testing

@testable import StratusRecords

/// Every format of the key-value store, as it is written.
enum KeyValueGoldens {
    static let value = PropertyListValue.dictionary([
        .init(key: "a", value: .array([.integer(-7), .real(1.5), .boolean(true)])),
        .init(key: "b", value: .data([1, 2])), .init(key: "c", value: .date(1_700_000_000_000)),
    ])

    static let modify = ModifyKeyValues(
        database: Bench.privateDatabase, device: "phone-1", batch: 300,
        nowMilliseconds: 1_700_000_060_000, isFirst: true,
        drawnIncarnation: ZoneIncarnation(0x0123_4567_89AB_CDEF),
        changes: [
            .init(key: "theme", atMilliseconds: 1_700_000_000_000, value: Self.value.encoded()),
            .init(key: "söga", atMilliseconds: -5, value: nil),
        ])

    static let commands: [(name: String, command: RecordCommand)] = [
        ("command-modify-key-values-1", .modifyKeyValues(Self.modify))
    ]

    static let outcomes: [(name: String, of: RecordCommand.Kind, outcome: RecordOutcome)] = [
        (
            "outcome-key-values-1", .modifyKeyValues,
            .keyValues(
                ModifiedKeyValues(
                    isRepeat: false,
                    results: [.taken, .superseded, .refused(.storeFull)],
                    refused: [.init(key: "theme", reason: .storeFull)]))
        )
    ]

    static let queries: [RecordQuery.Ask] = [
        .keyValues(
            KeyValuesAsk(
                database: Bench.privateDatabase,
                after: FeedPosition(
                    incarnation: ZoneIncarnation(7), tag: ChangeTag(3), floor: ChangeTag(9)),
                keys: ["theme"])),
        .keyValues(KeyValuesAsk(database: Bench.privateDatabase)),
        .keyValueDevices(Bench.privateDatabase),
    ]

    static let answers: [RecordAnswer] = [
        .keyValues(
            KeyValuesPage(
                isFromStart: true,
                entries: [
                    .init(key: "theme", value: Self.value.encoded(), device: "phone-1", batch: 3),
                    .init(key: "gone", value: nil, device: "", batch: 0),
                ],
                position: FeedPosition(incarnation: ZoneIncarnation(7), tag: ChangeTag(3)),
                moreComing: true, use: Self.use)),
        .keyValueDevices([
            KeyValueDevice(
                device: "phone-1", lastBatch: 300, lastSeenMilliseconds: 1_700_000_000_000)
        ]),
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
        refused: [.init(key: "theme", reason: .valueTooLarge)])
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
