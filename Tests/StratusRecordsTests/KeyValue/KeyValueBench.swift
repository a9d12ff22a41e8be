import StratusModel
import Testing

@testable import StratusRecords

/// A partition with one key-value store, and short words to drive it.
struct KeyValueBench {
    var bench = Bench()
    var rules = KeyValueRules()

    /// The time of the next entry.
    var milliseconds: Int64 {
        get { self.bench.time.milliseconds + 10 }
        set { self.bench.time = HybridTime(milliseconds: newValue - 10) }
    }

    mutating func send(
        _ device: String, batch: UInt64, now: Int64? = nil, first: Bool = false,
        as principal: Principal = Bench.user, _ changes: [ModifyKeyValues.Change]
    ) throws -> RecordOutcome {
        let time = self.milliseconds
        return try self.bench.apply(
            .modifyKeyValues(
                ModifyKeyValues(
                    database: Bench.privateDatabase, device: device, batch: batch,
                    nowMilliseconds: now ?? time, isFirst: first,
                    drawnIncarnation: ZoneIncarnation(self.bench.index + 1_000),
                    rules: self.rules, changes: changes)), as: principal)
    }

    @discardableResult
    mutating func modified(
        _ device: String, batch: UInt64, now: Int64? = nil, first: Bool = false,
        _ changes: ModifyKeyValues.Change...
    ) throws -> ModifiedKeyValues {
        let outcome = try self.send(device, batch: batch, now: now, first: first, changes)
        guard case .keyValues(let modified) = outcome else { throw BenchError("\(outcome)") }
        return modified
    }

    func page(after: FeedPosition? = nil, limit: Int = 500, keys: [String] = []) throws
        -> KeyValuesPage
    {
        let ask = KeyValuesAsk(
            database: Bench.privateDatabase, after: after, limit: limit, keys: keys)
        guard case .keyValues(let page) = try self.bench.ask(.keyValues(ask)) else {
            throw BenchError("no page")
        }
        return page
    }

    /// The keys that have a value, with the value's bytes.
    func values() throws -> [String: Bytes] {
        var values: [String: Bytes] = [:]
        for entry in try self.page(limit: 2_000).entries { values[entry.key] = entry.value }
        return values
    }
}

extension ModifyKeyValues.Change {
    static func set(_ key: String, _ size: Int = 1, fill: UInt8 = 1, at: Int64) -> Self {
        Self(key: key, atMilliseconds: at, value: Bytes(repeating: fill, count: size))
    }

    static func remove(_ key: String, at: Int64) -> Self {
        Self(key: key, atMilliseconds: at, value: nil)
    }
}
