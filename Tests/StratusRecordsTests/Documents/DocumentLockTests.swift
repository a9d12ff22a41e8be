import StratusModel
import Testing

@testable import StratusRecords

/// Locks of WebDAV clients, rule by rule.
@Suite struct DocumentLockTests {
    var own = DocumentBench()

    private static func token(_ number: Int) -> String { DocumentBench.id(0xF000 + number) }

    private func lock(
        _ number: Int, _ item: String, isExclusive: Bool = true, isInfinite: Bool = false,
        seconds: Int64 = 600
    ) -> DocumentOperation {
        .lock(
            DocumentLock(
                token: Self.token(number), item: item, isExclusive: isExclusive,
                isInfinite: isInfinite, owner: [1, 2], untilMilliseconds: 0),
            milliseconds: seconds * 1_000, countMax: DocumentLock.countMax)
    }

    /// Why an operation is refused to who shows these tokens.
    private mutating func refusal(
        _ operation: DocumentOperation, showing tokens: [Int] = []
    ) throws -> DocumentRefusal? {
        let outcome = try self.own.bench.apply(
            .modifyDocuments(
                ModifyDocuments(
                    database: Bench.privateDatabase, device: "webdav",
                    nowMilliseconds: self.own.milliseconds,
                    drawnIncarnation: ZoneIncarnation(self.own.bench.index + 1_000),
                    operations: [operation], tokens: tokens.map { Self.token($0) })),
            as: Bench.user)
        guard case .documents(let results) = outcome else { throw BenchError("\(outcome)") }
        if case .refused(let refusal, _) = results[0] { return refusal }
        return nil
    }

    private func locks() throws -> [DocumentLock] {
        guard case .locks(let locks) = try self.own.ask(.locks) else {
            throw BenchError("no locks")
        }
        return locks
    }

    @Test mutating func `what is locked changes only with the token`() throws {
        let file = try self.own.file(1, "a")
        try self.own.run(self.lock(1, file.id))
        let changes: [DocumentOperation] = [
            self.own.save(file.id, [2], basedOn: file.contentTag),
            .place(id: file.id, name: "b", folder: nil, .refuse, tag: nil),
            .remove(id: file.id, basedOn: nil),
            .annotate(id: file.id, [], countMax: 9, sizeMax: 99),
            self.own.create(7, "A", [3], .replace),
        ]
        for change in changes {
            #expect(try self.refusal(change) == .locked, "\(change)")
            #expect(try self.refusal(change, showing: [2]) == .locked, "\(change)")
        }
        #expect(try self.own.content(file.id) == [1])
        #expect(try self.refusal(changes[0], showing: [2, 1]) == nil)
        #expect(try self.own.content(file.id) == [2])
        // Another item is free.
        try self.own.file(2, "other")
        #expect(try self.locks().map(\.token) == [Self.token(1)])
        #expect(try self.refusal(.unlock(token: Self.token(2))) == .lockNotFound)
        #expect(try self.refusal(.unlock(token: Self.token(1))) == nil)
        #expect(try self.locks().isEmpty)
        #expect(try self.refusal(.remove(id: file.id, basedOn: nil)) == nil)
    }

    @Test mutating func `a lock ends with its time, and can be refreshed`() throws {
        let file = try self.own.file(1, "a")
        try self.own.run(self.lock(1, file.id, seconds: 60))
        self.own.milliseconds += 50_000
        #expect(
            try self.refusal(.refresh(token: Self.token(1), milliseconds: 60_000)) == nil)
        self.own.milliseconds += 50_000
        #expect(try self.refusal(.remove(id: file.id, basedOn: nil)) == .locked)
        self.own.milliseconds += 20_000
        #expect(
            try self.refusal(.refresh(token: Self.token(1), milliseconds: 60_000))
                == .lockNotFound)
        #expect(try self.refusal(.remove(id: file.id, basedOn: nil)) == nil)
        // Nobody gets more than an hour at once.
        let other = try self.own.file(2, "b")
        try self.own.run(self.lock(2, other.id, seconds: 1_000_000))
        self.own.milliseconds += DocumentLock.spanMilliseconds + 1_000
        #expect(try self.refusal(.remove(id: other.id, basedOn: nil)) == nil)
    }

    @Test mutating func `locks exclude each other as their scopes say`() throws {
        let folder = try self.own.folder(1, "f")
        let inner = try self.own.folder(2, "g", in: folder)
        let file = try self.own.file(3, "a", in: inner)
        #expect(try self.refusal(self.lock(1, file.id, isExclusive: false)) == nil)
        #expect(try self.refusal(self.lock(2, file.id, isExclusive: false)) == nil)
        #expect(try self.refusal(self.lock(3, file.id)) == .locked)
        // An infinite lock reaches down, and one of depth 0 does not.
        #expect(try self.refusal(self.lock(3, folder, isInfinite: true)) == .locked)
        #expect(
            try self.refusal(self.lock(3, folder, isExclusive: false, isInfinite: true)) == nil)
        #expect(try self.refusal(self.lock(4, inner)) == .locked)
        for number in 1...3 { _ = try self.refusal(.unlock(token: Self.token(number))) }
        #expect(try self.refusal(self.lock(5, folder)) == nil)
        #expect(try self.refusal(self.lock(6, file.id)) == nil)
        // Any of several shared locks is enough.
        #expect(try self.refusal(self.lock(6, file.id)) == .idInvalid)
    }

    @Test mutating func `a locked folder keeps its members`() throws {
        let folder = try self.own.folder(1, "f")
        let file = try self.own.file(2, "a", in: folder)
        let outside = try self.own.file(3, "b")
        try self.own.run(self.lock(1, folder))
        let create = self.own.create(4, "c", in: folder)
        let changes: [DocumentOperation] = [
            create, .remove(id: file.id, basedOn: nil),
            .place(id: file.id, name: nil, folder: "root", .refuse, tag: nil),
            .place(id: outside.id, name: nil, folder: folder, .refuse, tag: nil),
            .copy(
                DocumentCopy(
                    source: outside.id, name: "c", folder: folder, id: DocumentBench.id(9),
                    isDeep: true), tag: nil), .remove(id: folder, basedOn: nil),
        ]
        for change in changes { #expect(try self.refusal(change) == .locked, "\(change)") }
        // Of depth 0: what is in it may change.
        let saved = self.own.save(file.id, [5], basedOn: file.contentTag)
        #expect(try self.refusal(saved) == nil)
        #expect(try self.refusal(create, showing: [1]) == nil)
    }

    @Test mutating func `a folder leaves only with the tokens of what is locked below it`() throws {
        let folder = try self.own.folder(1, "f")
        let inner = try self.own.folder(2, "g", in: folder)
        let file = try self.own.file(3, "a", in: inner)
        let other = try self.own.file(4, "b", in: inner)
        try self.own.run(self.lock(1, file.id))
        try self.own.run(self.lock(2, other.id))
        let move = DocumentOperation.place(
            id: folder, name: nil, folder: "documents", .refuse, tag: nil)
        #expect(try self.refusal(move, showing: [1]) == .locked)
        #expect(try self.refusal(.removeData, showing: [2]) == .locked)
        // A lock is on an address: it does not go along.
        #expect(try self.refusal(move, showing: [1, 2]) == nil)
        #expect(try self.locks().isEmpty)
        #expect(try self.own.lookup("Documents/f/g/a")?.id == file.id)
    }

    @Test mutating func `locks go with their items, and are bounded`() throws {
        let file = try self.own.file(1, "a")
        try self.own.run(self.lock(1, file.id), .refresh(token: Self.token(1), milliseconds: 9))
        #expect(try self.refusal(.remove(id: file.id, basedOn: nil), showing: [1]) == nil)
        #expect(try self.locks().isEmpty)
        // The names of locks that are over are taken again.
        for round in 0..<3 {
            var folders: [String] = []
            for number in 0..<(DocumentLock.countMax / DocumentLock.sharedCountMax) {
                folders.append(
                    try self.own.folder(100 * (round + 1) + number, "f\(round)-\(number)"))
            }
            for number in 0..<DocumentLock.countMax {
                let lock = self.lock(
                    1_000 * (round + 1) + number,
                    folders[number / DocumentLock.sharedCountMax], isExclusive: false)
                #expect(try self.refusal(lock) == nil)
            }
            let free = try self.own.folder(100 * (round + 1) + 50, "free\(round)")
            let more = self.lock(9_999, free, isExclusive: false)
            #expect(try self.refusal(more) == .tooManyItems)
            self.own.milliseconds += 601_000
        }
        #expect(try self.locks().count == DocumentLock.countMax)
        #expect(try self.refusal(self.lock(9_999, "documents", isInfinite: true)) == nil)
    }

    @Test mutating func `an item has at most so many shared locks, those above it included`() throws
    {
        let folder = try self.own.folder(1, "f")
        let inner = try self.own.folder(2, "g", in: folder)
        let file = try self.own.file(3, "a", in: inner)
        func lock(_ number: Int, _ item: String, isInfinite: Bool = false) -> DocumentOperation {
            self.lock(number, item, isExclusive: false, isInfinite: isInfinite)
        }
        let half = DocumentLock.sharedCountMax / 2
        for number in 0..<half {
            #expect(try self.refusal(lock(100 + number, folder, isInfinite: true)) == nil)
            #expect(try self.refusal(lock(200 + number, file.id)) == nil)
        }
        #expect(try self.refusal(lock(300, file.id)) == .locked)
        // One above would hold for the file too, and one of depth 0 would not.
        #expect(try self.refusal(lock(300, folder, isInfinite: true)) == .locked)
        #expect(try self.refusal(lock(300, inner, isInfinite: true)) == .locked)
        #expect(try self.refusal(lock(300, inner)) == nil)
        #expect(try self.refusal(lock(301, folder)) == nil)
        #expect(try self.refusal(.unlock(token: Self.token(200))) == nil)
        #expect(try self.refusal(lock(302, inner, isInfinite: true)) == nil)
        #expect(try self.refusal(lock(303, file.id)) == .locked)
        // Another item below has room still.
        let other = try self.own.file(4, "b")
        #expect(try self.refusal(lock(304, other.id)) == nil)
        // Those whose time is over do not count.
        self.own.milliseconds += 601_000
        #expect(try self.refusal(lock(305, file.id)) == nil)
    }

    @Test mutating func `followers and versions see no locks`() throws {
        let file = try self.own.file(1, "a")
        let waiting = try self.own.file(2, "b", nil)
        let position = try self.own.changes().position
        try self.own.run(self.lock(1, file.id))
        try self.own.run(self.lock(2, waiting.id))
        #expect(try self.own.changes(position).changes.isEmpty)
        #expect(try self.own.versions(file.id) == [file.contentTag])
        #expect(try self.own.versions(waiting.id) == [])
    }

    @Test(
        .enabled(if: PlantedBugs.isPossible),
        arguments: [PlantedBug.lockNotAsked, .lockOutlivesItsTime])
    func `a planted bug is found`(_ bug: PlantedBug) throws {
        var tests = DocumentLockTests()
        tests.own.bench.state = DataState(bugs: PlantedBugs([bug]))
        let file = try tests.own.file(1, "a")
        try tests.own.run(tests.lock(1, file.id, seconds: 60))
        let isAsked =
            try tests.refusal(.annotate(id: file.id, [], countMax: 9, sizeMax: 9)) == .locked
        tests.own.milliseconds += 61_000
        let isOver = try tests.refusal(.remove(id: file.id, basedOn: nil)) == nil
        #expect(isAsked == (bug != .lockNotAsked))
        #expect(isOver == (bug != .lockOutlivesItsTime))
    }
}

/// Copies and properties.
@Suite struct DocumentCopyTests {
    var own = DocumentBench()

    private static func copy(
        _ source: String, _ name: String, in folder: String = "root", _ id: Int,
        isDeep: Bool = true, countMax: Int = 2_000, sizeMax: Int = 32 << 20
    ) -> DocumentOperation {
        .copy(
            DocumentCopy(
                source: source, name: name, folder: folder, id: DocumentBench.id(id),
                isDeep: isDeep, countMax: countMax, sizeMax: sizeMax), tag: nil)
    }

    private static func property(_ local: String, _ element: String) -> DocumentProperty {
        DocumentProperty(.init(namespace: "urn:x", local: local), element: Bytes(element.utf8))
    }

    private func properties(_ ids: String...) throws -> [[DocumentProperty]] {
        guard case .properties(let all) = try self.own.ask(.properties(ids: ids)) else {
            throw BenchError("no properties")
        }
        return all
    }

    @Test mutating func `a copy has everything, and lives by itself`() throws {
        let folder = try self.own.folder(1, "f")
        let inner = try self.own.folder(2, "g", in: folder)
        let file = try self.own.file(3, "a", in: inner, [1, 2, 3])
        try self.own.file(4, "empty", in: folder, nil)
        let kept = Self.property("p", "<p/>")
        try self.own.item(
            .annotate(id: file.id, [.set(kept)], countMax: 9, sizeMax: 999))
        let copied = try self.own.item(Self.copy(folder, "h", in: "documents", 0x100))
        #expect(copied.name == "h" && copied.folder == "documents" && copied.id != folder)
        let twin = try #require(try self.own.lookup("Documents/h/g/a"))
        #expect(twin.id != file.id && twin.size == 3)
        #expect(try self.own.content(twin.id) == [1, 2, 3])
        #expect(try self.properties(twin.id, folder, "nothing") == [[kept], [], []])
        #expect(try self.own.lookup("Documents/h/empty")?.contentTag == 0)
        try self.own.item(self.own.save(twin.id, [9], basedOn: twin.contentTag))
        #expect(try self.own.content(file.id) == [1, 2, 3])
        try self.own.run(.remove(id: folder, basedOn: nil))
        #expect(try self.own.content(twin.id) == [9])
        // Alone, without what is in it.
        try self.own.item(Self.copy(copied.id, "shallow", 0x200, isDeep: false))
        #expect(try self.own.list(DocumentBench.id(0x200))?.isEmpty == true)
    }

    @Test mutating func `a copy is refused whole`() throws {
        let folder = try self.own.folder(1, "f")
        for number in 0..<5 { try self.own.file(10 + number, "a\(number)", in: folder) }
        #expect(try self.own.refusal(Self.copy(folder, "g", 0x100, countMax: 5)) == .tooManyItems)
        #expect(
            try self.own.refusal(Self.copy(folder, "g", 0x100, sizeMax: 4)) == .contentTooLarge)
        #expect(try self.own.refusal(Self.copy(folder, "F", 0x100)) == .nameTaken)
        #expect(try self.own.refusal(Self.copy(folder, "g", in: folder, 0x100)) == .circle)
        #expect(try self.own.refusal(Self.copy(folder, "g", 11)) == .idInvalid)
        #expect(try self.own.refusal(Self.copy("documents", "g", 0x100)) == .isRoot)
        #expect(try self.own.refusal(Self.copy(DocumentBench.id(77), "g", 0x100)) == .notFound)
        self.own.rules.databaseSizeMax = 4_000
        #expect(try self.own.refusal(Self.copy(folder, "g", 0x100)) == .databaseFull)
        #expect(try self.own.lookup("g") == nil)
        #expect(try self.own.refusal(Self.copy(folder, "g", 0x100, countMax: 6)) != nil)
        self.own.rules.databaseSizeMax = 0
        #expect(try self.own.refusal(Self.copy(folder, "g", 0x100, countMax: 6)) == nil)
        #expect(try self.own.list(DocumentBench.id(0x100))?.count == 5)
    }

    @Test mutating func `a copy within a command sees what came before it`() throws {
        let folder = try self.own.folder(1, "f")
        let file = try self.own.file(2, "a", in: folder)
        let old = try self.own.folder(3, "g")
        try self.own.file(4, "x", in: old)
        // The destination goes, an item comes, one leaves, and then the rest is copied.
        let results = try self.own.run(
            .remove(id: old, basedOn: nil), self.own.create(5, "new", in: folder),
            .place(id: file.id, name: nil, folder: "root", .refuse, tag: nil),
            Self.copy(folder, "g", 0x100))
        #expect(results.count == 4)
        #expect(try self.own.list(DocumentBench.id(0x100))?.map(\.name) == ["new"])
    }

    @Test mutating func `properties are set, removed, kept by saves and bounded`() throws {
        let file = try self.own.file(1, "a")
        func annotate(_ changes: DocumentPropertyChange...) -> DocumentOperation {
            .annotate(id: file.id, changes, countMax: 2, sizeMax: 100)
        }
        let one = Self.property("one", "<o>1</o>")
        let two = Self.property("two", "<t/>")
        let changed = try self.own.item(annotate(.set(two), .set(one)))
        #expect(changed.contentTag == file.contentTag && changed.tag != file.tag)
        #expect(try self.properties(file.id) == [[one, two]])
        #expect(
            try self.own.refusal(annotate(.set(Self.property("three", "<x/>")))) == .tooManyItems)
        let long = Self.property("one", "<o>\(String(repeating: "x", count: 100))</o>")
        #expect(try self.own.refusal(annotate(.set(long))) == .contentTooLarge)
        try self.own.item(self.own.save(file.id, [2], basedOn: file.contentTag))
        try self.own.item(.place(id: file.id, name: "b", folder: nil, .refuse, tag: nil))
        #expect(try self.properties(file.id) == [[one, two]])
        try self.own.item(annotate(.remove(one.name), .remove(one.name)))
        #expect(try self.properties(file.id) == [[two]])
        #expect(try self.own.refusal(.annotate(id: "root", [], countMax: 1, sizeMax: 1)) == .isRoot)
    }
}
