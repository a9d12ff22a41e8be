import StratusCoding
import StratusModel
import Testing

@testable import StratusRecords

/// Every format of documents, as it is written.
enum DocumentGoldens {
    static let id = DocumentBench.id(0xABC)

    static let item: DocumentItem = {
        var item = DocumentItem(
            id: Self.id, kind: .file, name: "a.txt", folder: "documents",
            editedAtMilliseconds: 1_700_000_000_000, device: "mac")
        item.size = 300
        item.contentTag = 9
        item.conflicts = 1
        item.tag = 300
        return item
    }()

    static let version = DocumentVersion(
        contentTag: 9, size: 300, editedAtMilliseconds: 1_700_000_000_000, device: "mac")

    static let file = DocumentFile(
        asset: AssetID(0x0123_4567_89AB_CDEF << 64 | 0xA1), checksum: "AbCd", size: 300_000)

    static let package = DocumentPackage([
        DocumentPart("in", .folder, tag: 9), DocumentPart("in/a.txt", .inline([1, 2]), tag: 9),
        DocumentPart("in/film", .file(Self.file), tag: 300),
    ])

    static let packageItem: DocumentItem = {
        var item = Self.item
        item.kind = .package
        item.name = "p"
        return item
    }()

    static let property = DocumentProperty(
        .init(namespace: "urn:x", local: "p"), element: Bytes("<p/>".utf8))

    static let lock = DocumentLock(
        token: DocumentBench.id(0xDEF), item: Self.id, isExclusive: true, isInfinite: false,
        owner: [1, 2], untilMilliseconds: 1_700_000_000_000)

    static let publication: DocumentPublication = {
        var publication = DocumentPublication(
            id: DocumentBench.id(8), item: Self.id, secret: DocumentBench.id(9))
        publication.slot = 3
        publication.name = "a.txt"
        publication.contentTag = 9
        publication.size = 300
        publication.untilMilliseconds = 1_700_000_000_000
        return publication
    }()

    /// Those of the golden files.
    private static let rules = DocumentRules(cascadeCountMax: 2_000)

    static let commands: [(name: String, command: RecordCommand)] = [
        (
            "command-modify-documents-1",
            .modifyDocuments(
                ModifyDocuments(
                    database: Bench.privateDatabase, device: "mac",
                    nowMilliseconds: 1_700_000_000_000, drawnIncarnation: ZoneIncarnation(77),
                    rules: Self.rules,
                    operations: [
                        .create(
                            id: Self.id, .file, name: "a", folder: "root", .rename,
                            content: .inline([1]), atMilliseconds: 5),
                        .save(
                            id: Self.id, content: .inline([2, 3]), basedOn: 9, ifUnchanged: true,
                            atMilliseconds: -5),
                        .place(id: Self.id, name: "b", folder: nil, .refuse, tag: 300),
                        .remove(id: Self.id, basedOn: nil),
                        .settle(id: Self.id, current: 9, drop: [1, 300]), .removeData,
                    ]))
        ),
        (
            "command-modify-documents-2",
            .modifyDocuments(
                ModifyDocuments(
                    database: Bench.privateDatabase, device: "webdav",
                    nowMilliseconds: 1_700_000_000_000, drawnIncarnation: ZoneIncarnation(77),
                    rules: Self.rules,
                    operations: [
                        .annotate(
                            id: Self.id,
                            [.set(Self.property), .remove(.init(namespace: "", local: "q"))],
                            countMax: 64, sizeMax: 300),
                        .copy(
                            DocumentCopy(
                                source: Self.id, name: "c", folder: "root",
                                id: DocumentBench.id(7), isDeep: true, countMax: 5, sizeMax: 300),
                            tag: 9),
                        .lock(Self.lock, milliseconds: 60_000, countMax: 256),
                        .refresh(token: Self.lock.token, milliseconds: 1),
                        .unlock(token: Self.lock.token),
                    ], tokens: [Self.lock.token]))
        ),
        (
            "command-modify-documents-3",
            .modifyDocuments(
                ModifyDocuments(
                    database: Bench.privateDatabase, device: "mac",
                    nowMilliseconds: 1_700_000_000_000, drawnIncarnation: ZoneIncarnation(77),
                    rules: Self.rules,
                    operations: [
                        .create(
                            id: Self.id, .file, name: "a", folder: "root", .replace,
                            content: .file(Self.file), atMilliseconds: 5),
                        .save(
                            id: Self.id, content: .file(Self.file), basedOn: nil,
                            ifUnchanged: false, atMilliseconds: -5),
                    ]))
        ),
        (
            "command-modify-documents-4",
            .modifyDocuments(
                ModifyDocuments(
                    database: Bench.privateDatabase, device: "webdav",
                    nowMilliseconds: 1_700_000_000_000, drawnIncarnation: ZoneIncarnation(77),
                    rules: Self.rules,
                    operations: [
                        .separate(id: Self.id, first: DocumentBench.id(7)),
                        .publish(Self.publication, milliseconds: 60_000),
                        .withdraw(id: DocumentBench.id(8)),
                    ]))
        ),
        (
            "command-modify-documents-5",
            .modifyDocuments(
                ModifyDocuments(
                    database: Bench.privateDatabase, device: "mac",
                    nowMilliseconds: 1_700_000_000_000, drawnIncarnation: ZoneIncarnation(77),
                    rules: Self.rules,
                    operations: [
                        .create(
                            id: Self.id, .package, name: "a", folder: "root", .rename,
                            content: .package(Self.package), atMilliseconds: 5),
                        .save(
                            id: Self.id,
                            content: .package(
                                DocumentPackage([
                                    DocumentPart("old", .held(checksum: "AbCd", size: 300_000))
                                ])), basedOn: 9, ifUnchanged: true, atMilliseconds: -5),
                        .edit(
                            id: Self.id,
                            [
                                .put(path: "in/b", .inline([7]), seen: nil),
                                .put(path: "in/a.txt", .file(Self.file), seen: 9),
                                .remove(path: "in", seen: 9),
                                .transfer(from: "x", to: "y", isMove: true),
                            ], countMax: 1_000, sizeMax: 1 << 20),
                        .convert(
                            id: Self.id, .package, first: DocumentBench.id(7), countMax: 1_000,
                            sizeMax: 1 << 20),
                    ]))
        ),
    ]

    static let outcomes: [(name: String, of: RecordCommand.Kind, outcome: RecordOutcome)] = [
        (
            "outcome-documents-1", .modifyDocuments,
            .documents([
                .item(Self.item), .removed(id: Self.id), .dataRemoved(count: 3, hasMore: true),
                .refused(.nameTaken, subject: "x"),
            ])
        ),
        (
            "outcome-documents-2", .modifyDocuments,
            .documents([
                .lock(Self.lock), .unlocked, .refused(.locked, subject: Self.id),
                .refused(.lockNotFound, subject: Self.lock.token),
            ])
        ),
        (
            "outcome-documents-3", .modifyDocuments,
            .documents([.refused(.assetMissing, subject: "")])
        ),
        ("outcome-documents-4", .modifyDocuments, .documents([.published(Self.publication)])),
        (
            "outcome-documents-5", .modifyDocuments,
            .documents([.item(Self.packageItem), .refused(.notAPackage, subject: Self.id)])
        ),
    ]

    static let queries: [RecordQuery.Ask] = [
        .list(folder: "root", after: [1], limit: 7), .lookup([.id(Self.id), .path(["a", "b"])]),
        .changes(
            after: FeedPosition(incarnation: ZoneIncarnation(7), tag: ChangeTag(3)), limit: 5),
        .content(id: Self.id, version: 9), .versions(id: Self.id),
        .properties(ids: [Self.id]), .locks, .chain(["a", "b"]),
        .publications, .published(slot: 3, secret: DocumentBench.id(9)),
    ].map { .documents(DocumentsAsk(database: Bench.privateDatabase, $0)) }

    static let answers: [RecordAnswer] = [
        .list([Self.item], next: [7]), .list(nil, next: nil), .lookup([Self.item, nil]),
        .changes(
            DocumentChangesPage(
                isFromStart: true, changes: [.changed(Self.item), .removed(id: Self.id)],
                position: FeedPosition(incarnation: ZoneIncarnation(7), tag: ChangeTag(3)),
                moreComing: true)), .content(Self.item, Self.version, .inline([1, 2])),
        .content(Self.item, Self.version, .file(Self.file)),
        .content(Self.packageItem, Self.version, .package(Self.package)),
        .content(nil, nil, .inline([])),
        .versions([Self.version]), .versions(nil),
        .properties([[Self.property], []]), .locks([Self.lock]),
        .publications([Self.publication]),
    ].map { RecordAnswer.documents($0) }
}

@Suite struct DocumentGoldenTests {
    @Test func `the list of a package is read as it was written`() throws {
        let golden = try GoldenTests.golden(
            "document-package-1", now: DocumentGoldens.package.encoded())
        let bytes = GoldenTests.hexadecimal(DocumentGoldens.package.encoded())
        #expect(bytes == golden, "now \(bytes)")
        let stored = GoldenTests.bytes(golden)
        let files = DocumentGoldens.package.files
        #expect(try DocumentPackage(decoding: stored, files: files) == DocumentGoldens.package)
        #expect(throws: DecodingError.self) {
            try DocumentPackage(decoding: stored, files: files + files)
        }
        #expect(throws: DecodingError.self) { try DocumentPackage(decoding: stored, files: []) }
        for length in stored.indices {
            #expect(throws: DecodingError.self) {
                try DocumentPackage(decoding: Bytes(stored[..<length]), files: files)
            }
        }
    }
}
