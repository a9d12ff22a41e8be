package import StratusModel

// A pack, version 1. All integers little-endian but the name of a body, which has its high byte
// first.
//
// A pack is a file of copies of one partition, append only. A header, then records one behind the
// other, each aligned to 8 bytes. A pack that will not be written again ends with a seal, which is
// synced like everything before it.
//
// Header, 64 bytes
//
// | bytes | what                                     |
// | ----- | ---------------------------------------- |
// | 8     | `STRAPAK` and the version, 1             |
// | 2     | group                                    |
// | 6     | zero                                     |
// | 8     | number of the pack                       |
// | 8     | salt: drawn for each pack                |
// | 28    | zero                                     |
// | 4     | CRC-32C of the bytes before              |
//
// Record: 64 bytes, the sealed bytes, zeros to a multiple of 8
//
// | bytes | what                                     |
// | ----- | ---------------------------------------- |
// | 4     | `SPR` and the version, 1                 |
// | 4     | CRC-32C of the 56 bytes behind           |
// | 8     | salt of the pack                         |
// | 8     | position in the pack                     |
// | 16    | body                                     |
// | 4     | ordinal                                  |
// | 4     | size of the sealed bytes                 |
// | 8     | orphanAfter, milliseconds                |
// | 4     | CRC-32C of the sealed bytes              |
// | 2     | group                                    |
// | 2     | zero                                     |
//
// Seal, 64 bytes
//
// | bytes | what                                     |
// | ----- | ---------------------------------------- |
// | 4     | `SPE` and the version, 1                 |
// | 4     | CRC-32C of the 56 bytes behind           |
// | 8     | salt of the pack                         |
// | 8     | position in the pack                     |
// | 38    | zero                                     |
// | 2     | group                                    |
//
// The salt is unknown to whoever chooses bytes, so no chosen bytes pass for a record or a seal.
// Position and group stand inside the checksum, so a record that was written elsewhere, or read
// from elsewhere, is none.

package enum PackFormat {
    package static let headerSize = 64
    package static let recordHeaderSize = 64
    package static let sealSize = 64
    package static let alignment = 8
    private static let packMark = Bytes("STRAPAK".utf8) + [1]
    private static let recordMark = Bytes("SPR".utf8) + [1]
    private static let sealMark = Bytes("SPE".utf8) + [1]

    /// The size that a record takes in its pack.
    package static func recordSize(of storedSize: UInt32) -> Int {
        let end = Self.recordHeaderSize + Int(storedSize)
        return (end + Self.alignment - 1) / Self.alignment * Self.alignment
    }
}

// MARK: The header

/// The header at the beginning of a pack.
package struct PackHeader: Sendable, Hashable {
    package var group: GroupID
    package var number: UInt64
    package var salt: UInt64

    package init(group: GroupID, number: UInt64, salt: UInt64) {
        self.group = group
        self.number = number
        self.salt = salt
    }
}

/// The header before the bytes of a copy.
package struct PackRecord: Sendable, Hashable {
    package var copy: HeldCopy
    package var position: UInt64

    package init(copy: HeldCopy, position: UInt64) {
        self.copy = copy
        self.position = position
    }

    /// The position where the next record begins.
    package var end: UInt64 {
        self.position + UInt64(PackFormat.recordSize(of: self.copy.storedSize))
    }
}

extension PackFormat {
    package static func encode(_ header: PackHeader) -> Bytes {
        var writer = ByteWriter(reserving: Self.headerSize)
        writer.write(raw: Self.packMark)
        writer.write(fixed: header.group.raw)
        writer.write(raw: repeatElement(0, count: 6))
        writer.write(fixed: header.number)
        writer.write(fixed: header.salt)
        writer.write(raw: repeatElement(0, count: 28))
        writer.write(fixed: CRC32C.of(writer.bytes))
        return writer.bytes
    }

    package static func decodeHeader(_ bytes: Bytes) throws(DecodingError) -> PackHeader {
        var reader = ByteReader(bytes)
        let mark = try reader.raw(8)
        guard mark.prefix(7) == Self.packMark.prefix(7) else {
            throw DecodingError(.malformed, at: 0)
        }
        guard mark[7] == 1 else { throw DecodingError(.unknownVersion(mark[7]), at: 7) }
        let group = GroupID(try reader.fixed16())
        try Self.zeros(6, &reader)
        let number = try reader.fixed64()
        let salt = try reader.fixed64()
        try Self.zeros(28, &reader)
        let crc = try reader.fixed32()
        try reader.finish()
        guard CRC32C.of(Bytes(bytes[..<(Self.headerSize - 4)])) == crc else {
            throw DecodingError(.malformed, at: Self.headerSize - 4)
        }
        return PackHeader(group: group, number: number, salt: salt)
    }

    // MARK: Records

    /// The 64 bytes before a copy's own.
    package static func encode(_ record: PackRecord, in pack: PackHeader) -> Bytes {
        var rest = ByteWriter(reserving: 56)
        rest.write(fixed: pack.salt)
        rest.write(fixed: record.position)
        rest.write(body: record.copy.name.body)
        rest.write(fixed: record.copy.name.ordinal)
        rest.write(fixed: record.copy.storedSize)
        rest.write(fixed: UInt64(bitPattern: record.copy.orphanAfterMilliseconds))
        rest.write(fixed: record.copy.crc)
        rest.write(fixed: pack.group.raw)
        rest.write(fixed: 0 as UInt16)
        return Self.framed(Self.recordMark, rest.bytes)
    }

    /// The record that begins at `position` of `pack` with these 64 bytes. Nil: none does.
    package static func record(_ bytes: Bytes, at position: UInt64, in pack: PackHeader)
        -> PackRecord?
    {
        guard let rest = Self.unframed(Self.recordMark, bytes) else { return nil }
        var reader = ByteReader(rest)
        guard (try? reader.fixed64()) == pack.salt, (try? reader.fixed64()) == position,
            let body = try? reader.body(), let ordinal = try? reader.fixed32(),
            let size = try? reader.fixed32(), let orphanAfter = try? reader.fixed64(),
            let crc = try? reader.fixed32(), (try? reader.fixed16()) == pack.group.raw,
            (try? reader.fixed16()) == 0, size <= AssetLimits.storedSizeMax
        else { return nil }
        let copy = HeldCopy(
            name: CopyName(body: body, ordinal: ordinal),
            orphanAfterMilliseconds: Int64(bitPattern: orphanAfter), storedSize: size, crc: crc)
        return PackRecord(copy: copy, position: position)
    }

    // MARK: The seal

    package static func encodeSeal(at position: UInt64, in pack: PackHeader) -> Bytes {
        var rest = ByteWriter(reserving: 56)
        rest.write(fixed: pack.salt)
        rest.write(fixed: position)
        rest.write(raw: repeatElement(0, count: 38))
        rest.write(fixed: pack.group.raw)
        return Self.framed(Self.sealMark, rest.bytes)
    }

    /// Whether these 64 bytes are the seal of `pack`, at that position.
    package static func isSeal(_ bytes: Bytes, at position: UInt64, in pack: PackHeader) -> Bool {
        bytes == Self.encodeSeal(at: position, in: pack)
    }

    // MARK: What both have

    private static func framed(_ mark: Bytes, _ rest: Bytes) -> Bytes {
        var writer = ByteWriter(reserving: 64)
        writer.write(raw: mark)
        writer.write(fixed: CRC32C.of(rest))
        writer.write(raw: rest)
        return writer.bytes
    }

    private static func unframed(_ mark: Bytes, _ bytes: Bytes) -> Bytes? {
        guard bytes.count == Self.recordHeaderSize, bytes.starts(with: mark) else { return nil }
        let rest = Bytes(bytes[8...])
        let crc = CRC32C.of(rest)
        for position in 0..<4
        where bytes[4 + position] != UInt8(truncatingIfNeeded: crc >> UInt32(8 * position)) {
            return nil
        }
        return rest
    }

    private static func zeros(_ count: Int, _ reader: inout ByteReader) throws(DecodingError) {
        let start = reader.offset
        guard try reader.raw(count).allSatisfy({ $0 == 0 }) else {
            throw DecodingError(.malformed, at: start)
        }
    }
}
