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
