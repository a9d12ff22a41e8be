import StratusCoding
import StratusModel

// Files that are sealed anew
//
// | form         | what                                                                    |
// | ------------ | ----------------------------------------------------------------------- |
// | replace body | 16 asset, 16 old body, 16 new body, varint size, varint chunk size,       |
// |              | varint key version, signed orphan after, count of storers and count of   |
// |              | chunks as in pin asset                                                   |
// | its outcome  | 1 byte, a `ReplacedBody`                                                 |
// | retire keys  | varint first version that stays                                          |
// | older files  | a question: database, flag and 16 last asset, varint version             |
// | its answer   | count of files, each 16 asset and flag lost; flag and 16 last asset       |

extension ReplaceBody {
    func write(to writer: inout ByteWriter) {
        writer.write(name: self.asset.raw)
        writer.write(body: self.old)
        writer.write(body: self.body)
        writer.write(varint: self.size)
        writer.write(varint: UInt64(self.chunkSize))
        writer.write(varint: UInt64(self.keyVersion))
        writer.write(signed: self.orphanAfterMilliseconds)
        writer.write(self.storers)
        writer.write(self.chunks)
    }

    init(from reader: inout ByteReader, in database: DatabaseID) throws(DecodingError) {
        let start = reader.offset
        let asset = AssetID(try reader.name())
        let old = try reader.body()
        let body = try reader.body()
        let size = try reader.varint()
        let chunkSize = try reader.number32()
        let keyVersion = try reader.number32()
        let orphanAfter = try reader.signed()
        let storers = try reader.storers()
        self.init(
            database: database, asset: asset, old: old, body: body, size: size,
            chunkSize: chunkSize, keyVersion: keyVersion, chunks: try reader.bodyChunks(),
            orphanAfterMilliseconds: orphanAfter, storers: storers)
        guard self.isConsistent else { throw DecodingError(.malformed, at: start) }
    }
}

extension RetireKeys {
    func write(to writer: inout ByteWriter) {
        writer.write(varint: UInt64(self.below))
    }

    init(from reader: inout ByteReader, in database: DatabaseID) throws(DecodingError) {
        self.init(database: database, below: try reader.number32())
    }
}

extension OlderFilesAsk {
    func write(to writer: inout ByteWriter) {
        writer.write(self.database)
        writer.write(flag: self.after != nil)
        if let after = self.after { writer.write(name: after.raw) }
        writer.write(varint: UInt64(self.below))
    }

    init(from reader: inout ByteReader) throws(DecodingError) {
        let database = try reader.database()
        let after = try reader.flag() ? AssetID(try reader.name()) : nil
        self.init(database: database, after: after, below: try reader.number32())
    }
}

extension ByteWriter {
    mutating func write(_ page: OlderFiles) {
        self.write(count: page.files.count)
        for file in page.files {
            self.write(name: file.asset.raw)
            self.write(flag: file.isLost)
        }
        self.write(flag: page.next != nil)
        if let next = page.next { self.write(name: next.raw) }
    }
}

extension ByteReader {
    mutating func olderFiles() throws(DecodingError) -> OlderFiles {
        var page = OlderFiles(files: [], next: nil)
        for _ in 0..<(try self.count(minimumSize: 17)) {
            let asset = AssetID(try self.name())
            page.files.append(OlderFile(asset: asset, isLost: try self.flag()))
        }
        if try self.flag() { page.next = AssetID(try self.name()) }
        return page
    }
}
