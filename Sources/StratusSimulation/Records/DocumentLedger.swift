import StratusModel
import StratusRecords

/// One person's documents as one group's log decides them, by the simplest rules: which locks hold,
/// whom they keep out, and which contents are there until somebody settles them.
struct DocumentLedger {
    private struct Item {
        var folder: String
        var isFolder: Bool
        var current: UInt64 = 0
        var contents: Set<UInt64> = []
        /// What the current content of a package has, and since which change.
        var parts: [String: UInt64] = [:]
    }

    private struct Lock {
        var token: String
        var item: String
        var isExclusive: Bool
        var isInfinite: Bool
        var until: Int64
    }

    private var items: [String: Item] = [:]
    private var locks: [Lock] = []
    private(set) var counts: [String: Int] = [:]

    /// - Returns: what should not be; nil: nothing.
    mutating func apply(
        _ modify: ModifyDocuments, at milliseconds: Int64, _ outcome: RecordOutcome
    ) -> String? {
        guard case .documents(let results) = outcome, results.count == 1,
            let operation = modify.operations.first, let result = results.first
        else { return "documents: \(outcome)" }
        self.locks.removeAll { $0.until <= milliseconds }
        let expected = self.refusal(of: operation, showing: modify.tokens, modify.rules)
        var told: DocumentRefusal?
        if case .refused(let refusal, _) = result { told = refusal }
        guard told == expected else {
            return "\(operation) is \(result), not \(expected.map { "\($0)" } ?? "taken"), with "
                + "\(self.locks) of \(milliseconds)"
        }
        if let told {
            self.counts["documents refused", default: 0] += 1
            if told == .locked { self.counts["documents locked", default: 0] += 1 }
            return nil
        }
        return self.note(operation, result, at: milliseconds)
    }

    // MARK: Judging

    private func chain(of id: String) -> [String] {
        var chain = [id]
        var at = id
        while let item = self.items[at], chain.count < 8 {
            at = item.folder
            chain.append(at)
        }
        return chain
    }

    private func locks(on id: String) -> [Lock] {
        let chain = self.chain(of: id)
        return self.locks.filter {
            $0.item == id || $0.isInfinite && chain.contains($0.item)
        }
    }

    private func locks(below id: String) -> [Lock] {
        self.locks.filter { self.chain(of: $0.item).contains(id) }
    }

    private static func open(_ locks: [Lock], _ tokens: [String]) -> Bool {
        locks.isEmpty || locks.contains { tokens.contains($0.token) }
    }

    private func refusal(
        of operation: DocumentOperation, showing tokens: [String], _ rules: DocumentRules
    ) -> DocumentRefusal? {
        switch operation {
        case .create(let id, _, _, let folder, _, _, _):
            if self.items[id] != nil { return .idInvalid }
            guard folder == DocumentNames.root || self.items[folder] != nil else {
                return .folderNotFound
            }
            return Self.open(self.locks(on: folder), tokens) ? nil : .locked
        case .save(let id, _, let basedOn, _, _):
            guard let item = self.items[id] else { return .notFound }
            guard Self.open(self.locks(on: id), tokens) else { return .locked }
            let isConflict = item.current != 0 && basedOn != item.current
            return isConflict && item.contents.count > rules.versionCountMax
                ? .tooManyVersions : nil
        case .edit(let id, let edits, _, _):
            guard let item = self.items[id] else { return .notFound }
            guard Self.open(self.locks(on: id), tokens) else { return .locked }
            for case .put(let path, _, let seen) in edits {
                let known = item.parts[path]
                if known == nil, seen != nil { return .notFound }
                if known != seen { return .stale }
            }
            return nil
        case .remove(let id, _):
            guard let item = self.items[id] else { return .notFound }
            let below = self.locks(below: id)
            let isOpen =
                Self.open(self.locks(on: id), tokens)
                && Self.open(self.locks(on: item.folder), tokens)
                && below.allSatisfy { lock in
                    Self.open(below.filter { $0.item == lock.item }, tokens)
                }
            return isOpen ? nil : .locked
        case .lock(let wanted, _, _):
            guard self.items[wanted.item] != nil else { return .notFound }
            let others =
                self.locks(on: wanted.item)
                + (wanted.isInfinite ? self.locks(below: wanted.item) : [])
            if others.contains(where: { $0.isExclusive || wanted.isExclusive }) { return .locked }
            let items = [wanted.item] + (wanted.isInfinite ? others.map(\.item) : [])
            return items.allSatisfy { self.locks(on: $0).count < DocumentLock.sharedCountMax }
                ? nil : .locked
        case .refresh(let token, _), .unlock(let token):
            return self.locks.contains { $0.token == token } ? nil : .lockNotFound
        default: return nil
        }
    }

    // MARK: Noting

    private mutating func note(
        _ operation: DocumentOperation, _ result: DocumentResult, at milliseconds: Int64
    ) -> String? {
        switch (operation, result) {
        case (.create(let id, let kind, _, let folder, _, _, _), .item(let made)):
            var item = Item(folder: folder, isFolder: kind == .folder)
            if made.contentTag != 0 {
                item.current = made.contentTag
                item.contents = [made.contentTag]
                if case .create(_, _, _, _, _, .package(let package)?, _) = operation {
                    for part in package.parts { item.parts[part.path] = made.contentTag }
                }
            }
            self.items[id] = item
            self.counts["documents made", default: 0] += 1
        case (.save(let id, _, let basedOn, _, _), .item(let saved)):
            guard var item = self.items[id] else { return "\(result)" }
            if basedOn == item.current || item.current == 0 {
                item.contents.remove(item.current)
            } else {
                self.counts["documents in conflict", default: 0] += 1
            }
            // The new content has the tag of this change, whether it is the current one or waits.
            item.contents.insert(saved.tag)
            item.current = saved.contentTag
            self.items[id] = item
            guard item.contents.contains(saved.contentTag),
                saved.conflicts == UInt64(item.contents.count - 1)
            else { return "\(saved) has not the contents \(item.contents.sorted())" }
        case (.edit(let id, let edits, _, _), .item(let saved)):
            guard var item = self.items[id] else { return "\(result)" }
            // A change within a package takes the place of the current content.
            item.contents.remove(item.current)
            item.contents.insert(saved.tag)
            item.current = saved.contentTag
            for case .put(let path, _, _) in edits { item.parts[path] = saved.tag }
            self.items[id] = item
            self.counts["packages edited", default: 0] += 1
            guard saved.contentTag == saved.tag, saved.kind == .package,
                saved.conflicts == UInt64(item.contents.count - 1)
            else { return "\(saved) has not the contents \(item.contents.sorted())" }
        case (.remove(let id, _), .removed(let removed)):
            guard removed == id else { return "\(result)" }
            let gone = self.items.keys.filter { self.chain(of: $0).contains(id) }
            self.locks.removeAll { gone.contains($0.item) }
            for item in gone { self.items[item] = nil }
            self.counts["documents removed", default: 0] += 1
        case (.lock(let wanted, _, _), .lock(let lock)):
            guard lock.untilMilliseconds > milliseconds, lock.token == wanted.token else {
                return "\(result)"
            }
            self.locks.append(
                Lock(
                    token: lock.token, item: lock.item, isExclusive: lock.isExclusive,
                    isInfinite: lock.isInfinite, until: lock.untilMilliseconds))
            self.counts["locks taken", default: 0] += 1
        case (.refresh(let token, _), .lock(let lock)):
            for index in self.locks.indices where self.locks[index].token == token {
                self.locks[index].until = lock.untilMilliseconds
            }
            self.counts["locks refreshed", default: 0] += 1
        case (.unlock(let token), .unlocked):
            self.locks.removeAll { $0.token == token }
            self.counts["locks ended", default: 0] += 1
        default: return "\(operation) is answered by \(result)"
        }
        return nil
    }
}

/// What clients of documents ask for.
struct DocumentWorkload {
    static let database = DatabaseID(
        container: RecordWorld.container, scope: .private, owner: "_documents")
    private static let folderCount = 2
    private static let fileCount = 5

    private var nextNumber = 1
    /// Locks that were asked for last, and contents that were told last.
    private var tokens: [String] = []
    private var contents: [String: UInt64] = [:]
    private static let partPath = "in/part"

    private static func id(_ number: Int) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 32 - digits.utf8.count) + digits
    }

    private static func folder(_ number: Int) -> String { Self.id(0x100 + number) }
    private static let package = Self.id(0x300)

    mutating func hear(_ results: [DocumentResult]) {
        for case .item(let item) in results { self.contents[item.id] = item.contentTag }
    }

    mutating func work(using random: inout SeededGenerator) -> RecordWork {
        func draw(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }
        let number = draw(Self.fileCount)
        let file = Self.id(0x200 + number)
        let home = number == 0 ? DocumentNames.root : Self.folder(number % Self.folderCount)
        let folder = draw(Self.folderCount)
        let any = draw(3) == 0 ? Self.folder(folder) : file
        self.nextNumber += 1
        let content = DocumentContent.inline(Array(String(self.nextNumber).utf8))
        let milliseconds = Int64(1_000 + draw(4_000))
        let operation: DocumentOperation
        switch draw(22) {
        case 20:
            let package = DocumentPackage([
                DocumentPart(Self.partPath, .inline(Array(String(self.nextNumber).utf8)))
            ])
            operation = .create(
                id: Self.package, .package, name: "p", folder: Self.folder(0), .refuse,
                content: .package(package), atMilliseconds: 0)
        case 21:
            // Its tag is the package's as long as it is the only thing in it.
            operation = .edit(
                id: Self.package,
                [
                    .put(
                        path: Self.partPath, .inline(Array(String(self.nextNumber).utf8)),
                        seen: draw(4) > 0 ? self.contents[Self.package] : 1)
                ], countMax: DocumentPackage.countMax, sizeMax: DocumentPackage.sizeMax)
        case 0...1:
            operation = .create(
                id: Self.folder(folder), .folder, name: "d\(folder)", folder: DocumentNames.root,
                .refuse, content: nil, atMilliseconds: 0)
        case 2...5:
            operation = .create(
                id: file, .file, name: "f\(number)", folder: home, .refuse, content: content,
                atMilliseconds: 0)
        case 6...10:
            operation = .save(
                id: file, content: content, basedOn: draw(3) > 0 ? self.contents[file] : nil,
                ifUnchanged: false, atMilliseconds: Int64(self.nextNumber))
        case 11: operation = .remove(id: draw(4) == 0 ? any : file, basedOn: nil)
        case 12: operation = .unlock(token: self.token(using: &random))
        case 13:
            operation = .refresh(
                token: self.token(using: &random), milliseconds: milliseconds)
        default:
            let token = Self.id(0xF0000 + self.nextNumber)
            self.tokens.append(token)
            if self.tokens.count > 6 { self.tokens.removeFirst() }
            operation = .lock(
                DocumentLock(
                    token: token, item: any, isExclusive: draw(3) > 0, isInfinite: draw(2) == 0,
                    owner: [], untilMilliseconds: 0), milliseconds: milliseconds,
                countMax: DocumentLock.countMax)
        }
        let shown = draw(2) == 0 ? [self.token(using: &random)] : []
        return .command(
            .modifyDocuments(
                ModifyDocuments(
                    database: Self.database, device: "mac",
                    nowMilliseconds: Int64(self.nextNumber),
                    drawnIncarnation: ZoneIncarnation(random.next()), isAtomic: false,
                    rules: DocumentRules(versionCountMax: 3), operations: [operation],
                    tokens: shown)), RecordWorld.user(of: Self.database))
    }

    private func token(using random: inout SeededGenerator) -> String {
        self.tokens.randomElement(using: &random) ?? Self.id(0xF0000)
    }
}
