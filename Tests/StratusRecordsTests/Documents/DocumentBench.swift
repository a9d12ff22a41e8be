import StratusModel
import Testing

@testable import StratusRecords

/// A partition with one user's documents, and short words to drive it.
struct DocumentBench {
    var bench = Bench()
    var rules = DocumentRules()

    var milliseconds: Int64 {
        get { self.bench.time.milliseconds + 10 }
        set { self.bench.time = HybridTime(milliseconds: newValue - 10) }
    }

    static func id(_ number: Int) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 32 - digits.count) + digits
    }

    mutating func outcome(
        _ operations: [DocumentOperation], device: String = "mac", now: Int64? = nil,
        atomic: Bool = true, as principal: Principal = Bench.user
    ) throws -> RecordOutcome {
        let time = self.milliseconds
        return try self.bench.apply(
            .modifyDocuments(
                ModifyDocuments(
                    database: Bench.privateDatabase, device: device,
                    nowMilliseconds: now ?? time,
                    drawnIncarnation: ZoneIncarnation(self.bench.index + 1_000),
                    isAtomic: atomic, rules: self.rules, operations: operations)),
            as: principal)
    }

    @discardableResult
    mutating func run(
        _ operations: DocumentOperation..., device: String = "mac", atomic: Bool = true
    ) throws -> [DocumentResult] {
        let outcome = try self.outcome(operations, device: device, atomic: atomic)
        guard case .documents(let results) = outcome else { throw BenchError("\(outcome)") }
        return results
    }

    /// The item that one operation leaves.
    @discardableResult
    mutating func item(
        _ operation: DocumentOperation, device: String = "mac"
    ) throws -> DocumentItem {
        let results = try self.run(operation, device: device)
        guard case .item(let item) = results[0] else { throw BenchError("\(results)") }
        return item
    }

    mutating func refusal(_ operation: DocumentOperation) throws -> DocumentRefusal? {
        if case .refused(let refusal, _) = try self.run(operation)[0] { return refusal }
        return nil
    }

    @discardableResult
    mutating func folder(_ number: Int, _ name: String, in folder: String = "root") throws
        -> String
    {
        try self.item(
            .create(
                id: Self.id(number), .folder, name: name, folder: folder, .refuse, content: nil,
                atMilliseconds: self.milliseconds)
        ).id
    }

    @discardableResult
    mutating func file(
        _ number: Int, _ name: String, in folder: String = "root", _ content: Bytes? = [1],
        _ clash: DocumentOperation.Clash = .refuse
    ) throws -> DocumentItem {
        try self.item(self.create(number, name, in: folder, content, clash))
    }

    func create(
        _ number: Int, _ name: String, in folder: String = "root", _ content: Bytes? = [1],
        _ clash: DocumentOperation.Clash = .refuse
    ) -> DocumentOperation {
        .create(
            id: Self.id(number), .file, name: name, folder: folder, clash,
            content: content.map { .inline($0) }, atMilliseconds: self.milliseconds)
    }

    func save(
        _ id: String, _ content: Bytes, basedOn: UInt64?, ifUnchanged: Bool = false,
        ago: Int64 = 0
    ) -> DocumentOperation {
        .save(
            id: id, content: .inline(content), basedOn: basedOn, ifUnchanged: ifUnchanged,
            atMilliseconds: self.milliseconds - ago)
    }

    /// A file as its upload leaves it. Its database must have a key.
    mutating func upload(
        _ number: UInt128, size: UInt64 = 300, checksum: String? = nil
    ) throws -> DocumentFile {
        var pin = AssetGoldens.pin(
            number, body: number + 1_000_000, upload: number, digest: nil, size: size)
        pin.fileChecksum = checksum ?? "sum\(number)"
        pin.stored.orphanAfterMilliseconds = self.milliseconds + 3_600_000
        let pinned = try self.bench.apply(pin).get()
        return DocumentFile(
            asset: pinned.asset, checksum: pinned.fileChecksum, size: size)
    }

    func ask(_ question: DocumentsAsk.Question) throws -> DocumentsAnswer {
        let ask = DocumentsAsk(database: Bench.privateDatabase, question)
        guard case .documents(let answer) = try self.bench.ask(.documents(ask)) else {
            throw BenchError("another answer")
        }
        return answer
    }

    /// Everything in a folder, page by page; nil: there is no such folder.
    func list(_ folder: String, limit: Int = 200) throws -> [DocumentItem]? {
        var found: [DocumentItem] = []
        var after: Bytes?
        repeat {
            guard
                case .list(let items, let next) = try self.ask(
                    .list(folder: folder, after: after, limit: limit))
            else { throw BenchError("no list") }
            guard let items else { return nil }
            found += items
            after = next
        } while after != nil
        return found
    }

    func lookup(_ path: String) throws -> DocumentItem? {
        let names = path.split(separator: "/").map { String($0) }
        guard case .lookup(let found) = try self.ask(.lookup([.path(names)])) else {
            throw BenchError("no look-up")
        }
        return found[0]
    }

    func item(_ id: String) throws -> DocumentItem? {
        guard case .lookup(let found) = try self.ask(.lookup([.id(id)])) else {
            throw BenchError("no look-up")
        }
        return found[0]
    }

    func content(_ id: String, _ version: UInt64? = nil) throws -> Bytes? {
        guard
            case .content(let item, _, .inline(let bytes)) = try self.ask(
                .content(id: id, version: version))
        else { throw BenchError("no content") }
        return item == nil ? nil : bytes
    }

    /// The content, wherever its bytes are.
    func anyContent(_ id: String, _ version: UInt64) throws -> DocumentContent? {
        guard
            case .content(let item, _, let content) = try self.ask(
                .content(id: id, version: version))
        else { throw BenchError("no content") }
        return item == nil ? nil : content
    }

    func versions(_ id: String) throws -> [UInt64]? {
        guard case .versions(let versions) = try self.ask(.versions(id: id)) else {
            throw BenchError("no versions")
        }
        return versions?.map(\.contentTag)
    }

    func changes(_ after: FeedPosition? = nil, limit: Int = 200) throws -> DocumentChangesPage {
        guard case .changes(let page) = try self.ask(.changes(after: after, limit: limit)) else {
            throw BenchError("no changes")
        }
        return page
    }
}
