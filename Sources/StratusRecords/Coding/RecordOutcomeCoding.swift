package import StratusCoding
package import StratusModel

// Record outcome, format 1: the body of an `Outcome`. It is remembered for exactly-once, so it
// carries no record bodies; those of the first application ride in the outcome's detail.
//
// | bytes | what                                                                           |
// | ----- | ------------------------------------------------------------------------------ |
// | 1     | format, 1                                                                      |
// | 1     | number of the operation, see `RecordCommand.Kind`; or 0: it was refused        |
// | …     | the outcome                                                                    |
//
// What the operations decide, by their names: modify records has records, modify zones zones; the
// two of schemas have a schema; continue jobs, audit links and forget outcomes have jobs. Recover has
// nothing.
//
// Records: zone summary (text name, 8 incarnation, varint last tag, varint record count), count of
// results. A result is 1 byte of what: 1 saved: varint tag, signed milliseconds; 2 deleted: varint
// tag + 1, or 0 for none; 3 refused: 1 reason, text subject; 4 left: a
// `SharedZoneNote`. Zones: count of results: 1 created and
// a zone summary, 2 deleted, 3 refused and 1 reason. Schema: varint version. Jobs: varint rows,
// flag more. Refused: 1 reason, text subject. Erased: varint zones, varint records, flag more.
// Reserved: count of wishes, each a flag and a refusal. Buckets noted: varint
// mask.
//
// Detail of records, format 1: 1 byte format, text owner of the zone, then for each saved result in
// order: text record name and a record body as in a row.

extension RecordOutcome {
    /// - Parameter operation: the one that it is the outcome of.
    package func encoded(of operation: RecordCommand.Kind) -> Bytes {
        if case .refused(let refusal) = self { return Self.encoded(refusal) }
        var writer = ByteWriter(reserving: 64)
        writer.write(1 as UInt8)
        writer.write(operation.rawValue)
        switch self {
        case .records(let modified):
            writer.write(modified.zone)
            writer.write(count: modified.results.count)
            for result in modified.results { writer.write(result) }
        case .zones(let results):
            writer.write(count: results.count)
            for result in results { writer.write(result) }
        case .schema(let version):
            writer.write(varint: version)
        case .jobs(let progress):
            writer.write(count: progress.rowCount)
            writer.write(flag: progress.hasMore)
        case .recovered, .refused: break
        case .erased(let progress):
            writer.write(varint: progress.zoneCount)
            writer.write(varint: progress.recordCount)
            writer.write(flag: progress.hasMore)
        case .reserved(let refusals):
            writer.write(count: refusals.count)
            for refusal in refusals {
                writer.write(flag: refusal != nil)
                if let refusal { writer.write(refusal) }
            }
        case .bucketsNoted(let mask):
            writer.write(varint: mask.raw)
        case .documents(let results):
            writer.write(results)
        }
        return writer.bytes
    }

    /// The outcome of an operation, whichever it is, that was refused.
    package static func encoded(_ refusal: RequestRefusal) -> Bytes {
        var writer = ByteWriter(reserving: 16)
        writer.write(1 as UInt8)
        writer.write(0 as UInt8)
        writer.write(refusal.reason.rawValue)
        writer.write(text: refusal.subject)
        return writer.bytes
    }

    /// - Parameter detail: the outcome's; empty for a remembered outcome, whose saved records then
    ///   come without their bodies.
    package init(decoding bytes: Bytes, detail: Bytes = []) throws(DecodingError) {
        var reader = ByteReader(bytes)
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        let number = try reader.byte()
        if number == 0 {
            self = .refused(try reader.requestRefusal())
            try reader.finish()
            return
        }
        guard let operation = RecordCommand.Kind(rawValue: number) else {
            throw DecodingError(.malformed, at: 1)
        }
        switch operation {
        case .modifyRecords:
            var modified = ModifiedRecords(zone: try reader.zoneSummary(), results: [])
            for _ in 0..<(try reader.count(minimumSize: 2)) {
                modified.results.append(try reader.operationResult())
            }
            if !detail.isEmpty { try modified.fill(from: detail) }
            self = .records(modified)
        case .modifyZones:
            var results: [ZoneResult] = []
            for _ in 0..<(try reader.count()) { results.append(try reader.zoneResult()) }
            self = .zones(results)
        case .installSchema, .extendSchema: self = .schema(version: try reader.varint())
        case .continueJobs, .auditLinks, .forgetOutcomes:
            let rowCount = try reader.boundedInt()
            self = .jobs(JobProgress(rowCount: rowCount, hasMore: try reader.flag()))
        case .recover: self = .recovered
        case .eraseDatabase:
            let zoneCount = try reader.varint()
            let recordCount = try reader.varint()
            self = .erased(
                ErasureProgress(
                    zoneCount: zoneCount, recordCount: recordCount, hasMore: try reader.flag()))
        case .reserveReferences:
            var refusals: [RecordRefusal?] = []
            for _ in 0..<(try reader.count()) {
                refusals.append(try reader.flag() ? try reader.recordRefusal() : nil)
            }
            self = .reserved(refusals)
        case .noteBuckets: self = .bucketsNoted(BucketMask(try reader.varint()))
        case .modifyDocuments: self = .documents(try reader.documentResults())
        }
        try reader.finish()
    }
}

extension ModifiedRecords {
    /// The bodies of the saved records.
    func encodedDetail(owner: String) -> Bytes {
        var writer = ByteWriter(reserving: 1_024)
        writer.write(1 as UInt8)
        writer.write(text: owner)
        for case .saved(let saved) in self.results {
            guard let record = saved.record else { preconditionFailure("detail without record") }
            writer.write(text: record.name)
            writer.write(recordBody: record)
        }
        return writer.bytes
    }

    fileprivate mutating func fill(from detail: Bytes) throws(DecodingError) {
        var reader = ByteReader(detail)
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        let zone = ZoneID(name: self.zone.name, owner: try reader.text())
        for index in self.results.indices {
            guard case .saved(var saved) = self.results[index] else { continue }
            let name = try reader.text()
            saved.record = try reader.recordBody(name: name, zone: zone)
            self.results[index] = .saved(saved)
        }
        try reader.finish()
    }
}

extension ByteWriter {
    mutating func write(_ zone: ZoneSummary) {
        self.write(text: zone.name)
        self.write(fixed: zone.incarnation.raw)
        self.write(varint: zone.lastTag.raw)
        self.write(varint: zone.recordCount)
        self.write(flag: zone.scope == .perZone)
    }

    mutating func write(_ result: ModifiedRecords.Result) {
        switch result {
        case .saved(let saved):
            self.write(1 as UInt8)
            self.write(varint: saved.tag.raw)
            self.write(signed: saved.milliseconds)
        case .deleted(let tag):
            self.write(2 as UInt8)
            self.write(varint: tag.map { $0.raw + 1 } ?? 0)
        case .refused(let refusal):
            self.write(3 as UInt8)
            self.write(refusal)
        case .left(let note):
            self.write(4 as UInt8)
            self.write(form: note)
        }
    }

    mutating func write(_ refusal: RecordRefusal) {
        self.write(refusal.reason.rawValue)
        self.write(text: refusal.subject)
    }

    mutating func write(_ result: ZoneResult) {
        switch result {
        case .created(let zone):
            self.write(1 as UInt8)
            self.write(zone)
        case .deleted: self.write(2 as UInt8)
        case .refused(let refusal):
            self.write(3 as UInt8)
            self.write(refusal.rawValue)
        }
    }
}

extension ByteReader {
    mutating func zoneSummary() throws(DecodingError) -> ZoneSummary {
        let name = try self.text()
        let incarnation = ZoneIncarnation(try self.fixed64())
        let tag = ChangeTag(try self.varint())
        let count = try self.varint()
        return ZoneSummary(
            name: name, incarnation: incarnation, lastTag: tag, recordCount: count,
            scope: try self.flag() ? .perZone : .perRecord)
    }

    mutating func operationResult() throws(DecodingError) -> ModifiedRecords.Result {
        switch try self.byte() {
        case 1:
            let tag = ChangeTag(try self.varint())
            return .saved(SavedRecord(tag: tag, milliseconds: try self.signed(), record: nil))
        case 2:
            let raw = try self.varint()
            return .deleted(tag: raw == 0 ? nil : ChangeTag(raw - 1))
        case 3: return .refused(try self.recordRefusal())
        case 4: return .left(try self.form(SharedZoneNote.self))
        default: throw DecodingError(.malformed, at: self.offset - 1)
        }
    }

    mutating func recordRefusal() throws(DecodingError) -> RecordRefusal {
        guard let reason = RecordRefusal.Reason(rawValue: try self.byte()) else {
            throw DecodingError(.malformed, at: self.offset - 1)
        }
        return RecordRefusal(reason, try self.text())
    }

    mutating func requestRefusal() throws(DecodingError) -> RequestRefusal {
        guard let reason = RequestRefusal.Reason(rawValue: try self.byte()) else {
            throw DecodingError(.malformed, at: self.offset - 1)
        }
        return RequestRefusal(reason, try self.text())
    }

    mutating func zoneRefusal() throws(DecodingError) -> ZoneRefusal {
        guard let refusal = ZoneRefusal(rawValue: try self.byte()) else {
            throw DecodingError(.malformed, at: self.offset - 1)
        }
        return refusal
    }

    mutating func zoneResult() throws(DecodingError) -> ZoneResult {
        switch try self.byte() {
        case 1: return .created(try self.zoneSummary())
        case 2: return .deleted
        case 3: return .refused(try self.zoneRefusal())
        default: throw DecodingError(.malformed, at: self.offset - 1)
        }
    }
}
