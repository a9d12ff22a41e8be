import StratusHTTP
import StratusModel
import StratusRecords
import StratusRuntime

/// Copies.
///
/// What one entry takes is copied by one command, as a picture of one moment. A larger folder is
/// copied item by item in several commands, so that nobody waits for it. Until it is whole, the copy
/// stands under a name of its own beside its place; the last command gives it its name, and removes
/// what it replaces. Of the source, what changes meanwhile may be in the copy or not.
extension DAVService {
    /// Items of one copy, and bytes of the files in records among them.
    static let copyCountMax = 2_000
    static let copySizeMax = 32 << 20
    private static let copyTimeMax: Duration = .seconds(20)
    private static let stepCountMax = 100

    /// - Parameter old: removes what is at the destination.
    func copy(
        _ item: DocumentItem, as copy: DocumentCopy, removing old: [DocumentOperation],
        _ shown: [String]
    ) async throws {
        let results = try await self.results(old + [.copy(copy, tag: item.tag)], shown)
        // What else is refused would be refused again at the end.
        let isTooMuch = results.allSatisfy { result in
            guard case .refused(let refusal, _) = result else { return false }
            return [.tooManyItems, .contentTooLarge, .atomicFailure].contains(refusal)
        }
        if isTooMuch, item.kind == .folder, copy.isDeep {
            return try await self.copyInSteps(item, as: copy, removing: old, shown)
        }
        try self.check(results)
    }

    private func copyInSteps(
        _ item: DocumentItem, as copy: DocumentCopy, removing old: [DocumentOperation],
        _ shown: [String]
    ) async throws {
        let steps = try await self.steps(of: copy)
        let end = self.exchange.kernel.world.now + Self.copyTimeMax
        var top = copy
        top.name = "Copying \(copy.id.prefix(8))"
        top.isDeep = false
        _ = try await self.again.submit([.copy(top, tag: item.tag)], shown)
        do {
            for step in steps {
                guard self.exchange.kernel.world.now < end else {
                    throw DAVFailure(503, "the copy takes too long: copy what is in it")
                }
                try await self.again.take(step, shown)
            }
        } catch {
            await self.giveUp(top, shown)
            throw error
        }
        do {
            try await self.again.finish(top, as: copy.name, removing: old, shown)
        } catch let failure as DAVFailure {
            // It was decided. Whatever else is thrown says nothing of whether it has its name.
            await self.giveUp(top, shown)
            throw failure
        }
    }

    /// Carries out some copies, each on its own.
    private func take(_ step: [DocumentOperation], _ shown: [String]) async throws {
        for case .refused(let refusal, let subject) in try await self.results(
            step, isAtomic: false, shown)
        {
            switch refusal {
            // It has gone since it was listed, or its folder has.
            case .notFound, .folderNotFound: continue
            default: throw DAVFailure(refusal, subject: subject)
            }
        }
    }

    private func finish(
        _ top: DocumentCopy, as name: String, removing old: [DocumentOperation], _ shown: [String]
    ) async throws {
        do {
            _ = try await self.submit(
                old + [.place(id: top.id, name: name, folder: top.folder, .refuse, tag: nil)],
                shown)
        } catch is Overtaken {
            throw DAVFailure(503, "others change the same items: try again later")
        }
    }

    /// Removes what was copied so far. Where that fails, it stays under its own name.
    private func giveUp(_ top: DocumentCopy, _ shown: [String]) async {
        _ = try? await self.again.results([.remove(id: top.id, basedOn: nil)], shown)
    }

    /// The same request with a deadline of its own.
    private var again: DAVService {
        DAVService(
            documents: DocumentService(exchange: self.exchange.again()), route: self.route,
            showsAll: self.showsAll, content: nil, first: nil, files: self.files)
    }

    // MARK: What is copied

    /// What is below the source, as copies of single items: folders before what is in them. Nothing
    /// is written before all of it is known, and no content is read.
    private func steps(of copy: DocumentCopy) async throws -> [[DocumentOperation]] {
        var draws = self.exchange.draws()
        var open: [(source: String, id: String)] = [(copy.source, copy.id)]
        var next = 0
        var steps = CopySteps(countMax: Self.stepCountMax, sizeMax: DocumentCopy.entrySizeMax)
        var (count, size) = (1, 0)
        while next < open.count {
            let folder = open[next]
            next += 1
            var after: Bytes?
            repeat {
                guard
                    case .list(let items, let more) = try await self.documents.ask(
                        .list(folder: folder.source, after: after, limit: 200))
                else { throw RouteError.otherKind }
                guard let items else { throw Overtaken.changed }
                for item in items {
                    let id = draws.documentID()
                    if item.kind == .folder { open.append((item.id, id)) }
                    count += 1
                    guard count <= Self.copyCountMax else {
                        throw DAVFailure(.tooManyItems, subject: String(Self.copyCountMax))
                    }
                    let inRecord = Self.sizeInRecord(item)
                    if item.kind == .file { size += inRecord }
                    guard size <= Self.copySizeMax else {
                        throw DAVFailure(.contentTooLarge, subject: String(Self.copySizeMax))
                    }
                    steps.add(
                        .copy(
                            DocumentCopy(
                                source: item.id, name: item.name, folder: folder.id, id: id,
                                isDeep: false), tag: nil), size: inRecord)
                }
                after = more
            } while after != nil
        }
        return steps.all
    }

    /// The most that its content takes in a record, as its item says.
    private static func sizeInRecord(_ item: DocumentItem) -> Int {
        switch item.kind {
        case .folder: 0
        case .file: item.size <= UInt64(DocumentFiles.inlineSizeMax) ? Int(item.size) : 0
        // Its list may hold anything.
        case .package: DocumentPackage.sizeMax
        }
    }
}

/// Operations in groups, each of which one entry takes.
private struct CopySteps {
    let countMax: Int
    let sizeMax: Int
    private(set) var all: [[DocumentOperation]] = []
    private var size = 0

    init(countMax: Int, sizeMax: Int) {
        self.countMax = countMax
        self.sizeMax = sizeMax
    }

    mutating func add(_ operation: DocumentOperation, size: Int) {
        let count = self.all.last?.count ?? self.countMax
        if count < self.countMax, self.size + size <= self.sizeMax {
            self.all[self.all.count - 1].append(operation)
            self.size += size
        } else {
            self.all.append([operation])
            self.size = size
        }
    }
}
