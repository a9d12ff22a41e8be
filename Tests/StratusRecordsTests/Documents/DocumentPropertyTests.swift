import Foundation
import StratusDoubles
import StratusModel
import StratusRows
import Testing

@testable import StratusQuery
@testable import StratusRecords

/// Random changes of documents against a tree in memory: no name twice in a folder, no folder in
/// itself, every content that was taken is there until it was settled, and whoever follows comes to
/// the same tree. `STRATUS_SEEDS` sets the number of seeds.
@Suite struct DocumentPropertyTests {
    static let seeds: Range<UInt64> =
        0..<(UInt64(ProcessInfo.processInfo.environment["STRATUS_SEEDS"] ?? "") ?? 30)

    @Test(arguments: Self.seeds)
    func `the documents are those of the model`(seed: UInt64) throws {
        var life = DocumentLife(seed: seed, PlantedBugs())
        #expect(try life.run(steps: 300) == nil, "seed \(seed)")
        #expect(life.takenCount > 60, "seed \(seed): hardly anything was taken")
        #expect(life.conflictCount > 0, "seed \(seed): there was no conflict")
        #expect(try life.own.bench.isRepeatable(), "seed \(seed): another replica has other rows")
    }

    @Test(
        .enabled(if: PlantedBugs.isPossible),
        arguments: [
            PlantedBug.nameTakenTwice, .folderMovedIntoItself, .losingContentDropped,
            .subtreeLeftBehind,
        ])
    func `a planted bug is found`(bug: PlantedBug) throws {
        #if STRATUS_PLANTED
            for seed in Self.seeds {
                var life = DocumentLife(seed: seed, PlantedBugs([bug]))
                guard let fault = try? life.run(steps: 300) else { return }
                if !fault.isEmpty { return }
            }
            Issue.record("\(bug) is not found")
        #endif
    }
}

struct DocumentLife {
    private struct Item: Equatable {
        var kind: DocumentItem.Kind
        var name: String
        var folder: String
        var current: UInt64 = 0
        var contents: [UInt64: DocumentContent] = [:]
        var editedAt: Int64
        var device: String
        var tag: UInt64
    }

    private(set) var own = DocumentBench()
    private var random: SeededGenerator
    private var tree: [String: Item] = [:]
    private var nextID = 1
    private var files: [DocumentFile] = []
    private var mirror: [String: DocumentItem] = [:]
    private var position: FeedPosition?
    private(set) var takenCount = 0
    private(set) var conflictCount = 0

    init(seed: UInt64, _ bugs: PlantedBugs) {
        self.random = SeededGenerator(seed: seed)
        self.own.bench.keepsCommands = true
        self.own.bench.state = DataState(bugs: bugs)
        self.own.rules = DocumentRules(versionCountMax: 3, cascadeCountMax: 6)
    }

    private mutating func draw(_ count: Int) -> Int {
        Int.random(in: 0..<count, using: &self.random)
    }

    /// - Returns: what was wrong; nil: nothing.
    mutating func run(steps: Int) throws -> String? {
        try self.own.bench.putKeys()
        for step in 1...steps {
            switch self.draw(20) {
            case 0: try self.own.bench.finishJobs(budget: 4)
            case 1: self.own.bench.state.forget()
            case 2...3:
                if let fault = try self.follow() { return "step \(step): \(fault)" }
            default:
                if let fault = try self.act() { return "step \(step): \(fault)" }
            }
            if let fault = try self.check() { return "step \(step): \(fault)" }
        }
        try self.own.bench.finishJobs()
        return try self.follow() ?? self.check() ?? self.checkFiles()
    }

    // MARK: Changes

    private mutating func folder() -> String {
        let folders = self.tree.filter { $0.value.kind == .folder }.keys.sorted()
        switch self.draw(folders.count + 3) {
        case 0: return "root"
        case 1: return "documents"
        case 2: return DocumentBench.id(0xFFFF)
        case let index: return folders[index - 3]
        }
    }

    private mutating func name() -> String {
        ["a", "A", "b", "c.txt", "C.TXT", "d e", "x.nosync", "..", "Documents"][self.draw(9)]
    }

    private mutating func id() -> String {
        let ids = self.tree.keys.sorted()
        return ids.isEmpty || self.draw(20) == 0
            ? DocumentBench.id(0xFFFE) : ids[self.draw(ids.count)]
    }

    private mutating func act() throws -> String? {
        let device = ["mac", "phone"][self.draw(2)]
        let time = self.own.milliseconds
        let at = time - Int64(self.draw(2) == 0 ? 0 : self.draw(100))
        switch self.draw(14) {
        case 12...13: return try self.change(device)
        case 0...3: return try self.create(device, at)
        case 4...6: return try self.save(device, at)
        case 7...8: return try self.place(device)
        case 9: return try self.remove(device)
        case 10: return self.draw(2) == 0 ? try self.separate(device) : try self.settle(device)
        default: return self.draw(10) == 0 ? try self.removeData(device) : nil
        }
    }

    private mutating func result(
        _ operation: DocumentOperation, _ device: String
    ) throws -> DocumentResult {
        let result = try self.own.run(operation, device: device)[0]
        if case .refused = result { return result }
        self.takenCount += 1
        return result
    }

    /// A byte, or a file that was just uploaded, or one that other contents have too.
    private mutating func content(of kind: DocumentItem.Kind = .file) throws -> DocumentContent {
        if kind == .package {
            var parts: [DocumentPart] = []
            for path in ["a", "b/c", "b/D"] where self.draw(3) > 0 {
                parts.append(try self.part(path))
            }
            return .package(DocumentPackage(parts))
        }
        switch self.draw(4) {
        case 0:
            let file = try self.own.upload(UInt128(self.files.count + 1))
            self.files.append(file)
            return .file(file)
        case 1 where !self.files.isEmpty:
            let file = self.files[self.draw(self.files.count)]
            // One that nothing held for an hour may be gone.
            if try AssetRows.asset(file.asset, over: self.own.bench.rows.view) != nil {
                return .file(file)
            }
        default: break
        }
        return .inline([UInt8(self.draw(256))])
    }

    private mutating func part(_ path: String) throws -> DocumentPart {
        switch try self.content() {
        case .inline(let bytes): return DocumentPart(path, .inline(bytes))
        case .file(let file): return DocumentPart(path, .file(file))
        case .package: return DocumentPart(path, .folder)
        }
    }

    /// A package as the model knows it: its files by their paths, without folders and tags.
    private static func plain(_ content: DocumentContent) -> DocumentContent {
        guard case .package(var package) = content else { return content }
        package.parts = package.parts.filter { $0.content != .folder }
            .map { DocumentPart($0.path, $0.content) }
        package.parts.sort { $0.path.lowercased() < $1.path.lowercased() }
        return .package(package)
    }

    /// Puts a file into a package, or takes one out.
    private mutating func change(_ device: String) throws -> String? {
        let packages = self.tree.filter { $0.value.kind == .package }.keys.sorted()
        guard !packages.isEmpty else { return nil }
        let id = packages[self.draw(packages.count)]
        guard let known = self.tree[id] else { return nil }
        var package = DocumentPackage([])
        if case .package(let content)? = known.contents[known.current] { package = content }
        let path = ["a", "e"][self.draw(2)]
        let there = package.parts.first { $0.path == path }
        let isRemoval = self.draw(3) == 0
        var seen: UInt64?
        if there != nil {
            guard
                case .content(_, _, .package(let stored)) = try self.own.ask(
                    .content(id: id, version: nil))
            else { return "no package \(id)" }
            seen = stored.part(path)?.tag
        }
        let part = try self.part(path)
        let edit: DocumentPackageEdit =
            isRemoval
            ? .remove(path: path, seen: seen) : .put(path: path, part.content, seen: seen)
        let result = try self.result(
            .edit(id: id, [edit], countMax: 100, sizeMax: 1 << 20), device)
        if isRemoval, there == nil { return Self.expect(result, .notFound) }
        guard case .item(let item) = result, item.contentTag == item.tag else { return "\(result)" }
        package.parts.removeAll { $0.path == path }
        if !isRemoval { package.parts.append(part) }
        self.tree[id]?.contents[known.current] = nil
        return self.note(
            item, Self.plain(.package(package)), editedAt: item.editedAtMilliseconds, device)
    }

    /// A file is held if and only if it is a content of something that is there.
    private func checkFiles() throws -> String? {
        var named: Set<AssetID> = []
        for item in self.tree.values {
            for content in item.contents.values {
                switch content {
                case .inline: break
                case .file(let file): named.insert(file.asset)
                case .package(let package): named.formUnion(package.files.map(\.asset))
                }
            }
        }
        for file in self.files {
            let row = try AssetRows.asset(file.asset, over: self.own.bench.rows.view)
            guard row?.isHeld ?? false == named.contains(file.asset) else {
                return "file \(file.asset) is \(row?.isHeld == true ? "held" : "not held")"
            }
        }
        return nil
    }

    private static func folded(_ name: String) -> String { name.lowercased() }

    private func isThere(_ folder: String) -> Bool {
        folder == "root" || folder == "documents" || self.tree[folder]?.kind == .folder
    }

    private func holder(_ name: String, _ folder: String) -> String? {
        if folder == "root", Self.folded(name) == "documents" { return "documents" }
        return self.tree.first {
            $0.value.folder == folder && Self.folded($0.value.name) == Self.folded(name)
        }?.key
    }

    private func badName(_ name: String) -> DocumentRefusal? {
        name == ".." ? .nameInvalid : name.hasSuffix(".nosync") ? .staysLocal : nil
    }

    private mutating func create(_ device: String, _ at: Int64) throws -> String? {
        let isFolder = self.draw(3) == 0
        let (name, folder) = (self.name(), self.folder())
        let clash = DocumentOperation.Clash.allCases[self.draw(3)]
        let kind: DocumentItem.Kind = isFolder ? .folder : self.draw(4) == 0 ? .package : .file
        let content = isFolder || self.draw(5) == 0 ? nil : try self.content(of: kind)
        let id = DocumentBench.id(self.nextID)
        let result = try self.result(
            .create(
                id: id, kind, name: name, folder: folder, clash, content: content,
                atMilliseconds: at), device)
        if let refusal = self.badName(name) { return Self.expect(result, refusal) }
        guard self.isThere(folder) else { return Self.expect(result, .folderNotFound) }
        let holder = self.holder(name, folder)
        if let holder, clash == .replace, kind == .file, let known = self.tree[holder],
            known.kind == .file
        {
            guard case .item(let item) = result, item.id == holder else { return "\(result)" }
            // Without a content the old one stays until the next is saved.
            guard let content else {
                return item.contentTag == known.current ? nil : "a content went: \(item)"
            }
            self.tree[holder]?.contents[known.current] = nil
            return self.note(item, content, editedAt: at, device)
        }
        if holder != nil, clash != .rename { return Self.expect(result, .nameTaken) }
        guard case .item(let item) = result, item.id == id, item.folder == folder,
            item.kind == kind
        else { return "\(result)" }
        guard self.holder(item.name, folder) == nil, (holder == nil) == (item.name == name) else {
            return "a name was given twice: \(item)"
        }
        self.nextID += 1
        self.tree[id] = Item(
            kind: kind, name: item.name, folder: folder, editedAt: at, device: device,
            tag: item.tag)
        return content.flatMap { self.note(item, $0, editedAt: at, device) }
    }

    /// Notes a content that became the current one.
    private mutating func note(
        _ item: DocumentItem, _ content: DocumentContent, editedAt: Int64, _ device: String
    ) -> String? {
        guard item.contentTag != 0, self.tree[item.id]?.contents[item.contentTag] == nil else {
            return "a content tag was given twice: \(item)"
        }
        self.tree[item.id]?.contents[item.contentTag] = Self.plain(content)
        self.tree[item.id]?.current = item.contentTag
        self.tree[item.id]?.editedAt = editedAt
        self.tree[item.id]?.device = device
        self.tree[item.id]?.tag = item.tag
        return nil
    }

    private mutating func save(_ device: String, _ at: Int64) throws -> String? {
        let id = self.id()
        let known = self.tree[id]
        let tags = (known?.contents.keys.sorted() ?? []) + [1]
        let basedOn = self.draw(2) == 0 ? known?.current : tags[self.draw(tags.count)]
        let content = try self.content(of: known?.kind ?? .file)
        let ifUnchanged = self.draw(5) == 0
        let result = try self.result(
            .save(
                id: id, content: content, basedOn: basedOn, ifUnchanged: ifUnchanged,
                atMilliseconds: at), device)
        guard let known else { return Self.expect(result, .notFound) }
        guard known.kind != .folder else { return Self.expect(result, .notAFile) }
        if ifUnchanged, basedOn ?? 0 != known.current { return Self.expect(result, .stale) }
        let isConflict =
            known.current != 0 && basedOn != known.current
            && known.contents[known.current] != Self.plain(content)
        if isConflict, known.contents.count > 3 { return Self.expect(result, .tooManyVersions) }
        guard case .item(let item) = result, item.id == id else { return "\(result)" }
        let isLater = (at, device) > (known.editedAt, known.device)
        if !isConflict, known.current != 0, basedOn != known.current, !isLater {
            return item.tag == known.tag ? nil : "an older edit of the same content: \(item)"
        }
        guard isConflict else {
            self.tree[id]?.contents[known.current] = nil
            return self.note(item, content, editedAt: at, device)
        }
        self.conflictCount += 1
        if isLater {
            return self.note(item, content, editedAt: at, device)
        }
        guard item.contentTag == known.current else { return "the earlier edit won: \(item)" }
        // It is kept under the tag of this change.
        self.tree[id]?.contents[item.tag] = Self.plain(content)
        self.tree[id]?.tag = item.tag
        return nil
    }

    private func isBelow(_ folder: String, _ id: String) -> Bool {
        var at = folder
        while at != "root", at != "documents" {
            if at == id { return true }
            guard let item = self.tree[at] else { return false }
            at = item.folder
        }
        return false
    }

    private mutating func place(_ device: String) throws -> String? {
        let id = self.id()
        let name = self.draw(2) == 0 ? nil : self.name()
        let folder = self.draw(3) == 0 ? nil : self.folder()
        let clash: DocumentOperation.Clash = self.draw(2) == 0 ? .refuse : .rename
        let result = try self.result(
            .place(id: id, name: name, folder: folder, clash, tag: nil), device)
        guard let known = self.tree[id] else { return Self.expect(result, .notFound) }
        let wanted = name ?? known.name
        let target = folder ?? known.folder
        if let refusal = self.badName(wanted) { return Self.expect(result, refusal) }
        if target != known.folder {
            if self.isBelow(target, id) { return Self.expect(result, .circle) }
            guard self.isThere(target) else { return Self.expect(result, .folderNotFound) }
        }
        let holder = self.holder(wanted, target)
        if let holder, holder != id, clash == .refuse { return Self.expect(result, .nameTaken) }
        guard case .item(let item) = result, item.id == id, item.folder == target else {
            return "\(result)"
        }
        let other = self.holder(item.name, target)
        guard other == nil || other == id else { return "a name was given twice: \(item)" }
        if holder == nil || holder == id, item.name != wanted {
            return "\(item.name) for \(wanted)"
        }
        self.tree[id]?.name = item.name
        self.tree[id]?.folder = target
        self.tree[id]?.tag = item.tag
        return nil
    }

    private mutating func remove(_ device: String) throws -> String? {
        let id = self.id()
        let result = try self.result(.remove(id: id, basedOn: nil), device)
        guard self.tree[id] != nil else { return Self.expect(result, .notFound) }
        guard result == .removed(id: id) else { return "\(result)" }
        self.forget(id)
        return nil
    }

    private mutating func forget(_ id: String) {
        self.tree[id] = nil
        for (inner, item) in self.tree where item.folder == id { self.forget(inner) }
    }

    private mutating func settle(_ device: String) throws -> String? {
        let files = self.tree.filter { $0.value.contents.count > 1 }.keys.sorted()
        guard !files.isEmpty else { return nil }
        let id = files[self.draw(files.count)]
        guard let known = self.tree[id] else { return nil }
        let tags = known.contents.keys.sorted()
        let current = tags[self.draw(tags.count)]
        let drop = tags.filter { $0 != current && $0 % 3 != 0 }
        let result = try self.result(.settle(id: id, current: current, drop: drop), device)
        guard case .item(let item) = result, item.contentTag == current else { return "\(result)" }
        for tag in drop { self.tree[id]?.contents[tag] = nil }
        self.tree[id]?.current = current
        self.tree[id]?.editedAt = item.editedAtMilliseconds
        self.tree[id]?.device = item.device
        self.tree[id]?.tag = item.tag
        return nil
    }

    private mutating func separate(_ device: String) throws -> String? {
        let files = self.tree.filter { $0.value.contents.count > 1 }.keys.sorted()
        guard !files.isEmpty else { return nil }
        let id = files[self.draw(files.count)]
        guard let known = self.tree[id] else { return nil }
        let result = try self.result(
            .separate(id: id, first: DocumentBench.id(self.nextID)), device)
        guard case .item(let item) = result, item.contentTag == known.current, item.conflicts == 0
        else { return "\(result)" }
        for tag in known.contents.keys.sorted() where tag != known.current {
            guard let made = try self.own.item(DocumentBench.id(self.nextID)),
                made.folder == known.folder, self.holder(made.name, known.folder) == nil
            else { return "content \(tag) of \(id) became no file" }
            self.nextID += 1
            var file = Item(
                kind: known.kind, name: made.name, folder: made.folder,
                editedAt: made.editedAtMilliseconds, device: made.device, tag: made.tag)
            file.contents[made.contentTag] = known.contents[tag]
            file.current = made.contentTag
            self.tree[made.id] = file
            self.tree[id]?.contents[tag] = nil
        }
        self.tree[id]?.tag = item.tag
        return nil
    }

    private mutating func removeData(_ device: String) throws -> String? {
        let result = try self.result(.removeData, device)
        let tops = self.tree.filter { $0.value.folder == "root" }.keys.sorted()
        guard result == .dataRemoved(count: tops.count, hasMore: false) else { return "\(result)" }
        for id in tops { self.forget(id) }
        return nil
    }

    private static func expect(_ result: DocumentResult, _ refusal: DocumentRefusal) -> String? {
        if case .refused(refusal, _) = result { return nil }
        return "\(result), not \(refusal)"
    }

    // MARK: Checks

    private func check() throws -> String? {
        var open = ["root", "documents"]
        var seen = 0
        while let folder = open.popLast() {
            guard let listed = try self.own.list(folder, limit: 3) else { return "no \(folder)" }
            let own = listed.filter { $0.id != "documents" }
            let expected = self.tree.filter { $0.value.folder == folder }
            guard Set(own.map(\.id)) == Set(expected.keys), own.count == expected.count else {
                return "\(folder) holds \(own.map(\.name)), not \(expected.map(\.value.name))"
            }
            for item in own {
                seen += 1
                guard let known = self.tree[item.id], item.name == known.name,
                    item.kind == known.kind, item.contentTag == known.current,
                    item.tag == known.tag,
                    item.conflicts == UInt64(max(0, known.contents.count - 1))
                else { return "\(item) is not \(String(describing: self.tree[item.id]))" }
                if item.kind == .folder {
                    open.append(item.id)
                    continue
                }
                if seen % 4 == 0 {
                    guard try self.own.versions(item.id).map(Set.init) == Set(known.contents.keys)
                    else { return "\(item.id) has other versions" }
                    for (tag, content) in known.contents
                    where try self.own.anyContent(item.id, tag).map(Self.plain) != content {
                        return "content \(tag) of \(item.id) is lost"
                    }
                }
            }
        }
        // What stands in no folder is in itself, or left behind.
        return seen == self.tree.count ? nil : "\(seen) of \(self.tree.count) items can be reached"
    }

    private mutating func follow() throws -> String? {
        var moreComing = true
        while moreComing {
            let page = try self.own.changes(self.position, limit: 1 + self.draw(5))
            if page.isFromStart { self.mirror = [:] }
            for change in page.changes {
                switch change {
                case .changed(let item): self.mirror[item.id] = item
                case .removed(let id): self.mirror[id] = nil
                }
            }
            self.position = page.position
            moreComing = page.moreComing
        }
        // A folder's removal means all below it.
        let reached = self.mirror.filter { entry in
            var at = entry.value.folder
            for _ in 0...64 {
                if at == "root" || at == "documents" { return true }
                guard let above = self.mirror[at] else { return false }
                at = above.folder
            }
            return false
        }
        guard Set(reached.keys) == Set(self.tree.keys) else {
            return "a follower has \(reached.count) items, not \(self.tree.count)"
        }
        for (id, item) in reached
        where item.name != self.tree[id]?.name || item.contentTag != self.tree[id]?.current {
            return "a follower has \(item)"
        }
        return nil
    }
}
