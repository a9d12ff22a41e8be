import StratusCoding
import StratusModel
import StratusRows
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
    ) throws -> Result<ModifiedKeyValues, RequestRefusal> {
        let time = self.milliseconds
        let modify = ModifyKeyValues(Bench.privateDatabase) {
            $0.device = device
            $0.batch = batch
            $0.nowMilliseconds = now ?? time
            $0.isFirst = first
            $0.drawnIncarnation = ZoneIncarnation(self.bench.index + 1_000)
            $0.rules = self.rules
            $0.changes = changes
        }
        return try self.bench.apply(modify, as: principal)
    }

    @discardableResult
    mutating func modified(
        _ device: String, batch: UInt64, now: Int64? = nil, first: Bool = false,
        _ changes: ModifyKeyValues.Change...
    ) throws -> ModifiedKeyValues {
        try self.send(device, batch: batch, now: now, first: first, changes).get()
    }

    func page(after: FeedPosition? = nil, limit: UInt32 = 500, keys: [String] = []) throws
        -> KeyValuesPage
    {
        let ask = KeyValuesAsk(Bench.privateDatabase) {
            $0.after = after
            $0.limit = limit
            $0.keys = keys
        }
        return try self.bench.ask(ask).get()
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
        Self.change(key, at, Bytes(repeating: fill, count: size))
    }

    static func remove(_ key: String, at: Int64) -> Self {
        Self.change(key, at, nil)
    }

    static func change(_ key: String, _ at: Int64, _ value: Bytes?) -> Self {
        Self {
            $0.key = key
            $0.atMilliseconds = at
            $0.value = value
        }
    }
}
