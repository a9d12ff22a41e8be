package import StratusCluster
package import StratusModel
package import StratusRecords

/// The rows of people and credentials, wherever their partitions are. Commands and reads go through
/// the router, like those for all other data that must not be lost.
package struct IdentityStore: Sendable {
    package let router: any PartitionRouter
    package let world: any World
    package let keys: IdentityKeys
    /// How long a caller waits for a partition.
    package static let patience = Duration.seconds(10)

    package init(router: any PartitionRouter, world: any World, keys: IdentityKeys) {
        self.router = router
        self.world = world
        self.keys = keys
    }

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
        guard case .rows(let rows) = try await self.ask(.rows(keys), at: key),
            rows.count == keys.count
        else { throw .refused("an answer of another kind") }
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
                case .list(let page) = try await self.ask(
                    .list(kind, home: home, after: all.last?.name, limit: limit), at: key)
            else { throw .refused("an answer of another kind") }
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
            guard case .list(let page) = try await self.ask(query, at: key) else {
                throw .refused("an answer of another kind")
            }
            all += page
            if descending || all.count >= limit || !Self.isCut(page) { return all }
        }
    }

    private func ask(_ query: IdentityQuery, at key: ShardKey) async throws(RouteError)
        -> IdentityAnswer
    {
        let answer = try await self.router.read(
            query.enveloped(), at: key, deadline: self.world.now + Self.patience)
        do { return try IdentityAnswer(decoding: answer.body) } catch {
            throw .refused("an answer that cannot be read")
        }
    }

    /// The time after which a command that is submitted now, by a fixed deadline, is carried out no
    /// more.
    package var deadlineMilliseconds: Int64 {
        self.now + Self.patience.clampedNanoseconds / 1_000_000 + self.router.leadMilliseconds
    }

    /// All of the edits or none.
    ///
    /// - Parameter deadline: for what was decided by something that was read before, the
    ///   ``deadlineMilliseconds`` from before it was read. Nil: from now.
    package func submit(
        _ edits: [IdentityCommand.Edit], to key: ShardKey, by deadline: Int64? = nil
    ) async throws(RouteError) -> IdentityOutcome {
        let command = IdentityCommand(edits).enveloped(
            identity: self.world.drawIdentity(),
            deadlineMilliseconds: deadline
                ?? self.now + Self.patience.clampedNanoseconds / 1_000_000)
        let outcome = try await self.router.submit(
            command, to: key, deadline: self.world.now + Self.patience,
            mayRunLater: deadline == nil)
        switch outcome.verdict {
        case .decided: break
        case .expired: throw .notExecuted(retryAfter: .seconds(1))
        case .unreadable, .none: throw .refused("the partition cannot read the command")
        }
        do { return try IdentityOutcome(decoding: outcome.body) } catch {
            throw .refused("an outcome that cannot be read")
        }
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
    static let unreadable = RouteError.refused("a row that cannot be read")
}
