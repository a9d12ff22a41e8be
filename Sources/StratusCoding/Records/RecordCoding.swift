package import StratusModel

// Record, format 1: a row of the record table, and a record in an answer. The record's name and
// zone are not in these bytes: a row's key, or the answer around it, says them.
//
// | bytes  | what                                                                        |
// | ------ | --------------------------------------------------------------------------- |
// | 1      | format and kind: 0x01 a live record (0x02 is a tombstone, see StratusRecords) |
// | 1      | presence bits: 1 parent, 2 short GUID, 4 share, 8 `modified` differs from    |
// |        | `created` (time, user or device)                                            |
// | varint | change tag                                                                  |
// | text   | record type                                                                 |
// | stamp  | `created`: signed varint milliseconds, text user record name, text device     |
// | stamp  | `modified`, only with bit 8                                                 |
// | texts  | parent, short GUID, share: those present, in this order                     |
// | count  | fields, sorted by name: each a text and a field value                       |

extension ByteWriter {
    package mutating func write(recordBody record: Record) {
        self.write(recordHead: record)
        self.write(fields: record.fields)
    }

    /// Everything before the fields.
    package mutating func write(recordHead record: Record) {
        var presence: UInt8 = 0
        if record.parent != nil { presence |= 1 }
        if record.shortGUID != nil { presence |= 2 }
        if record.share != nil { presence |= 4 }
        if record.modified != record.created { presence |= 8 }
        self.write(1 as UInt8)
        self.write(presence)
        self.write(varint: record.tag.raw)
        self.write(text: record.type)
        self.write(record.created)
        if presence & 8 != 0 { self.write(record.modified) }
        if let parent = record.parent { self.write(text: parent) }
        if let shortGUID = record.shortGUID { self.write(text: shortGUID) }
        if let share = record.share { self.write(text: share) }
    }

    package mutating func write(fields: [Field]) {
        self.write(count: fields.count)
        for field in fields {
            self.write(text: field.name)
            self.write(field.value)
        }
    }

    package mutating func write(_ stamp: ChangeStamp) {
        self.write(signed: stamp.milliseconds)
        self.write(text: stamp.userRecordName)
        self.write(text: stamp.deviceID)
    }
}

extension ByteReader {
    package mutating func recordBody(name: String, zone: ZoneID) throws(DecodingError) -> Record {
        try self.recordBody(name: name, zone: zone) { reader throws(DecodingError) in
            try reader.fields()
        }
    }

    /// A record with those of its parts alone that `wanted` names: what a filter asks about.
    package mutating func recordBody(
        name: String, zone: ZoneID, wanted: WantedParts
    ) throws(DecodingError) -> Record {
        try self.recordBody(name: name, zone: zone, hasStamps: wanted.hasStamps) {
            reader throws(DecodingError) in try reader.fields(wanted)
        }
    }

    private mutating func recordBody(
        name: String, zone: ZoneID, hasStamps: Bool = true,
        fields: (inout ByteReader) throws(DecodingError) -> [Field]
    ) throws(DecodingError) -> Record {
        let version = try self.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        let presence = try self.byte()
        guard presence < 16 else { throw DecodingError(.malformed, at: self.offset - 1) }
        let tag = ChangeTag(try self.varint())
        let type = try self.text()
        let created = hasStamps ? try self.changeStamp() : try self.skipChangeStamp()
        var modified = created
        if presence & 8 != 0 {
            modified = hasStamps ? try self.changeStamp() : try self.skipChangeStamp()
        }
        let parent = presence & 1 != 0 ? try self.text() : nil
        let shortGUID = presence & 2 != 0 ? try self.text() : nil
        let share = presence & 4 != 0 ? try self.text() : nil
        return Record(
            name: name, type: type, zone: zone, tag: tag, created: created, modified: modified,
            fields: try fields(&self), parent: parent, shortGUID: shortGUID, share: share)
    }

    /// Refuses fields that are not sorted by name: `Record` promises that they are.
    package mutating func fields() throws(DecodingError) -> [Field] {
        let start = self.offset
        let count = try self.count(minimumSize: 3)
        var fields: [Field] = []
        fields.reserveCapacity(min(count, 256))
        for _ in 0..<count {
            let name = try self.text()
            if let last = fields.last, last.name >= name {
                throw DecodingError(.malformed, at: start)
            }
            fields.append(Field(name: name, value: try self.fieldValue()))
        }
        return fields
    }

    private mutating func fields(_ wanted: WantedParts) throws(DecodingError) -> [Field] {
        var fields: [Field] = []
        for _ in 0..<(try self.count(minimumSize: 3)) {
            if let position = try self.text(among: wanted.bytes) {
                fields.append(
                    Field(name: wanted.names[position], value: try self.fieldValue()))
            } else {
                try self.skipPrefixed()
                try self.skipFieldValue()
            }
        }
        return fields
    }

    package mutating func changeStamp() throws(DecodingError) -> ChangeStamp {
        let milliseconds = try self.signed()
        let user = try self.text()
        return ChangeStamp(
            milliseconds: milliseconds, userRecordName: user, deviceID: try self.text())
    }

    /// - Returns: a stamp of nobody.
    private mutating func skipChangeStamp() throws(DecodingError) -> ChangeStamp {
        _ = try self.varint()
        try self.skipPrefixed()
        try self.skipPrefixed()
        return ChangeStamp(milliseconds: 0, userRecordName: "", deviceID: "")
    }
}

/// The parts of a record to read, beside its type and tag.
package struct WantedParts: Sendable, Hashable {
    /// Names of fields, in both forms they are needed in.
    let names: [String]
    let bytes: [Bytes]
    /// Whether `created` and `modified` are read.
    package var hasStamps: Bool

    package init(fields names: [String], hasStamps: Bool = true) {
        self.names = names
        self.bytes = names.map { Bytes($0.utf8) }
        self.hasStamps = hasStamps
    }
}
