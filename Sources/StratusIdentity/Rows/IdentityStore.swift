package import StratusCluster
package import StratusModel
package import StratusRecords

/// The rows of people and credentials, wherever their partitions are. Commands and reads go through
/// the client, like those for all other data that must not be lost.
package struct IdentityStore: Sendable {
    package let partitions: PartitionClient
    package let keys: IdentityKeys
    /// How long a command may be carried out that was decided by something read before. Other nodes
    /// count on it before they destroy a key, so no setting changes it.
    package static let patience = Duration.seconds(10)

    package init(partitions: PartitionClient, keys: IdentityKeys) {
        self.partitions = partitions
        self.keys = keys
    }

    package var plain: PlainPartitions { self.partitions.plain }
    package var world: any World { self.partitions.world }
    package var now: Int64 { self.world.wallMilliseconds }

    /// Unpredictable bytes, a multiple of eight of them.
    package func draw(_ count: Int) -> Bytes {
        (0..<(count / 8)).flatMap { _ in
            withUnsafeBytes(of: self.world.random()) { Bytes($0) }
        }
    }

    /// Live rows only.
    package func rows(_ keys: [IdentityKey], at key: ShardKey) async throws(RouteError)
        -> [IdentityRow?]
    {
        guard
            case .rows(let rows) = try await self.plain.ask(IdentityQuery.rows(keys), at: .key(key)),
            rows.count == keys.count
        else { throw .otherKind }
        let now = self.now
        return rows.map { $0.flatMap { $0.isLive(at: now) ? $0 : nil } }
    }

    package func row(_ key: IdentityKey, at shard: ShardKey) async throws(RouteError)
        -> IdentityRow?
    {
        try await self.rows([key], at: shard)[0]
    }

    /// Every live row of a kind and home, in pages; `countMax` of them at most.
    package func list(
        _ kind: IdentityKey.Kind, of home: Bytes, at key: ShardKey, countMax: Int = 10_000
    ) async throws(RouteError) -> [IdentityAnswer.Listed] {
        var all: [IdentityAnswer.Listed] = []
        let now = self.now
        while all.count < countMax {
            let limit = min(1_000, countMax - all.count)
            guard
                case .list(let page) = try await self.plain.ask(
                    IdentityQuery.list(
                        kind, home: home, after: all.last?.name, limit: limit), at: .key(key))
            else { throw .otherKind }
            all += page
            if page.count < limit, !Self.isCut(page) { break }
        }
        return all.filter { $0.row.isLive(at: now) }
    }

    /// Whether a page may have ended by its size, with more behind it.
    private static func isCut(_ page: [IdentityAnswer.Listed]) -> Bool {
        let size = page.reduce(0) { $0 + $1.row.body.count + $1.name.count + 64 }
        return size >= IdentityQuery.listSizeMax / 2
    }

    /// Up to `limit` rows after a name, from the beginning or from the end. From the end there may
    /// be fewer where rows are large.
    package func page(
        _ kind: IdentityKey.Kind, of home: Bytes, at key: ShardKey, after name: Bytes? = nil,
        limit: Int, descending: Bool = false
    ) async throws(RouteError) -> [IdentityAnswer.Listed] {
        var all: [IdentityAnswer.Listed] = []
        let limit = min(1_000, limit)
        while true {
            let query = IdentityQuery.list(
                kind, home: home, after: all.last?.name ?? name, limit: limit - all.count,
                descending: descending)
            guard case .list(let page) = try await self.plain.ask(query, at: .key(key)) else {
                throw .otherKind
            }
            all += page
            if descending || all.count >= limit || !Self.isCut(page) { return all }
        }
    }

    /// The time after which a command that is submitted now, by a fixed deadline, is carried out no
    /// more.
    package var deadlineMilliseconds: Int64 {
        self.now + Self.patience.clampedNanoseconds / 1_000_000 + self.partitions.leadMilliseconds
    }

    /// All of the edits or none.
    ///
    /// - Parameter deadline: for what was decided by something that was read before, the
    ///   ``deadlineMilliseconds`` from before it was read. Nil: from now.
    package func submit(
        _ edits: [IdentityCommand.Edit], to key: ShardKey, by deadline: Int64? = nil
    ) async throws(RouteError) -> IdentityOutcome {
        try await self.plain.submit(
            IdentityCommand(edits), at: .key(key), as: .system().fixed(by: deadline))
    }

    /// Decides over a row and writes what was decided, again where somebody was faster.
    ///
    /// - Parameters:
    ///   - deadline: as in ``submit(_:to:by:)``.
    ///   - decide: nil leaves the row as it is.
    /// - Returns: whether it was written.
    @discardableResult
    package func update(
        _ key: IdentityKey, at shard: ShardKey, by deadline: Int64? = nil,
        _ decide: (IdentityRow?) throws(RouteError) -> IdentityCommand.Change?
    ) async throws(RouteError) -> Bool {
        for _ in 0..<16 {
            let row = try await self.row(key, at: shard)
            guard let change = try decide(row) else { return false }
            let condition: IdentityCommand.Condition = row.map { .revision($0.revision) } ?? .absent
            switch try await self.submit(
                [.init(key, if: condition, change)], to: shard, by: deadline)
            {
            case .done: return true
            case .conflict: continue
            case .limited, .refused: throw .refused("a change that is no change")
            }
        }
        throw .notExecuted(retryAfter: .seconds(1))
    }
}

extension RouteError {
    /// A row that this version cannot read.
    static var unreadableRow: RouteError { .unreadable("a row that cannot be read") }
}
