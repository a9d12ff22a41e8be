import StratusCoding
import StratusModel
import StratusRows
import Testing

@testable import StratusRecords

/// Every format of keys, as it is written.
enum KeyGoldens {
    private static let database = Bench.privateDatabase

    static let samples: [TypedGolden] =
        Self.commands + Self.outcomes + Self.queries + Self.answers

    // MARK: Operations

    private static let put = PutKey(Self.database) {
        $0.version = 1
        $0.key = AssetGoldens.key
    }
    private static let rewrap = RewrapKey(Self.database) {
        $0.version = 300
        $0.old = RewrapGoldens.old
        $0.new = RewrapGoldens.new
    }
    private static let retire = RetireKeys(Self.database) { $0.below = 300 }
    private static let item = ResealFields.Item {
        $0.record = "a"
        $0.tag = ChangeTag(300)
        $0.fields = [ResealGoldens.secret(2)]
    }
    private static let reseal = ResealFields(Self.database) {
        $0.zone = "Shelves"
        $0.items = [Self.item]
    }
    private static let resealed = ResealedFields {
        $0.count = 300
        $0.olderKeyCount = 1
    }

    private static let commands = [
        TypedGolden.command("command-put-key-1", Self.put),
        TypedGolden.command("command-rewrap-key-1", Self.rewrap),
        TypedGolden.command("command-retire-keys-1", Self.retire),
        TypedGolden.command("command-reseal-fields-1", Self.reseal),
    ]

    private static let outcomes = [
        TypedGolden.outcome("outcome-key-1", of: PutKey.self, Self.key),
        TypedGolden.outcome("outcome-resealed-1", of: ResealFields.self, Self.resealed),
    ]

    // MARK: Questions

    private static let newestKey = KeyAsk(Self.database) { _ in }
    private static let seventhKey = KeyAsk(Self.database) { $0.version = 7 }
    private static let firstRecords = SealedRecordsAsk(Self.database) {
        $0.zone = "Shelves"
        $0.below = 2
    }
    private static let nextRecords = SealedRecordsAsk(Self.database) {
        $0.zone = "Shelves"
        $0.after = "a"
        $0.below = 300
    }
    private static let firstFiles = OlderFilesAsk(Self.database) { $0.below = 2 }
    private static let nextFiles = OlderFilesAsk(Self.database) {
        $0.after = AssetID(0xA1)
        $0.below = 300
    }
    private static let firstKeys = WrappedKeysAsk {
        $0.container = Bench.container
        $0.check = RewrapGoldens.old.check
    }
    private static let nextKeys = WrappedKeysAsk {
        $0.container = Bench.container
        $0.check = RewrapGoldens.old.check
        $0.after = [0, 0, 0, 1, 0, 0, 0, 2]
    }

    private static let queries = [
        TypedGolden.query("query-key-1", Self.newestKey),
        TypedGolden.query("query-key-2", Self.seventhKey),
        TypedGolden.query("query-sealed-records-1", Self.firstRecords),
        TypedGolden.query("query-sealed-records-2", Self.nextRecords),
        TypedGolden.query("query-older-files-1", Self.firstFiles),
        TypedGolden.query("query-older-files-2", Self.nextFiles),
        TypedGolden.query("query-wrapped-keys-1", Self.firstKeys),
        TypedGolden.query("query-wrapped-keys-2", Self.nextKeys),
    ]

    private static let key = DatabaseKey {
        $0.version = 2
        $0.key = AssetGoldens.key
    }
    private static let destroyedKey = DatabaseKey { $0.version = 2 }
    private static let records = SealedRecords { $0.next = "a" }
    private static let file = OlderFile { $0.asset = AssetID(0xA1) }
    private static let lostFile = OlderFile {
        $0.asset = AssetID(.max)
        $0.isLost = true
    }
    private static let files = OlderFiles {
        $0.files = [Self.file, Self.lostFile]
        $0.next = AssetID(.max)
    }
    private static let oldKey = WrappedKeysPage.Item {
        $0.database = Self.database
        $0.version = 300
        $0.key = RewrapGoldens.old
    }
    private static let newKey = WrappedKeysPage.Item {
        $0.database = Bench.publicDatabase
        $0.key = RewrapGoldens.new
    }
    private static let keys = WrappedKeysPage {
        $0.items = [Self.oldKey, Self.newKey]
        $0.next = [9]
    }

    private static let answers = [
        TypedGolden.answer("answer-key-1", to: KeyAsk.self, nil),
        TypedGolden.answer("answer-key-2", to: KeyAsk.self, Self.key),
        TypedGolden.answer("answer-key-3", to: KeyAsk.self, Self.destroyedKey),
        TypedGolden.answer("answer-sealed-records-1", to: SealedRecordsAsk.self, SealedRecords()),
        TypedGolden.answer("answer-sealed-records-2", to: SealedRecordsAsk.self, Self.records),
        TypedGolden.answer("answer-older-files-1", to: OlderFilesAsk.self, OlderFiles()),
        TypedGolden.answer("answer-older-files-2", to: OlderFilesAsk.self, Self.files),
        TypedGolden.answer("answer-wrapped-keys-1", to: WrappedKeysAsk.self, WrappedKeysPage()),
        TypedGolden.answer("answer-wrapped-keys-2", to: WrappedKeysAsk.self, Self.keys),
    ]
}
