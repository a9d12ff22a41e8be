package import StratusModel

// Copy message, version 1
//
// | bytes    | what                                                                 |
// | -------- | -------------------------------------------------------------------- |
// | 1        | version, 1                                                           |
// | 1        | kind                                                                 |
// | varint   | number of the question, but for drop                                 |
// | 2        | group, in questions                                                  |
//
// | kind | message   | what follows                                                  |
// | ---- | --------- | ------------------------------------------------------------- |
// | 1    | put       | 16 body, varint ordinal, signed orphanAfter,                  |
// |      |           | 4 CRC-32C of the bytes, prefixed bytes                        |
// | 2    | confirm   | 16 body, varint number of chunks                              |
// | 3    | stored    | 8 index                                                       |
// | 4    | refused   | 1 reason                                                      |
// | 5    | fetch     | 16 body, varint ordinal                                       |
// | 6    | fetched   | flag; 4 CRC-32C of the bytes, prefixed bytes                  |
// | 7    | drop      | 16 body                                                       |

extension CopyMessage {
    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 64)
        writer.write(1 as UInt8)
        switch self {
        case .put(let number, let group, let copy):
            writer.write(1, number, group)
            writer.write(copy.name)
            writer.write(signed: copy.orphanAfterMilliseconds)
            writer.write(checked: copy.bytes)
        case .confirm(let number, let group, let body, let chunkCount):
            writer.write(2, number, group)
            writer.write(body: body)
            writer.write(varint: UInt64(chunkCount))
        case .stored(let number, let index):
            writer.write(3, number)
            writer.write(fixed: index.raw)
        case .refused(let number, let refusal):
            writer.write(4, number)
            writer.write(refusal.rawValue)
        case .fetch(let number, let group, let name):
            writer.write(5, number, group)
            writer.write(name)
        case .fetched(let number, let bytes):
            writer.write(6, number)
            writer.write(flag: bytes != nil)
            if let bytes { writer.write(checked: bytes) }
        case .drop(let group, let body):
            writer.write(7 as UInt8)
            writer.write(fixed: group.raw)
            writer.write(body: body)
        }
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        let kind = try reader.byte()
        let number = kind == 7 ? 0 : try reader.varint()
        switch kind {
        case 1:
            let group = GroupID(try reader.fixed16())
            let name = try reader.copyName()
            let orphanAfter = try reader.signed()
            self = .put(
                number: number, group: group,
                copy: StoredCopy(
                    name: name, orphanAfterMilliseconds: orphanAfter,
                    bytes: try reader.checkedBytes()))
        case 2:
            let group = GroupID(try reader.fixed16())
            let body = try reader.body()
            let start = reader.offset
            guard let count = UInt32(exactly: try reader.varint()),
                UInt64(count) <= AssetLimits.chunkCountMax
            else { throw DecodingError(.malformed, at: start) }
            self = .confirm(number: number, group: group, body: body, chunkCount: count)
        case 3: self = .stored(number: number, at: LogIndex(try reader.fixed64()))
        case 4:
            guard let refusal = CopyRefusal(rawValue: try reader.byte()) else {
                throw DecodingError(.malformed, at: reader.offset - 1)
            }
            self = .refused(number: number, refusal)
        case 5:
            let group = GroupID(try reader.fixed16())
            self = .fetch(number: number, group: group, name: try reader.copyName())
        case 6:
            self = .fetched(
                number: number, bytes: try reader.flag() ? try reader.checkedBytes() : nil)
        case 7:
            let group = GroupID(try reader.fixed16())
            self = .drop(group: group, body: try reader.body())
        default: throw DecodingError(.malformed, at: 1)
        }
        try reader.finish()
    }
}

extension ByteWriter {
    fileprivate mutating func write(_ kind: UInt8, _ number: UInt64, _ group: GroupID? = nil) {
        self.write(kind)
        self.write(varint: number)
        if let group { self.write(fixed: group.raw) }
    }

    fileprivate mutating func write(_ name: CopyName) {
        self.write(body: name.body)
        self.write(varint: UInt64(name.ordinal))
    }

    fileprivate mutating func write(checked bytes: Bytes) {
        self.write(fixed: CRC32C.of(bytes))
        self.write(prefixed: bytes)
    }
}

extension ByteReader {
    fileprivate mutating func copyName() throws(DecodingError) -> CopyName {
        let body = try self.body()
        let start = self.offset
        guard let ordinal = UInt32(exactly: try self.varint()) else {
            throw DecodingError(.malformed, at: start)
        }
        return CopyName(body: body, ordinal: ordinal)
    }

    fileprivate mutating func checkedBytes() throws(DecodingError) -> Bytes {
        let crc = try self.fixed32()
        let start = self.offset
        let bytes = try self.prefixed()
        guard bytes.count <= Int(AssetLimits.storedSizeMax), CRC32C.of(bytes) == crc else {
            throw DecodingError(.malformed, at: start)
        }
        return bytes
    }
}
