import CShims
import StratusCoding
import StratusModel

// A frame of a snapshot, version 1
//
// | bytes    | what                                                         |
// | -------- | ------------------------------------------------------------ |
// | 1        | version, 1                                                   |
// | 1        | 1 rows, 2 end                                                |
// | 8        | number of the frame, from 0                                  |
// | 4        | CRC-32C of the three fields before and all bytes after       |
// | rest     | rows: for each, 1 table · prefixed key · prefixed row        |
// |          | end: 8 number of rows · prefixed applied position            |
//
// Rows come in the order of their tables and keys; `Table.meta` is left out. The applied position
// in the last frame carries index, term, time, configuration and the digest of all rows.

enum SnapshotFrame: Equatable {
    struct Row: Equatable {
        var table: Table
        var key: Bytes
        var row: Bytes
    }

    case rows([Row])
    case end(rowCount: UInt64, AppliedPosition)

    static let headerSize = 14

    func encoded(number: UInt64) -> Bytes {
        var body = ByteWriter(reserving: 1 << 10)
        switch self {
        case .rows(let rows):
            for row in rows {
                body.write(row.table.rawValue)
                body.write(prefixed: row.key)
                body.write(prefixed: row.row)
            }
            return Self.frame(kind: 1, number: number, body.bytes)
        case .end(let rowCount, let position):
            body.write(fixed: rowCount)
            body.write(prefixed: position.encoded())
            return Self.frame(kind: 2, number: number, body.bytes)
        }
    }

    static func frame(kind: UInt8, number: UInt64, _ body: Bytes) -> Bytes {
        var writer = ByteWriter(reserving: body.count + Self.headerSize)
        writer.write(1 as UInt8)
        writer.write(kind)
        writer.write(fixed: number)
        writer.write(fixed: Self.crc(kind: kind, number: number, body[...]))
        writer.write(raw: body)
        return writer.bytes
    }

    static func decode(_ bytes: Bytes, number: UInt64) throws(DecodingError) -> SnapshotFrame {
        var reader = ByteReader(bytes)
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        let kind = try reader.byte()
        guard try reader.fixed64() == number else { throw DecodingError(.malformed, at: 2) }
        guard
            try reader.fixed32() == Self.crc(kind: kind, number: number, bytes[Self.headerSize...])
        else { throw DecodingError(.malformed, at: 10) }
        switch kind {
        case 1:
            var rows: [Row] = []
            while !reader.isAtEnd {
                guard let table = Table.all.first(where: { $0.rawValue == bytes[reader.offset] })
                else {
                    throw DecodingError(
                        .unknownNumber(family: NumberFamily.table.name, bytes[reader.offset]),
                        at: reader.offset)
                }
                _ = try reader.byte()
                rows.append(
                    Row(table: table, key: try reader.prefixed(), row: try reader.prefixed()))
            }
            return .rows(rows)
        case 2:
            let count = try reader.fixed64()
            let position = try AppliedPosition(decoding: reader.prefixed())
            try reader.finish()
            return .end(rowCount: count, position)
        default: throw DecodingError(.malformed, at: 1)
        }
    }

    private static func crc(kind: UInt8, number: UInt64, _ body: ArraySlice<UInt8>) -> UInt32 {
        var head = ByteWriter()
        head.write(1 as UInt8)
        head.write(kind)
        head.write(fixed: number)
        let crc = stratus_crc32c(0, head.bytes, head.bytes.count)
        return body.withUnsafeBytes { stratus_crc32c(crc, $0.baseAddress, $0.count) }
    }
}
