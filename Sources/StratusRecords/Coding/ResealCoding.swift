import StratusCoding
import StratusModel

// Command 110, reseal fields: database, text zone, count of records, varint version below which
// keys are destroyed. A record: text name, varint tag, fields as in a record row.
//
// Outcome 110, resealed: varint records, varint older keys. Question 110, sealed records: database,
// text zone, flag and text after, varint version. Answer 110: count of records, flag and text next.

extension ResealFields {
    func write(to writer: inout ByteWriter) {
        writer.write(partOf: self.database)
        writer.write(text: self.zone)
        writer.write(count: self.items.count)
        for item in self.items {
            writer.write(text: item.record)
            writer.write(varint: item.tag.raw)
            writer.write(fields: item.fields)
        }
        writer.write(varint: UInt64(self.retiresBelow))
    }

    init(from reader: inout ByteReader, container: ContainerReference) throws(DecodingError) {
        let database = try reader.databasePart(container: container)
        let zone = try reader.text()
        var items: [Item] = []
        let start = reader.offset
        let count = try reader.count(minimumSize: 3)
        guard count <= Self.recordCountMax else { throw DecodingError(.malformed, at: start) }
        for _ in 0..<count {
            let name = try reader.text()
            let tag = ChangeTag(try reader.varint())
            items.append(Item(record: name, tag: tag, fields: try reader.fields()))
        }
        self.init(
            database: database, zone: zone, items: items, retiresBelow: try reader.number32())
    }
}

extension SealedAsk {
    func write(to writer: inout ByteWriter) {
        writer.write(self.database)
        writer.write(text: self.zone)
        writer.write(flag: self.after != nil)
        if let after = self.after { writer.write(text: after) }
        writer.write(varint: UInt64(self.below))
    }

    init(from reader: inout ByteReader) throws(DecodingError) {
        let database = try reader.database()
        let zone = try reader.text()
        let after = try reader.flag() ? try reader.text() : nil
        self.init(database: database, zone: zone, after: after, below: try reader.number32())
    }
}
