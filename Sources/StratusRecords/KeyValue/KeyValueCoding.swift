import StratusCoding
import StratusModel

// The key-value store in commands, outcomes, questions and answers
//
// | where   | what follows the kind                                                         |
// | ------- | ----------------------------------------------------------------------------- |
// | command | text device, varint batch, signed now, flag first, 8 drawn                    |
// |         | incarnation, varints key count, size, removed keys and devices at most;       |
// |         | count of changes, each text key, signed time, flag and prefixed value           |
// | outcome | flag repeat; count of results (1 taken, 2 superseded, 3 refused and 1 reason);   |
// |         | count of refused keys, each text, 1 reason                                    |
// | query   | database, flag and position, varint limit, count of keys, each a text           |
// | answer  | flag from the start; count of entries, each text key, flag and prefixed value,  |
// |         | text device, varint batch; position, flag more, counters as in their row       |

extension ModifyKeyValues {
    func write(to writer: inout ByteWriter) {
        writer.write(text: self.device)
        writer.write(varint: self.batch)
        writer.write(signed: self.nowMilliseconds)
        writer.write(flag: self.isFirst)
        writer.write(fixed: self.drawnIncarnation.raw)
        writer.write(count: max(0, self.rules.keyCountMax))
        writer.write(count: max(0, self.rules.sizeMax))
        writer.write(count: max(0, self.rules.removedCountMax))
        writer.write(count: max(0, self.rules.deviceCountMax))
        writer.write(count: self.changes.count)
        for change in self.changes {
            writer.write(text: change.key)
            writer.write(signed: change.atMilliseconds)
            writer.write(flag: change.value != nil)
            if let value = change.value { writer.write(prefixed: value) }
        }
    }

    init(from reader: inout ByteReader, in database: DatabaseID) throws(DecodingError) {
        let device = try reader.text()
        let batch = try reader.varint()
        let now = try reader.signed()
        let isFirst = try reader.flag()
        let incarnation = ZoneIncarnation(try reader.fixed64())
        let keyCountMax = try reader.boundedInt()
        let sizeMax = try reader.boundedInt()
        let removedCountMax = try reader.boundedInt()
        let rules = KeyValueRules(
            keyCountMax: keyCountMax, sizeMax: sizeMax, removedCountMax: removedCountMax,
            deviceCountMax: try reader.boundedInt())
        var changes: [Change] = []
        for _ in 0..<(try reader.count(minimumSize: 3)) {
            let key = try reader.text()
            let at = try reader.signed()
            changes.append(
                Change(
                    key: key, atMilliseconds: at,
                    value: try reader.flag() ? try reader.prefixed() : nil))
        }
        self.init(
            database: database, device: device, batch: batch, nowMilliseconds: now,
            isFirst: isFirst, drawnIncarnation: incarnation, rules: rules, changes: changes)
    }
}

extension ByteWriter {
    mutating func write(_ modified: ModifiedKeyValues) {
        self.write(flag: modified.isRepeat)
        self.write(count: modified.results.count)
        for result in modified.results {
            switch result {
            case .taken: self.write(1 as UInt8)
            case .superseded: self.write(2 as UInt8)
            case .refused(let reason):
                self.write(3 as UInt8)
                self.write(reason.rawValue)
            }
        }
        self.write(modified.refused)
    }

    mutating func write(_ refused: [ModifiedKeyValues.Refused]) {
        self.write(count: refused.count)
        for one in refused {
            self.write(text: one.key)
            self.write(one.reason.rawValue)
        }
    }

    mutating func write(_ ask: KeyValuesAsk) {
        self.write(ask.database)
        self.write(flag: ask.after != nil)
        if let after = ask.after { self.write(after) }
        self.write(count: max(0, ask.limit))
        self.write(texts: ask.keys)
    }

    mutating func write(_ page: KeyValuesPage) {
        self.write(flag: page.isFromStart)
        self.write(count: page.entries.count)
        for entry in page.entries {
            self.write(text: entry.key)
            self.write(flag: entry.value != nil)
            if let value = entry.value { self.write(prefixed: value) }
            self.write(text: entry.device)
            self.write(varint: entry.batch)
        }
        self.write(page.position)
        self.write(flag: page.moreComing)
        self.write(page.use)
    }
}

extension ByteReader {
    mutating func modifiedKeyValues() throws(DecodingError) -> ModifiedKeyValues {
        let isRepeat = try self.flag()
        var results: [ModifiedKeyValues.Result] = []
        for _ in 0..<(try self.count()) {
            switch try self.byte() {
            case 1: results.append(.taken)
            case 2: results.append(.superseded)
            case 3: results.append(.refused(try self.keyValueRefusal()))
            default: throw DecodingError(.malformed, at: self.offset - 1)
            }
        }
        return ModifiedKeyValues(
            isRepeat: isRepeat, results: results, refused: try self.refusedKeys())
    }

    mutating func refusedKeys() throws(DecodingError) -> [ModifiedKeyValues.Refused] {
        var refused: [ModifiedKeyValues.Refused] = []
        for _ in 0..<(try self.count(minimumSize: 2)) {
            let key = try self.text()
            refused.append(ModifiedKeyValues.Refused(key: key, reason: try self.keyValueRefusal()))
        }
        return refused
    }

    private mutating func keyValueRefusal() throws(DecodingError) -> KeyValueRefusal {
        guard let reason = KeyValueRefusal(rawValue: try self.byte()) else {
            throw DecodingError(.malformed, at: self.offset - 1)
        }
        return reason
    }

    mutating func keyValuesAsk() throws(DecodingError) -> KeyValuesAsk {
        let database = try self.database()
        let after = try self.flag() ? try self.feedPosition() : nil
        let limit = try self.boundedInt()
        return KeyValuesAsk(
            database: database, after: after, limit: limit, keys: try self.texts())
    }

    mutating func keyValuesPage() throws(DecodingError) -> KeyValuesPage {
        let isFromStart = try self.flag()
        var entries: [KeyValuesPage.Entry] = []
        for _ in 0..<(try self.count(minimumSize: 4)) {
            let key = try self.text()
            let value = try self.flag() ? try self.prefixed() : nil
            let device = try self.text()
            entries.append(
                KeyValuesPage.Entry(
                    key: key, value: value, device: device, batch: try self.varint()))
        }
        let position = try self.feedPosition()
        let moreComing = try self.flag()
        return KeyValuesPage(
            isFromStart: isFromStart, entries: entries, position: position,
            moreComing: moreComing, use: try self.keyValueUse())
    }
}
