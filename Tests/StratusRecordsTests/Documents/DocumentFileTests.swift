import StratusModel
import StratusRows
import Testing

@testable import StratusRecords

/// Contents that are uploaded files: which records hold them, and when they go.
@Suite struct DocumentFileTests {
    private var own = DocumentBench()

    init() throws {
        try self.own.bench.putKeys()
    }

    private mutating func upload(_ number: UInt128, size: UInt64 = 5_000) throws
        -> DocumentContent
    {
        .file(try self.own.upload(number, size: size))
    }

    private func row(_ content: DocumentContent) throws -> AssetRow? {
        guard case .file(let file) = content else { return nil }
        return try AssetRows.asset(file.asset, over: self.own.bench.rows.view)
    }

    private mutating func create(
        _ number: Int, _ name: String, in folder: String = "root", _ content: DocumentContent
    ) throws -> DocumentItem {
        try self.own.item(
            .create(
                id: DocumentBench.id(number), .file, name: name, folder: folder, .refuse,
                content: content, atMilliseconds: self.own.milliseconds))
    }

    private mutating func save(
        _ item: DocumentItem, _ content: DocumentContent, basedOn: UInt64?
    ) throws -> DocumentItem {
        try self.own.item(
            .save(
                id: item.id, content: content, basedOn: basedOn, ifUnchanged: false,
                atMilliseconds: self.own.milliseconds))
    }

    private func stored(_ id: String, _ version: UInt64? = nil) throws -> DocumentContent? {
        guard
            case .content(let item, _, let content) = try self.own.ask(
                .content(id: id, version: version))
        else { throw BenchError("no content") }
        return item == nil ? nil : content
    }

    @Test mutating func `a file is held from its save to the content that takes its place`() throws
    {
        let first = try self.upload(1)
        #expect(try self.row(first)?.isHeld == false)
        let item = try self.create(1, "film", first)
        #expect(item.size == 5_000 && item.contentTag != 0)
        #expect(try self.row(first)?.isHeld == true)
        #expect(try self.stored(item.id) == first)
        let second = try self.upload(2, size: 7_000)
        let saved = try self.save(item, second, basedOn: item.contentTag)
        #expect(saved.size == 7_000)
        #expect(try self.row(first)?.condemnedUntil != nil)
        #expect(try self.row(second)?.isHeld == true)
        let small = try self.save(saved, .inline([1, 2]), basedOn: saved.contentTag)
        #expect(small.size == 2)
        #expect(try self.row(second)?.condemnedUntil != nil)
        // The grace is over.
        self.own.milliseconds += 2 * 3_600_000
        try self.own.bench.finishJobs()
        #expect(try self.row(first) == nil)
        #expect(try self.row(second) == nil)
    }

    @Test mutating func `versions hold their files until they are settled`() throws {
        let (one, two, three) = (try self.upload(1), try self.upload(2), try self.upload(3))
        let item = try self.create(1, "film", one)
        let now = try self.save(item, two, basedOn: item.contentTag)
        let conflict = try self.save(now, three, basedOn: item.contentTag)
        #expect(conflict.conflicts == 1)
        #expect(try self.row(two)?.isHeld == true)
        #expect(try self.row(three)?.isHeld == true)
        #expect(try self.stored(item.id, now.contentTag) == two)
        _ = try self.own.item(
            .settle(id: item.id, current: now.contentTag, drop: [conflict.contentTag]))
        #expect(try self.row(two)?.isHeld == true)
        #expect(try self.row(three)?.condemnedUntil != nil)
        #expect(try self.own.item(item.id)?.size == 5_000)
    }

    @Test mutating func `a content that is saved twice is one content`() throws {
        for content in [try self.upload(1), .inline([1, 2])] {
            let number = content.inlineSize + 1
            let item = try self.create(number, "f\(number)", content)
            let again = try self.save(item, content, basedOn: nil)
            #expect(again.conflicts == 0 && again.contentTag != item.contentTag)
            #expect(try self.stored(item.id) == content)
        }
    }

    /// Without a secret of the database equal files have assets of their own.
    @Test mutating func `equal files are one content, and an older edit moves nothing back`() throws
    {
        let first = try self.own.upload(1)
        let second = try self.own.upload(2, checksum: first.checksum)
        let pairs: [(DocumentContent, DocumentContent)] = [
            (.file(first), .file(second)), (.inline([1, 2]), .inline([1, 2])),
        ]
        for (number, pair) in pairs.enumerated() {
            let item = try self.create(10 + number, "g\(number)", pair.0)
            let older = try self.own.item(
                .save(
                    id: item.id, content: pair.1, basedOn: nil, ifUnchanged: false,
                    atMilliseconds: self.own.milliseconds - 60_000), device: "phone")
            #expect(older == item)
            let later = try self.own.item(
                .save(
                    id: item.id, content: pair.1, basedOn: nil, ifUnchanged: false,
                    atMilliseconds: self.own.milliseconds), device: "phone")
            #expect(later.conflicts == 0 && later.device == "phone")
            #expect(later.editedAtMilliseconds > item.editedAtMilliseconds)
        }
    }

    @Test mutating func `contents that wait become files, and nothing of them is lost`() throws {
        let film = try self.upload(1)
        let item = try self.create(1, "film.mp4", film)
        let now = try self.save(item, .inline([2]), basedOn: item.contentTag)
        _ = try self.save(now, .inline([3]), basedOn: item.contentTag)
        let last = try self.save(now, try self.upload(2), basedOn: item.contentTag)
        #expect(last.conflicts == 2)
        let results = try self.own.run(
            .separate(id: item.id, first: DocumentBench.id(50)),
            .remove(id: item.id, basedOn: last.contentTag))
        #expect(results.last == .removed(id: item.id))
        let left = try #require(try self.own.list("root")).filter { $0.kind == .file }
        #expect(left.map(\.name) == ["film 2.mp4", "film 3.mp4"])
        #expect(try left.map { try self.stored($0.id) } == [.inline([2]), .inline([3])])
        #expect(left.allSatisfy { $0.conflicts == 0 && $0.size == 1 })
        #expect(
            try self.own.refusal(.separate(id: item.id, first: DocumentBench.id(60))) == .notFound)
        // Without such contents nothing happens.
        #expect(
            try self.own.item(.separate(id: left[0].id, first: DocumentBench.id(60))) == left[0])
    }

    @Test mutating func `a content may take the place of another at a full quota`() throws {
        let small = try self.create(1, "small", .inline(Bytes(repeating: 1, count: 3_000)))
        let film = try self.create(2, "film", try self.upload(1, size: 90_000))
        let next = try self.upload(2, size: 90_000)
        self.own.rules.databaseSizeMax = 10_000
        #expect(
            try self.own.refusal(self.own.create(3, "more", [1])) == .databaseFull)
        #expect(
            try self.own.refusal(
                self.own.save(
                    small.id, Bytes(repeating: 2, count: 3_000), basedOn: small.contentTag)) == nil)
        #expect(
            try self.own.refusal(
                .save(
                    id: film.id, content: next, basedOn: film.contentTag, ifUnchanged: true,
                    atMilliseconds: 0)) == nil)
    }

    @Test mutating func `a short pin takes nothing from the grace of a file`() throws {
        let hour: Int64 = 3_600_000
        // One that comes before the holder goes, and one that comes after it.
        for (round, comesBefore) in [true, false].enumerated() {
            let first = UInt128(10 * round + 1)
            func pin(_ number: UInt128, _ now: Int64) -> PinAsset {
                var pin = AssetGoldens.pin(
                    number, body: number + 1_000_000, upload: number,
                    digest: UInt128(round + 9), size: 300)
                pin.stored.orphanAfterMilliseconds = now + hour
                pin.rules.pinMilliseconds = 600_000
                pin.rules.graceMilliseconds = hour
                return pin
            }
            let pinned = try self.own.bench.apply(pin(first, self.own.milliseconds)).get()
            let content = DocumentContent.file(
                DocumentFile(asset: pinned.asset, checksum: pinned.fileChecksum, size: 300))
            let item = try self.create(round + 1, "film", content)
            if comesBefore {
                _ = try self.own.bench.apply(pin(first + 1, self.own.milliseconds))
            }
            try self.own.run(.remove(id: item.id, basedOn: nil))
            if !comesBefore {
                _ = try self.own.bench.apply(pin(first + 1, self.own.milliseconds))
            }
            self.own.milliseconds += hour - 60_000
            try self.own.bench.finishJobs()
            #expect(try self.row(content) != nil)
            self.own.milliseconds += 120_000
            try self.own.bench.finishJobs()
            #expect(try self.row(content) == nil)
        }
    }

    @Test mutating func `a copy shares the file, and a move does not touch it`() throws {
        let film = try self.upload(1, size: 600_000)
        let folder = try self.own.folder(9, "folder")
        let item = try self.create(1, "film", in: folder, film)
        let copy = try self.own.item(
            .copy(
                DocumentCopy(
                    source: folder, name: "copy", folder: "root", id: DocumentBench.id(100),
                    isDeep: true, sizeMax: 10), tag: nil))
        let held = try #require(try self.row(film))
        _ = try self.own.item(
            .place(id: item.id, name: "other", folder: "documents", .refuse, tag: nil))
        #expect(try self.row(film) == held)
        try self.own.run(.remove(id: item.id, basedOn: nil))
        #expect(try self.row(film)?.isHeld == true)
        #expect(try self.stored(DocumentBench.id(101)) == film)
        try self.own.run(.remove(id: copy.id, basedOn: nil))
        #expect(try self.row(film)?.condemnedUntil != nil)
    }

    @Test mutating func `what no receipt was for is refused, and changes nothing`() throws {
        let film = try self.upload(1)
        let item = try self.create(1, "film", film)
        guard case .file(let known) = film else { return }
        var other = known
        other.size += 1
        var renamed = known
        renamed.checksum = "other"
        var missing = known
        missing.asset = AssetID(77)
        for file in [other, renamed, missing] {
            #expect(
                try self.own.refusal(
                    .save(
                        id: item.id, content: .file(file), basedOn: nil, ifUnchanged: false,
                        atMilliseconds: 0)) == .assetMissing)
            #expect(
                try self.own.refusal(
                    .create(
                        id: DocumentBench.id(2), .file, name: "x", folder: "root", .refuse,
                        content: .file(file), atMilliseconds: 0)) == .assetMissing)
        }
        #expect(try self.own.item(item.id) == item)
        // A pin that is over takes its file with it.
        let late = try self.upload(2)
        self.own.milliseconds += 25 * 3_600_000
        try self.own.bench.finishJobs()
        #expect(
            try self.own.refusal(
                .save(
                    id: item.id, content: late, basedOn: item.contentTag, ifUnchanged: false,
                    atMilliseconds: 0)) == .assetMissing)
        #expect(try self.row(film)?.isHeld == true)
    }

    /// A file that goes has no bytes in records, so nothing became free for the new content.
    @Test mutating func `a content in a record that replaces a file needs room`() throws {
        let item = try self.create(1, "film", try self.upload(1, size: 90_000))
        self.own.rules.databaseSizeMax = 100_000
        #expect(
            try self.own.refusal(
                self.own.save(
                    item.id, Bytes(repeating: 1, count: 20_000), basedOn: item.contentTag))
                == .databaseFull)
        // A file was counted when it was uploaded.
        let same = try self.own.upload(2, size: 5_000)
        #expect(
            try self.own.refusal(
                .save(
                    id: item.id, content: .file(same), basedOn: item.contentTag,
                    ifUnchanged: true, atMilliseconds: 0)) == nil)
    }

    @Test mutating func `a chain of items is found with one question`() throws {
        let folder = try self.own.folder(1, "Folder", in: "documents")
        _ = try self.own.file(2, "f", in: folder)
        func chain(_ names: String...) throws -> [String?] {
            guard case .lookup(let found) = try self.own.ask(.chain(names)) else {
                throw BenchError("no look-up")
            }
            return found.map { $0?.id }
        }
        let ids = [DocumentBench.id(1), DocumentBench.id(2)]
        #expect(try chain() == ["root"])
        #expect(
            try chain("documents", "FOLDER", "f") == ["root", "documents", ids[0], ids[1]])
        #expect(
            try chain("Documents", "none", "Folder") == ["root", "documents", nil, nil])
        #expect(try chain("Documents", "Folder", "f", "x").last == .some(nil))
        #expect(
            try chain("f", "Documents") == ["root", nil, nil])
    }
}
