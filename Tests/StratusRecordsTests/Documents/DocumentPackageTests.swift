import StratusModel
import StratusRows
import Testing

@testable import StratusRecords

/// Packages: saved, moved, in conflict and removed as one item.
@Suite struct DocumentPackageTests {
    private var own = DocumentBench()
    private let id = DocumentBench.id(1)

    init() throws {
        try self.own.bench.putKeys()
    }

    private func parts(_ parts: [(String, DocumentPart.Content)]) -> DocumentContent {
        .package(DocumentPackage(parts.map { DocumentPart($0.0, $0.1) }))
    }

    private mutating func create(
        _ parts: [(String, DocumentPart.Content)]
    ) throws -> DocumentItem {
        try self.own.item(
            .create(
                id: self.id, .package, name: "p", folder: "documents", .refuse,
                content: self.parts(parts), atMilliseconds: self.own.milliseconds))
    }

    private func save(
        _ parts: [(String, DocumentPart.Content)], basedOn: UInt64?, ifUnchanged: Bool = false
    ) -> DocumentOperation {
        .save(
            id: self.id, content: self.parts(parts), basedOn: basedOn, ifUnchanged: ifUnchanged,
            atMilliseconds: self.own.milliseconds)
    }

    private func edit(_ edits: DocumentPackageEdit...) -> DocumentOperation {
        .edit(id: self.id, edits, countMax: 1_000, sizeMax: 1 << 20)
    }

    private func stored(_ version: UInt64? = nil) throws -> DocumentPackage? {
        guard
            case .content(_, _, let content) = try self.own.ask(
                .content(id: self.id, version: version)), case .package(let package) = content
        else { return nil }
        return package
    }

    private func paths(_ version: UInt64? = nil) throws -> [String]? {
        try self.stored(version)?.parts.map(\.path)
    }

    private func row(_ file: DocumentFile) throws -> AssetRow? {
        try AssetRows.asset(file.asset, over: self.own.bench.rows.view)
    }

    @Test mutating func `a package is one item with its files in order`() throws {
        let file = try self.own.upload(1)
        let item = try self.create([
            ("b/film", .file(file)), ("a.txt", .inline([1, 2])), ("B/c.txt", .inline([3])),
        ])
        #expect(item.kind == .package && item.size == 303)
        #expect(try self.paths() == ["a.txt", "b", "B/c.txt", "b/film"])
        #expect(try self.row(file)?.isHeld == true)
        #expect(try self.own.list("documents")?.map(\.name) == ["p"])
        #expect(try self.own.list(self.id) == nil)
        #expect(try self.own.changes().changes == [.changed(item)])
        // Nothing of it is an item.
        #expect(try self.own.refusal(self.own.create(2, "x", in: self.id)) == .folderNotFound)
    }

    @Test mutating func `a save names again what is there, and keeps its tags`() throws {
        let file = try self.own.upload(1)
        let first = try self.create([("film", .file(file)), ("a", .inline([1]))])
        let held = DocumentPart.Content.held(checksum: file.checksum, size: file.size)
        let second = try self.own.item(
            self.save(
                [("film", held), ("a", .inline([2])), ("new/film", held)],
                basedOn: first.contentTag))
        #expect(second.conflicts == 0)
        let stored = try #require(try self.stored())
        #expect(stored.part("film")?.content == .file(file))
        #expect(stored.part("film")?.tag == first.contentTag)
        #expect(stored.part("a")?.tag == second.contentTag)
        #expect(stored.part("NEW/Film")?.tag == second.contentTag)
        let other = DocumentPart.Content.held(checksum: "other", size: 1)
        #expect(
            try self.own.refusal(self.save([("x", other)], basedOn: second.contentTag))
                == .assetMissing)
        #expect(
            try self.own.refusal(
                .save(
                    id: self.id, content: .inline([1]), basedOn: nil, ifUnchanged: false,
                    atMilliseconds: 0)) == .notAFile)
        let plain = try self.own.file(9, "plain")
        #expect(
            try self.own.refusal(
                .save(
                    id: plain.id, content: self.parts([]), basedOn: nil, ifUnchanged: false,
                    atMilliseconds: 0)) == .notAPackage)
    }

    @Test mutating func `of two saves both are kept whole until they are settled`() throws {
        let (one, two) = (try self.own.upload(1), try self.own.upload(2))
        let first = try self.create([("film", .file(one)), ("a", .inline([1]))])
        let mac = try self.own.item(
            self.save([("film", .file(one)), ("mac", .inline([2]))], basedOn: first.contentTag))
        let phone = try self.own.item(
            self.save([("film", .file(two))], basedOn: first.contentTag), device: "phone")
        #expect(phone.conflicts == 1)
        #expect(Set(try self.own.versions(self.id) ?? []) == [mac.contentTag, phone.contentTag])
        #expect(try self.paths(mac.contentTag) == ["film", "mac"])
        #expect(
            try self.own.refusal(.remove(id: self.id, basedOn: phone.contentTag)) == .versionsWait)
        #expect(try self.row(one)?.isHeld == true)
        _ = try self.own.item(
            .settle(id: self.id, current: phone.contentTag, drop: [mac.contentTag]))
        #expect(try self.row(one)?.isHeld == false)
        #expect(try self.row(two)?.isHeld == true)
        let separate = try self.own.item(
            self.save([("again", .inline([9]))], basedOn: first.contentTag))
        #expect(separate.conflicts == 1)
        _ = try self.own.item(.separate(id: self.id, first: DocumentBench.id(0x50)))
        #expect(try self.own.item(DocumentBench.id(0x50))?.kind == .package)
        #expect(try self.own.item(DocumentBench.id(0x50))?.name == "p 2")
        try self.own.run(.remove(id: self.id, basedOn: nil))
        try self.own.run(.remove(id: DocumentBench.id(0x50), basedOn: nil))
        #expect(try self.row(two)?.isHeld == false)
    }

    @Test mutating func `one change within it leaves the rest, and refuses what was not seen`()
        throws
    {
        let file = try self.own.upload(1)
        let first = try self.create([("in/film", .file(file)), ("a", .inline([1]))])
        let second = try self.own.item(
            self.edit(.put(path: "a", .inline([2]), seen: first.contentTag)))
        #expect(second.conflicts == 0 && second.contentTag == second.tag)
        #expect(try self.stored()?.part("in/film")?.tag == first.contentTag)
        #expect(
            try self.own.refusal(
                self.edit(.put(path: "a", .inline([3]), seen: first.contentTag))) == .stale)
        #expect(try self.own.refusal(self.edit(.put(path: "a", .folder, seen: nil))) == .nameTaken)
        #expect(
            try self.own.refusal(self.edit(.put(path: "no/b", .inline([]), seen: nil)))
                == .folderNotFound)
        #expect(try self.own.refusal(self.edit(.remove(path: "no", seen: nil))) == .notFound)
        #expect(
            try self.own.refusal(self.edit(.transfer(from: "in", to: "in/x", isMove: true)))
                == .nameInvalid)
        #expect(
            try self.own.refusal(self.edit(.transfer(from: "a", to: "in", isMove: true)))
                == .nameTaken)
        let moved = try self.own.item(
            self.edit(
                .put(path: "e", .folder, seen: nil),
                .transfer(from: "in", to: "e/out", isMove: true),
                .transfer(from: "a", to: "A", isMove: true)))
        #expect(try self.paths() == ["A", "e", "e/out", "e/out/film"])
        // Another content may have been at the path under the old tag.
        #expect(try self.stored()?.part("e/out/film")?.tag == moved.contentTag)
        _ = try self.own.item(self.edit(.remove(path: "e/out", seen: nil)))
        #expect(try self.paths() == ["A", "e"])
        #expect(try self.row(file)?.isHeld == false)
    }

    @Test(arguments: [
        ("", DocumentRefusal.nameInvalid), ("/a", .nameInvalid), ("a//b", .nameInvalid),
        ("a/../b", .nameInvalid), ("a/", .nameInvalid), ("x.nosync/a", .staysLocal),
        (String(repeating: "a/", count: 70) + "a", .nameInvalid), ("B", .nameTaken),
        ("b/c", .nameTaken),
    ])
    mutating func `paths that no device can hold are refused`(
        path: String, refusal: DocumentRefusal
    ) throws {
        #expect(
            try self.own.refusal(
                .create(
                    id: self.id, .package, name: "p", folder: "root", .refuse,
                    content: self.parts([("b", .inline([1])), (path, .inline([2]))]),
                    atMilliseconds: 0)) == refusal)
    }

    @Test mutating func `a package has bounds, which travel in the command`() throws {
        let many = (0..<1_001).map { (String($0), DocumentPart.Content.folder) }
        func create(_ content: DocumentContent) -> DocumentOperation {
            .create(
                id: self.id, .package, name: "p", folder: "root", .refuse, content: content,
                atMilliseconds: 0)
        }
        #expect(try self.own.refusal(create(self.parts(many))) == .tooManyItems)
        let large = Bytes(repeating: 7, count: 1 << 20)
        #expect(
            try self.own.refusal(create(self.parts([("a", .inline(large))]))) == .contentTooLarge)
        // Folders that are only implied count too.
        let deep = DocumentPackage([DocumentPart("a/b/c", .inline([]))], countMax: 2)
        #expect(try self.own.refusal(create(.package(deep))) == .tooManyItems)
        let small = DocumentPackage([DocumentPart("abc", .inline([]))], sizeMax: 7)
        #expect(try self.own.refusal(create(.package(small))) == .contentTooLarge)
        #expect(try self.own.item(create(self.parts(Array(many.prefix(1_000))))).size == 0)
    }

    @Test mutating func `a package of many files goes with all of its versions`() throws {
        var files: [DocumentFile] = []
        for number in 1...900 { files.append(try self.own.upload(UInt128(number))) }
        let parts = files.enumerated().map {
            ("f\($0.offset)", DocumentPart.Content.file($0.element))
        }
        _ = try self.create(parts)
        for number in 0..<2 {
            _ = try self.own.item(
                self.save(parts + [("v\(number)", .inline([]))], basedOn: 99_999))
        }
        #expect(try self.own.item(self.id)?.conflicts == 2)
        let tags = try #require(try self.own.versions(self.id))
        // One entry changes a bounded number of holders.
        #expect(
            try self.own.refusal(
                .settle(id: self.id, current: nil, drop: Array(tags.dropFirst()))) == nil)
        for number in 2..<5 {
            _ = try self.own.item(
                self.save(parts + [("v\(number)", .inline([]))], basedOn: 99_999))
        }
        let more = try #require(try self.own.versions(self.id))
        #expect(
            try self.own.refusal(
                .settle(id: self.id, current: nil, drop: Array(more.dropFirst()))) == .tooManyItems)
        try self.own.run(.remove(id: self.id, basedOn: nil))
        #expect(try self.own.item(self.id) == nil)
        try self.own.bench.finishJobs()
        for file in files { #expect(try self.row(file)?.isHeld ?? false == false) }
    }

    @Test mutating func `a folder becomes a package and a folder again`() throws {
        let file = try self.own.upload(1)
        let folder = try self.own.folder(1, "p", in: "documents")
        let inner = try self.own.folder(2, "in", in: folder)
        _ = try self.own.file(3, "a.txt", in: folder, [1, 2])
        _ = try self.own.item(
            .create(
                id: DocumentBench.id(4), .file, name: "film", folder: inner, .refuse,
                content: .file(file), atMilliseconds: 0))
        func convert(_ kind: DocumentItem.Kind) -> DocumentOperation {
            .convert(
                id: folder, kind, first: DocumentBench.id(0x100), countMax: 1_000,
                sizeMax: 1 << 20)
        }
        let package = try self.own.item(convert(.package))
        #expect(package.kind == .package && package.size == 302 && package.id == folder)
        #expect(try self.paths() == ["a.txt", "in", "in/film"])
        #expect(try self.own.item(inner) == nil)
        #expect(try self.row(file)?.isHeld == true)
        #expect(try self.own.item(convert(.package)) == package)
        let back = try self.own.item(convert(.folder))
        #expect(back.kind == .folder && back.id == folder && back.contentTag == 0)
        #expect(try self.own.list(folder)?.map(\.name) == ["a.txt", "in"])
        #expect(try self.own.lookup("Documents/p/in/film")?.size == 300)
        #expect(try self.own.content(DocumentBench.id(0x100)) == [1, 2])
        #expect(try self.row(file)?.isHeld == true)
        try self.own.bench.finishJobs()
        #expect(try self.own.list(folder)?.count == 2)
        // A file that waits for its content, and one in conflict, would lose something.
        _ = try self.own.file(7, "later", in: folder, nil)
        #expect(try self.own.refusal(convert(.package)) == .versionNotFound)
        try self.own.run(.remove(id: DocumentBench.id(7), basedOn: nil))
        _ = try self.own.item(
            self.own.save(DocumentBench.id(0x100), [5], basedOn: 99_999))
        #expect(try self.own.refusal(convert(.package)) == .tooManyVersions)
        #expect(
            try self.own.refusal(
                .convert(
                    id: DocumentBench.id(0x100), .package, first: self.id, countMax: 9,
                    sizeMax: 9)) == .notAFile)
    }

    @Test mutating func `a package is copied, and its copy goes its own way`() throws {
        let file = try self.own.upload(1)
        let item = try self.create([("film", .file(file))])
        let copy = try self.own.item(
            .copy(
                DocumentCopy(
                    source: item.id, name: "q", folder: "documents", id: DocumentBench.id(0x70),
                    isDeep: true), tag: nil))
        #expect(copy.kind == .package && copy.size == 300)
        _ = try self.own.item(self.edit(.remove(path: "film", seen: nil)))
        #expect(try self.row(file)?.isHeld == true)
        try self.own.run(.remove(id: copy.id, basedOn: nil))
        #expect(try self.row(file)?.isHeld == false)
    }
}
