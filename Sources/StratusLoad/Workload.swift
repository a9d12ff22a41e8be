import StratusModel

/// One thing a client does.
package enum Step: Sendable, Equatable {
    case save(Int)
    /// Several records in one request.
    case batch([Int])
    case lookup(Int)
    /// The next `limit` records from a number on, sorted by it.
    case query(from: Int, limit: Int)
    /// Asks for the changes since this client's last request.
    case sync
    /// A lookup, then a save of the same record.
    case readModifyWrite(Int)

    package enum Kind: String, Sendable, CaseIterable {
        case save, batch, lookup, query, sync
        case readModifyWrite = "read-modify-write"
    }

    package var kind: Kind {
        switch self {
        case .save: .save
        case .batch: .batch
        case .lookup: .lookup
        case .query: .query
        case .sync: .sync
        case .readModifyWrite: .readModifyWrite
        }
    }
}

/// The operations of clients, their proportions, and the records they use.
package struct Workload: Sendable, Equatable {
    package enum Part: Sendable, Equatable {
        case save, batch, lookup, query, sync, readModifyWrite
        /// A save of a record that was not there.
        case insert
    }

    package var name: String
    package var summary: String
    package var parts: [(part: Part, weight: Int)]
    package var keys: KeyChoice

    package static func == (one: Self, other: Self) -> Bool { one.name == other.name }

    /// Records of one batch: what CloudKit's own clients send on average.
    package static let batchCount = 8
    /// Records of one answer to a query.
    package static let queryLimit = 20

    package static let all: [Workload] = [
        Workload(
            name: "save", summary: "single saves", parts: [(.save, 1)], keys: .uniform),
        Workload(
            name: "batch", summary: "saves of eight records each", parts: [(.batch, 1)],
            keys: .uniform),
        Workload(
            name: "lookup", summary: "single lookups", parts: [(.lookup, 1)],
            keys: .uniform),
        Workload(
            name: "query", summary: "queries for the next twenty records by an index, sorted",
            parts: [(.query, 1)],
            keys: .uniform),
        Workload(
            name: "sync", summary: "one save for every four fetches of changes",
            parts: [(.save, 1), (.sync, 4)], keys: .uniform),
        Workload(
            name: "cloudkit",
            summary:
                "batches, queries, lookups and fetches of changes, as clients of CloudKit mix them",
            parts: [(.batch, 3), (.query, 2), (.lookup, 2), (.sync, 3)], keys: .zipfian),
        Workload(
            name: "ycsb-a", summary: "half saves, half lookups",
            parts: [(.lookup, 1), (.save, 1)],
            keys: .zipfian),
        Workload(
            name: "ycsb-b", summary: "one save for every nineteen lookups",
            parts: [(.lookup, 19), (.save, 1)], keys: .zipfian),
        Workload(
            name: "ycsb-c", summary: "lookups only", parts: [(.lookup, 1)], keys: .zipfian),
        Workload(
            name: "ycsb-d", summary: "mostly lookups of the newest records, and some new records",
            parts: [(.lookup, 19), (.insert, 1)], keys: .latest),
        Workload(
            name: "ycsb-e", summary: "mostly short range queries, and some new records",
            parts: [(.query, 19), (.insert, 1)], keys: .zipfian),
        Workload(
            name: "ycsb-f", summary: "half lookups, half lookups followed by a save",
            parts: [(.lookup, 1), (.readModifyWrite, 1)], keys: .zipfian),
    ]

    package static func named(_ name: String) -> Workload? { self.all.first { $0.name == name } }
}

/// Draws what comes next. The same seed draws the same.
package struct StepSource: Sendable {
    private let workload: Workload
    private let weight: Int
    private let zipfian: Zipfian?
    private var generator: SeededGenerator
    /// Records that were there before.
    private let recordCount: Int
    /// The number of its own inserts: this source does not know those of others, and asks only for
    /// its own.
    private var insertedCount = 0
    private let offset: Int
    private let stride: Int

    /// - Parameters:
    ///   - offset, stride: source number `offset` of `stride`, so that no two insert the same
    ///     record.
    package init(
        _ workload: Workload, recordCount: Int, seed: UInt64, offset: Int = 0, stride: Int = 1,
        zipfian: Zipfian? = nil
    ) {
        self.workload = workload
        self.weight = workload.parts.reduce(0) { $0 + $1.weight }
        self.recordCount = max(1, recordCount)
        self.offset = offset
        self.stride = stride
        self.generator = SeededGenerator(seed: seed)
        self.zipfian =
            workload.keys == .uniform ? nil : zipfian ?? Zipfian(count: max(1, recordCount))
    }

    package mutating func next() -> Step {
        var rest = Int(self.generator.next() % UInt64(self.weight))
        for (part, weight) in self.workload.parts {
            rest -= weight
            if rest < 0 { return self.step(part) }
        }
        preconditionFailure("weights that do not add up")
    }

    private mutating func step(_ part: Workload.Part) -> Step {
        switch part {
        case .save: return .save(self.key())
        case .lookup: return .lookup(self.key())
        case .query: return .query(from: self.key(), limit: Workload.queryLimit)
        case .sync: return .sync
        case .readModifyWrite: return .readModifyWrite(self.key())
        case .insert:
            self.insertedCount += 1
            return .save(self.inserted(self.insertedCount - 1))
        case .batch:
            // A request names a record once.
            var keys: [Int] = []
            while keys.count < Workload.batchCount {
                let key = self.key()
                keys.append(keys.contains(key) ? (keys.max() ?? key) + 1 : key)
            }
            return .batch(keys)
        }
    }

    private func inserted(_ number: Int) -> Int {
        self.recordCount + self.offset + number * self.stride
    }

    private mutating func key() -> Int {
        let draw = self.generator.next()
        guard let zipfian = self.zipfian else { return Int(draw % UInt64(self.recordCount)) }
        let rank = zipfian.rank(draw)
        if self.workload.keys == .latest {
            return rank < self.insertedCount
                ? self.inserted(self.insertedCount - 1 - rank)
                : max(0, self.recordCount - 1 - (rank - self.insertedCount))
        }
        // Scattered, so that what is asked for often does not lie side by side.
        var scatter = SeededGenerator(seed: UInt64(rank))
        return Int(scatter.next() % UInt64(self.recordCount))
    }
}
