import StratusModel
import StratusRows
import Testing

@testable import StratusRecords

/// Documents, rule by rule.
@Suite struct DocumentTests {
    var own = DocumentBench()

    @Test mutating func `a container begins with nothing but Documents`() throws {
        #expect(try self.own.list("root")?.map(\.name) == ["Documents"])
        #expect(try self.own.list("documents")?.isEmpty == true)
        #expect(try self.own.lookup("/dOCUMENTS")?.id == "documents")
        #expect(try self.own.lookup("")?.id == "root")
        #expect(try self.own.changes().changes.isEmpty)
        #expect(try self.own.refusal(self.own.create(1, "documents")) == .nameTaken)
        for operation in [
            DocumentOperation.remove(id: "root", basedOn: nil),
            .place(id: "documents", name: "X", folder: nil, .refuse, tag: nil),
        ] {
            #expect(try self.own.refusal(operation) == .isRoot)
        }
    }

    @Test mutating func `names are kept as given, and judged without case`() throws {
        try self.own.file(1, "Läufer.txt")
        #expect(try self.own.lookup("läufer.TXT")?.name == "Läufer.txt")
        #expect(try self.own.refusal(self.own.create(2, "LÄUFER.txt")) == .nameTaken)
        #expect(try self.own.file(2, "LÄUFER.txt", [2], .rename).name == "LÄUFER 2.txt")
        #expect(try self.own.file(3, "läufer.txt", [3], .rename).name == "läufer 3.txt")
        #expect(try self.own.file(4, "läufer.txt", [4], .replace).id == DocumentBench.id(1))
        #expect(try self.own.content(DocumentBench.id(1)) == [4])
        // One's own name in another case is no clash.
        let renamed = try self.own.item(
            .place(id: DocumentBench.id(1), name: "LÄUFER.TXT", folder: nil, .refuse, tag: nil))
        #expect(renamed.name == "LÄUFER.TXT")
        for name in ["", ".", "..", "a/b", "a\u{0}", "a\u{7F}", String(repeating: "x", count: 256)]
        {
            #expect(try self.own.refusal(self.own.create(9, name)) == .nameInvalid, "\(name)")
        }
        #expect(try self.own.refusal(self.own.create(9, "cache.NoSync")) == .staysLocal)
        for id in ["", "root", "x", DocumentBench.id(1)] {
            #expect(
                try self.own.refusal(
                    .create(
                        id: id, .file, name: "n", folder: "root", .refuse, content: nil,
                        atMilliseconds: 0)) == .idInvalid, "\(id)")
        }
    }

    @Test mutating func `one change of a folder moves all below it`() throws {
        let a = try self.own.folder(1, "a")
        let b = try self.own.folder(2, "b", in: a)
        try self.own.file(3, "f", in: b)
        let position = try self.own.changes().position
        try self.own.item(.place(id: a, name: "z", folder: "documents", .refuse, tag: nil))
        #expect(try self.own.lookup("Documents/z/b/f")?.id == DocumentBench.id(3))
        #expect(try self.own.lookup("a") == nil)
        let page = try self.own.changes(position)
        #expect(page.changes.count == 1)
        #expect(
            try self.own.refusal(.place(id: a, name: nil, folder: b, .refuse, tag: nil)) == .circle)
        #expect(
            try self.own.refusal(.place(id: a, name: nil, folder: a, .refuse, tag: nil)) == .circle)
        #expect(
            try self.own.refusal(.place(id: b, name: nil, folder: nil, .refuse, tag: 1)) == .stale)
    }

    @Test mutating func `two items exchange their names in one request`() throws {
        let a = try self.own.file(1, "a").id
        let b = try self.own.file(2, "b").id
        let results = try self.own.run(
            .place(id: a, name: "t", folder: nil, .refuse, tag: nil),
            .place(id: b, name: "a", folder: nil, .refuse, tag: nil),
            .place(id: a, name: "b", folder: nil, .refuse, tag: nil))
        #expect(results.count == 3)
        #expect(try self.own.lookup("a")?.id == b)
        #expect(try self.own.lookup("b")?.id == a)
        #expect(try self.own.lookup("t") == nil)
        #expect(try self.own.list("root")?.map(\.name) == ["Documents", "a", "b"])
    }

    @Test mutating func `a save that knew another content keeps both`() throws {
        let first = try self.own.file(1, "f", [1])
        let second = try self.own.item(self.own.save(first.id, [2], basedOn: first.contentTag))
        #expect(second.conflicts == 0 && second.contentTag != first.contentTag)
        #expect(try self.own.content(first.id, first.contentTag) == nil)
        // Edited later, and therefore current; and edited earlier, and therefore a version.
        let later = try self.own.item(
            self.own.save(first.id, [3], basedOn: first.contentTag), device: "phone")
        #expect(later.conflicts == 1 && later.device == "phone")
        let earlier = try self.own.item(
            self.own.save(first.id, [4], basedOn: first.contentTag, ago: 60_000), device: "watch")
        #expect(earlier.conflicts == 2 && earlier.contentTag == later.contentTag)
        #expect(try self.own.content(first.id) == [3])
        let versions = try #require(try self.own.versions(first.id))
        #expect(versions.first == later.contentTag && versions.count == 3)
        #expect(try versions.map { try self.own.content(first.id, $0) } == [[3], [2], [4]])
        #expect(
            try self.own.refusal(
                self.own.save(first.id, [5], basedOn: second.contentTag, ifUnchanged: true))
                == .stale)
        // Another becomes current, and what is dropped is gone.
        let settled = try self.own.item(
            .settle(id: first.id, current: versions[1], drop: [versions[0], versions[2]]))
        #expect(settled.conflicts == 0)
        #expect(try self.own.versions(first.id) == [versions[1]])
        #expect(try self.own.content(first.id) == [2])
        for operation in [
            DocumentOperation.settle(id: first.id, current: 999, drop: []),
            .settle(id: first.id, current: nil, drop: [settled.contentTag]),
            .settle(id: first.id, current: nil, drop: [999]),
        ] {
            #expect(try self.own.refusal(operation) == .versionNotFound)
        }
    }

    @Test mutating func `versions are never dropped for want of room`() throws {
        self.own.rules.versionCountMax = 2
        let first = try self.own.file(1, "f", [1])
        try self.own.item(self.own.save(first.id, [2], basedOn: nil))
        try self.own.item(self.own.save(first.id, [3], basedOn: nil))
        #expect(
            try self.own.refusal(self.own.save(first.id, [4], basedOn: nil)) == .tooManyVersions)
        #expect(try self.own.versions(first.id)?.count == 3)
    }

    @Test mutating func `a removal takes all below, at once or with a job`() throws {
        self.own.rules.cascadeCountMax = 4
        let a = try self.own.folder(1, "a")
        let b = try self.own.folder(2, "b", in: a)
        for number in 10..<20 { try self.own.file(number, "f\(number)", in: b) }
        let seen = try self.own.changes().position
        #expect(try self.own.run(.remove(id: a, basedOn: nil)) == [.removed(id: a)])
        // What waits for the job cannot be reached.
        #expect(try self.own.item(DocumentBench.id(10)) == nil)
        #expect(try self.own.list(b) == nil)
        #expect(try self.own.refusal(self.own.create(30, "x", in: b)) == .folderNotFound)
        #expect(
            try self.own.refusal(self.own.save(DocumentBench.id(10), [1], basedOn: nil))
                == .notFound)
        // The name is free already.
        try self.own.folder(40, "a")
        try self.own.bench.finishJobs(budget: 3)
        let rows = try self.own.bench.rows.view.rows(.reference, from: [], to: [], limit: .max)
        #expect(rows.count == 1, "only the name of the new folder is left: \(rows.count)")
        let page = try self.own.changes(seen)
        let removed = page.changes.count { if case .removed = $0 { true } else { false } }
        #expect(removed == 12)
        let file = try self.own.file(50, "g")
        #expect(try self.own.refusal(.remove(id: file.id, basedOn: 1)) == .stale)
        try self.own.run(.remove(id: file.id, basedOn: file.contentTag))
        #expect(try self.own.lookup("g") == nil)
    }

    @Test mutating func `an atomic request is taken whole or not at all`() throws {
        let results = try self.own.run(self.own.create(1, "a"), self.own.create(2, "A"))
        #expect(
            results == [
                .refused(.atomicFailure, subject: ""),
                .refused(.nameTaken, subject: DocumentBench.id(1)),
            ])
        #expect(try self.own.lookup("a") == nil)
        let loose = try self.own.run(
            self.own.create(1, "a"), self.own.create(2, "A"), atomic: false)
        if case .item = loose[0] {} else { Issue.record("\(loose)") }
        #expect(try self.own.list("root")?.count == 2)
    }

    @Test mutating func `folders are at most 64 deep, moved ones too`() throws {
        var at = "root"
        for number in 1...DocumentNames.depthMax {
            at = try self.own.folder(number, "d", in: at)
        }
        #expect(try self.own.refusal(self.own.create(100, "f", in: at)) == .tooDeep)
        #expect(try self.own.item(at) != nil)
        let other = try self.own.folder(200, "other")
        let inner = try self.own.folder(201, "inner", in: other)
        try self.own.file(202, "f", in: inner)
        let parent = try #require(try self.own.item(at)).folder
        let above = try #require(try self.own.item(parent)).folder
        #expect(
            try self.own.refusal(.place(id: other, name: nil, folder: parent, .refuse, tag: nil))
                == .tooDeep)
        #expect(
            try self.own.refusal(.place(id: other, name: nil, folder: above, .refuse, tag: nil))
                == .tooDeep)
        self.own.rules.moveCountMax = 1
        #expect(
            try self.own.refusal(
                .place(id: other, name: nil, folder: "documents", .refuse, tag: nil))
                == .tooManyItems)
        // To a place that is no deeper it always moves.
        #expect(
            try self.own.refusal(.place(id: inner, name: nil, folder: "root", .refuse, tag: nil))
                == nil)
    }

    @Test mutating func `what one command makes and moves is no deeper than 64 either`() throws {
        let id = DocumentBench.id
        var chain = "root"
        for number in 1...40 { chain = try self.own.folder(number, "d", in: chain) }
        let shallow = try self.own.folder(100, "shallow")
        var at = try self.own.folder(101, "other")
        for number in 102...140 { at = try self.own.folder(number, "d", in: at) }
        let results = try self.own.run(
            .place(id: id(101), name: nil, folder: shallow, .refuse, tag: nil),
            .place(id: shallow, name: nil, folder: chain, .refuse, tag: nil))
        #expect(results.last == .refused(.tooDeep, subject: "64"))
    }

    @Test mutating func `a file with versions to settle is not removed by who knows only one`()
        throws
    {
        let file = try self.own.file(1, "f", [1])
        try self.own.item(self.own.save(file.id, [2], basedOn: nil))
        let now = try #require(try self.own.item(file.id))
        #expect(now.conflicts > 0)
        #expect(
            try self.own.run(.remove(id: file.id, basedOn: now.contentTag))
                == [.refused(.versionsWait, subject: "1")])
        #expect(try self.own.refusal(.remove(id: file.id, basedOn: now.contentTag + 1)) == .stale)
        #expect(try self.own.refusal(.remove(id: file.id, basedOn: nil)) == nil)
    }

    @Test mutating func `a file that is to be replaced keeps its content until the next comes`()
        throws
    {
        let file = try self.own.file(1, "f", [1])
        let known = try self.own.item(
            .create(
                id: DocumentBench.id(2), .file, name: "F", folder: "root", .replace, content: nil,
                atMilliseconds: 0))
        #expect(known.id == file.id)
        #expect(try self.own.content(file.id) == [1])
    }

    @Test func `names are judged by their bytes`() {
        #expect(DocumentNames.numbered("a.\u{301}txt", 2, isFile: true) == "a 2.\u{301}txt")
        #expect(DocumentNames.numbered(".x", 2, isFile: true) == ".x 2")
        #expect(DocumentNames.numbered("a.b", 2, isFile: false) == "a.b 2")
        #expect(DocumentNames.staysLocal("a.NoSync") && !DocumentNames.staysLocal("nosync"))
    }

    @Test mutating func `documents count in the quota, and removing always works`() throws {
        self.own.rules.databaseSizeMax = 3_000
        try self.own.file(1, "a", Bytes(repeating: 1, count: 1_500))
        #expect(
            try self.own.refusal(self.own.create(2, "b", Bytes(repeating: 1, count: 1_500)))
                == .databaseFull)
        guard
            case .use(let use, let zones, _) = try self.own.bench.ask(.use(Bench.privateDatabase))
        else { throw BenchError("no use") }
        #expect(use.size > 1_500 && use.size < 3_000 && zones == 0)
        try self.own.run(.remove(id: DocumentBench.id(1), basedOn: nil))
        try self.own.file(2, "b", Bytes(repeating: 1, count: 1_500))
        self.own.rules.contentSizeMax = 10
        #expect(
            try self.own.refusal(self.own.create(3, "c", Bytes(repeating: 1, count: 11)))
                == .contentTooLarge)
    }

    @Test mutating func `data outside Documents goes at once`() throws {
        let hidden = try self.own.folder(1, "Library")
        try self.own.file(2, "settings", in: hidden)
        try self.own.file(3, "seen", in: "documents")
        try self.own.file(4, "top")
        #expect(try self.own.run(.removeData) == [.dataRemoved(count: 2, hasMore: false)])
        #expect(try self.own.list("root")?.map(\.name) == ["Documents"])
        #expect(try self.own.list("documents")?.map(\.name) == ["seen"])
    }

    @Test mutating func `nobody else may use documents, and records do not see them`() throws {
        try self.own.file(1, "a")
        let stranger = Principal(kind: .user, userRecordName: "_stranger")
        #expect(
            try self.own.outcome([self.own.create(2, "b")], as: stranger)
                == .refused(RequestRefusal(.accessDenied)))
        for ask in DocumentGoldens.queries {
            #expect(
                try self.own.bench.ask(ask, as: stranger)
                    == .refused(RequestRefusal(.accessDenied)))
        }
        #expect(try self.own.bench.lookup(DocumentBench.id(1), in: ZoneID.documentsName) == nil)
        #expect(
            try self.own.bench.refusal(
                in: ZoneID.documentsName, [.delete(DocumentBench.id(1))]) == .zoneNotFound)
        let position = try self.own.changes().position
        _ = try self.own.bench.apply(
            .eraseDatabase(EraseDatabase(database: Bench.privateDatabase)), as: Bench.system)
        try self.own.bench.finishJobs()
        #expect(try self.own.changes(position).isFromStart)
        for table in [Table.record, .feed, .reference] {
            #expect(try self.own.bench.rows.view.rows(table, from: [], to: [], limit: 1).isEmpty)
        }
    }
}
