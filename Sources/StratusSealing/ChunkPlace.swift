import StratusCoding
import StratusModel

// Sealed chunk, format 1
//
// | bytes | what                                                                    |
// | ----- | ----------------------------------------------------------------------- |
// | 1     | coding: 1 as it is, 2 one zstd frame; both under AES-256-GCM             |
// | rest  | the sealed text, and a tag of 16 bytes                                   |
//
// The key is HKDF-SHA-256(database key, info: `stratus body 1`, 0, the 16 bytes of the body). The
// nonce is the ordinal as 12 bytes, high byte first. Authenticated beside the text:
//
// | bytes  | what                                          |
// | ------ | --------------------------------------------- |
// | text   | `stratus chunk 1`                             |
// | 1      | coding                                        |
// | text   | container                                     |
// | 1, 1   | environment, scope                            |
// | text   | owner                                         |
// | flag + 2 | bucket: its number, of how many             |
// | 16     | body, high byte first                         |
// | fixed  | 4 ordinal, 4 plain size, 4 key version        |
// | flag   | whether it is the last of its body            |

/// Which chunk of which body in which database: what a sealed chunk is tied to.
package struct ChunkPlace: Sendable, Hashable {
    package var ordinal: UInt32
    /// Plain bytes.
    package var size: UInt32
    package var isLast: Bool

    package init(ordinal: UInt32, size: UInt32, isLast: Bool) {
        self.ordinal = ordinal
        self.size = size
        self.isLast = isLast
    }

    var nonce: Bytes {
        Bytes(repeating: 0, count: 8) + withUnsafeBytes(of: self.ordinal.bigEndian) { Bytes($0) }
    }

    func associated(
        _ coding: ChunkCoding, of body: BodyID, in database: DatabaseID, keyVersion: UInt32
    ) -> Bytes {
        var writer = ByteWriter(reserving: 160)
        writer.write(text: "stratus chunk 1")
        writer.write(coding.rawValue)
        writer.write(text: database.container.container)
        writer.write(database.container.environment.rawValue)
        writer.write(database.scope.rawValue)
        writer.write(text: database.owner)
        writer.write(flag: database.bucket != nil)
        if let bucket = database.bucket {
            writer.write(bucket.number)
            writer.write(bucket.count)
        }
        writer.write(raw: withUnsafeBytes(of: body.raw.bigEndian) { Bytes($0) })
        writer.write(fixed: self.ordinal)
        writer.write(fixed: self.size)
        writer.write(fixed: keyVersion)
        writer.write(flag: self.isLast)
        return writer.bytes
    }
}

/// How the bytes of a chunk stand under its seal. The raw value is on disk for ever.
package enum ChunkCoding: UInt8, Sendable, Hashable, CaseIterable {
    case raw = 1
    case zstd = 2
}
