import StratusCoding
import StratusModel

// Rewrap key: varint version, the wrapped key as it was read, and the one that takes its place,
// both as in put key.
//
// Wrapped keys, a question: container, prefixed check value, flag and prefixed place. Its answer:
// count of keys, each a database, a varint version and a wrapped key; flag and prefixed place.

extension RewrapKey {
    func write(to writer: inout ByteWriter) {
        writer.write(varint: UInt64(self.version))
        writer.write(self.old)
        writer.write(self.new)
    }

    init(from reader: inout ByteReader, in database: DatabaseID) throws(DecodingError) {
        let version = try reader.number32()
        let old = try reader.wrappedKey()
        self.init(
            database: database, version: version, old: old, new: try reader.wrappedKey())
    }
}

extension WrappedKeysAsk {
    func write(to writer: inout ByteWriter) {
        writer.write(self.container)
        writer.write(prefixed: self.check)
        writer.write(flag: self.after != nil)
        if let after = self.after { writer.write(prefixed: after) }
    }

    init(from reader: inout ByteReader) throws(DecodingError) {
        let container = try reader.container()
        let check = try reader.prefixed()
        self.init(
            container: container, check: check,
            after: try reader.flag() ? try reader.prefixed() : nil)
    }
}

extension WrappedKeysPage {
    func write(to writer: inout ByteWriter) {
        writer.write(count: self.items.count)
        for item in self.items {
            writer.write(item.database)
            writer.write(varint: UInt64(item.version))
            writer.write(item.key)
        }
        writer.write(flag: self.next != nil)
        if let next = self.next { writer.write(prefixed: next) }
    }

    init(from reader: inout ByteReader) throws(DecodingError) {
        var items: [Item] = []
        for _ in 0..<(try reader.count(minimumSize: 8)) {
            let database = try reader.database()
            let version = try reader.number32()
            items.append(
                Item(database: database, version: version, key: try reader.wrappedKey()))
        }
        self.init(items: items, next: try reader.flag() ? try reader.prefixed() : nil)
    }
}
