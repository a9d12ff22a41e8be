import StratusCoding
import StratusModel

// Reseal fields: text zone, count of records. A record: text name, varint tag, fields as in a record
// row. Its outcome: varint records, varint older keys.
//
// Sealed records, a question: database, text zone, flag and text after, varint version. Its answer:
// count of records, flag and text next.

extension ResealFields {
    func write(to writer: inout ByteWriter) {
        writer.write(text: self.zone)
        writer.write(count: self.items.count)
        for item in self.items {
            writer.write(text: item.record)
            writer.write(varint: item.tag.raw)
            writer.write(fields: item.fields)
        }
    }

    init(from reader: inout ByteReader, in database: DatabaseID) throws(DecodingError) {
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
        self.init(database: database, zone: zone, items: items)
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
