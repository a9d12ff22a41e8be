package import StratusCoding
package import StratusModel

// Indexed schema, version 1: a row of the schema table.
//
// | bytes  | what                                                                             |
// | ------ | -------------------------------------------------------------------------------- |
// | 1      | version, 1                                                                       |
// | 1      | version of the text tables                                                       |
// | …      | the schema                                                                       |
// | varint | the next index's number                                                          |
// | count  | indexes, in order: varint number, text type, text field, 1 kind, 1 field type    |
// |        | (as in the schema), 1 state                                                      |
// | flag   | whether records were saved before there was a schema                             |
// | count  | retired types and fields, sorted, a text each: `type` or `type field`            |
// | count  | fields that are gone, sorted: text `type field`, 1 field type                    |

extension IndexedSchema {
    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 64 + self.indexes.count * 32)
        writer.write(1 as UInt8)
        writer.write(self.tables)
        writer.write(self.schema)
        writer.write(varint: UInt64(self.nextNumber))
        writer.write(count: self.indexes.count)
        for index in self.indexes {
            writer.write(varint: UInt64(index.number))
            writer.write(text: index.recordType)
            writer.write(text: index.field)
            writer.write(index.kind.rawValue)
            writer.write(index.type)
            writer.write(index.state.rawValue)
        }
        writer.write(flag: self.hasUnchecked)
        writer.write(count: self.retired.count)
        for name in self.retired.sorted() { writer.write(text: name) }
        writer.write(count: self.formerTypes.count)
        for (name, type) in self.formerTypes.sorted(by: { $0.key < $1.key }) {
            writer.write(text: name)
            writer.write(type)
        }
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        let tables = try reader.byte()
        guard tables == TextFolding.version else {
            throw DecodingError(.unknownVersion(tables), at: 1)
        }
        let schema = try reader.schema()
        guard let next = UInt32(exactly: try reader.varint()) else {
            throw DecodingError(.malformed, at: reader.offset)
        }
        var indexes: [FieldIndex] = []
        for _ in 0..<(try reader.count(minimumSize: 6)) {
            let start = reader.offset
            let number = UInt32(truncatingIfNeeded: try reader.varint())
            let recordType = try reader.text()
            let field = try reader.text()
            let kind = FieldIndex.Kind(rawValue: try reader.byte())
            let type = try reader.fieldType()
            let state = FieldIndex.State(rawValue: try reader.byte())
            guard let kind, let state, number < next, number < 1 << 31 else {
                throw DecodingError(.malformed, at: start)
            }
            indexes.append(
                FieldIndex(
                    number: number, recordType: recordType, field: field, kind: kind, type: type,
                    state: state))
        }
        let hasUnchecked = try reader.flag()
        var retired = Set<String>()
        for _ in 0..<(try reader.count()) { retired.insert(try reader.text()) }
        var formerTypes: [String: FieldType] = [:]
        for _ in 0..<(try reader.count()) {
            let name = try reader.text()
            formerTypes[name] = try reader.fieldType()
        }
        try reader.finish()
        self.init(
            schema: schema, indexes: indexes, nextNumber: next, tables: tables, retired: retired,
            formerTypes: formerTypes, hasUnchecked: hasUnchecked)
    }
}
