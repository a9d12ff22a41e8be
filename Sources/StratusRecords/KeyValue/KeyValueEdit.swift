import StratusCoding
import StratusModel
import StratusRows

/// Decides one batch of changes to a key-value store, in order, over its zone.
///
/// Of two changes of a key the greater one stands: first by effective time, which is the time of
/// the entry that brought it minus the age that the device stated, then by the device's name. A
/// device knows the order of its own changes, so its later change always takes the place of its
/// earlier one.
struct KeyValueEdit {
    var zone: ZoneEdit
    let modify: ModifyKeyValues
    let principal: Principal
    private(set) var use: KeyValueUse
    private(set) var refused: [ModifiedKeyValues.Refused] = []
    /// Removed keys that came and went, by the tags of their rows.
    private var addedRemovals: [ChangeTag: String] = [:]
    private var droppedRemovals: Set<ChangeTag> = []

    init(
        _ modify: ModifyKeyValues, zone: ZoneEdit, principal: Principal, use: KeyValueUse
    ) {
        self.zone = zone
        self.modify = modify
        self.principal = principal
        self.use = use
    }

    private var bugs: PlantedBugs { self.zone.bugs }

    mutating func run(
        over rows: RowView
    ) throws(StoreError) -> [ModifiedKeyValues.Result] {
        var results: [ModifiedKeyValues.Result] = []
        for change in self.modify.changes {
            let result = try self.decide(change, over: rows)
            if case .refused(let reason) = result {
                self.refused.append(
                    ModifiedKeyValues.Refused {
                        $0.key = change.key
                        $0.reason = reason
                    })
            }
            results.append(result)
        }
        try self.forgetOldestRemovals(over: rows)
        return results
    }

    private func effectiveTime(of change: ModifyKeyValues.Change) -> Int64 {
        if self.bugs.contains(.deviceClockTrusted) { return change.atMilliseconds }
        let (span, isOverflow) = self.modify.nowMilliseconds.subtractingReportingOverflow(
            change.atMilliseconds)
        let isPast = change.atMilliseconds < self.modify.nowMilliseconds
        // A change of the future, by the device's own clock, is one of now.
        let age = !isPast ? 0 : isOverflow ? .max : span
        return self.zone.milliseconds - min(age, self.zone.milliseconds)
    }

    private mutating func decide(
        _ change: ModifyKeyValues.Change, over rows: RowView
    ) throws(StoreError) -> ModifiedKeyValues.Result {
        guard KeyValueStore.isKey(change.key) else { return .refused(.keyInvalid) }
        let name = KeyValueKeys.recordName(change.key)
        let record = try self.zone.record(name, over: rows)
        let known = try record.map { record throws(StoreError) in try KeyValueRecord(record) }
        if self.modify.isFirst, known?.value != nil { return .superseded }
        var at = self.effectiveTime(of: change)
        if let known {
            if known.device == self.modify.device {
                // A batch of a device that was forgotten may come once more, behind later ones.
                if known.batch > self.modify.batch { return .superseded }
                at = max(at, known.atMilliseconds)
            } else {
                let isOlder = (at, self.modify.device) < (known.atMilliseconds, known.device)
                if isOlder != self.bugs.contains(.olderValueWins) { return .superseded }
            }
        }
        if let refusal = self.refusal(of: change.value, over: known?.value) {
            return .refused(refusal)
        }
        let new = KeyValueRecord(
            atMilliseconds: at, batch: self.modify.batch, device: self.modify.device,
            value: change.value)
        try self.save(new, name, over: record, known, rows)
        return .taken
    }

    /// Removing and shrinking are always possible.
    private func refusal(of value: Bytes?, over known: Bytes?) -> KeyValueRefusal? {
        guard let value, !self.bugs.contains(.storeOverfilled) else { return nil }
        let most = Int(self.modify.rules.sizeMax)
        if known == nil, self.use.keyCount >= self.modify.rules.keyCountMax { return .tooManyKeys }
        if let known, value.count <= known.count { return nil }
        if value.count > most { return .valueTooLarge }
        let size = Int(clamping: self.use.size) - (known?.count ?? 0) + value.count
        return size > most ? .storeFull : nil
    }

    private mutating func save(
        _ new: KeyValueRecord, _ name: String, over record: Record?, _ known: KeyValueRecord?,
        _ rows: RowView
    ) throws(StoreError) {
        if let record, let known {
            if let value = known.value {
                self.use.keyCount -= 1
                self.use.size -= UInt64(value.count)
            } else {
                self.forgetRemoval(record.tag)
            }
        }
        if let value = new.value {
            self.use.keyCount += 1
            self.use.size += UInt64(value.count)
        } else if self.bugs.contains(.removalForgotten) {
            if let record { try self.zone.delete(record, over: rows) }
            return
        }
        let stamp = ChangeStamp(
            milliseconds: self.zone.milliseconds, userRecordName: self.principal.userRecordName,
            deviceID: self.modify.device)
        let saved = Record(
            name: name, type: KeyValueStore.type, zone: self.zone.id, tag: self.zone.nextTag,
            created: record?.created ?? stamp, modified: stamp, fields: new.fields)
        var writer = ByteWriter(reserving: 256)
        writer.write(recordBody: saved)
        try self.zone.save(
            saved, encoded: writer.bytes, addedReferences: [], removedReferences: [],
            restatedReferences: [], reservations: [:], over: rows)
        if new.value == nil {
            self.addedRemovals[saved.tag] = name
            self.use.removedCount += 1
        }
    }

    private mutating func forgetRemoval(_ tag: ChangeTag) {
        if self.addedRemovals.removeValue(forKey: tag) == nil { self.droppedRemovals.insert(tag) }
        self.use.removedCount -= 1
    }

    /// Deletes the rows of the keys that were removed first, once there are too many. What is left
    /// of them is a tombstone in the feed.
    private mutating func forgetOldestRemovals(
        over rows: RowView
    ) throws(StoreError) {
        let most = UInt64(self.modify.rules.removedCountMax)
        guard self.use.removedCount > most else { return }
        let excess = Int(clamping: self.use.removedCount - most)
        let start = KeyValueKeys.removed(self.zone.zone.number)
        var oldest: [(tag: ChangeTag, name: String)] = []
        for (key, row) in try rows.rows(
            .reference, from: start, to: Keys.end(of: start),
            limit: excess + self.droppedRemovals.count)
        {
            let tag = ChangeTag(try Keys.number(key, at: start.count))
            guard let name = String(validating: row, as: UTF8.self) else {
                throw StoreError(.unreadable, "removed key")
            }
            if !self.droppedRemovals.contains(tag) { oldest.append((tag, name)) }
        }
        for (tag, name) in self.addedRemovals.sorted(by: { $0.key < $1.key }) {
            oldest.append((tag, name))
        }
        for (tag, name) in oldest.prefix(excess) {
            guard let record = try self.zone.record(name, over: rows), record.tag == tag else {
                throw StoreError(.corrupt, "a removed key without its record")
            }
            try self.zone.delete(record, over: rows)
            self.forgetRemoval(tag)
        }
    }

    // MARK: Writing

    /// Writes the rows beside the records, those of `device` included.
    ///
    /// - Parameter isNew: the device has no row yet.
    mutating func flush(
        isNew: Bool, into rows: Rows
    ) throws(StoreError) {
        let number = self.zone.zone.number
        for tag in self.droppedRemovals.sorted() {
            try rows.remove(.reference, KeyValueKeys.removed(number, tag))
        }
        for (tag, name) in self.addedRemovals.sorted(by: { $0.key < $1.key }) {
            try rows.put(.reference, KeyValueKeys.removed(number, tag), Bytes(name.utf8))
        }
        if isNew {
            if self.use.deviceCount >= UInt64(max(1, self.modify.rules.deviceCountMax)) {
                try self.forgetDevice(in: rows)
            }
            self.use.deviceCount += 1
        }
        let device = KeyValueDeviceRow(
            lastBatch: self.modify.batch, lastSeenMilliseconds: self.zone.milliseconds,
            refused: self.refused)
        try rows.put(
            .reference, KeyValueKeys.device(number, self.modify.device), device.encoded())
        try rows.put(.reference, KeyValueKeys.use(number), self.use.encoded())
    }

    /// Drops the device that has sent nothing for the longest time.
    private mutating func forgetDevice(in rows: Rows) throws(StoreError) {
        let start = KeyValueKeys.devices(self.zone.zone.number)
        var longest: (seen: Int64, key: Bytes)?
        for (key, row) in try rows.view.rows(
            .reference, from: start, to: Keys.end(of: start),
            limit: Int(clamping: self.use.deviceCount))
        {
            let seen = try decodingRow("key-value device") { () throws(DecodingError) in
                try KeyValueDeviceRow(decoding: row).lastSeenMilliseconds
            }
            if longest.map({ seen < $0.seen }) ?? true { longest = (seen, key) }
        }
        guard let longest else { return }
        try rows.remove(.reference, longest.key)
        self.use.deviceCount -= 1
    }
}
