package import StratusModel

// Property list, format 1: a value of the key-value store, as rows, commands and answers have it.
//
// | bytes | what                                                                           |
// | ----- | ------------------------------------------------------------------------------ |
// | 1     | format, 1                                                                      |
// | …     | the value                                                                      |
//
// A value is one byte of type, then what the type says:
//
// | type | value      | follows                                                            |
// | ---- | ---------- | ------------------------------------------------------------------ |
// | 1    | string     | text                                                               |
// | 2    | integer    | signed varint                                                      |
// | 3    | real       | 8 bytes, IEEE 754 bit pattern; never NaN or infinite               |
// | 4    | boolean    | flag                                                               |
// | 5    | date       | signed varint, milliseconds since 1970                             |
// | 6    | data       | prefixed bytes                                                     |
// | 7    | array      | count, then the values                                             |
// | 8    | dictionary | count, then texts and values, sorted by text, no text twice         |
//
// No value is nested more than 32 levels deep.

extension PropertyListValue: FixedLevel {
    package static var level: FeatureLevel { .one }

    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 64)
        writer.write(1 as UInt8)
        writer.write(self)
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        self = try reader.propertyList(depth: 1)
        try reader.finish()
    }
}

extension ByteWriter {
    fileprivate mutating func write(_ value: PropertyListValue) {
        switch value {
        case .string(let text):
            self.write(1 as UInt8)
            self.write(text: text)
        case .integer(let number):
            self.write(2 as UInt8)
            self.write(signed: number)
        case .real(let number):
            precondition(number.isFinite, "no client can have sent this")
            self.write(3 as UInt8)
            self.write(double: number)
        case .boolean(let flag):
            self.write(4 as UInt8)
            self.write(flag: flag)
        case .date(let milliseconds):
            self.write(5 as UInt8)
            self.write(signed: milliseconds)
        case .data(let bytes):
            self.write(6 as UInt8)
            self.write(prefixed: bytes)
        case .array(let values):
            self.write(7 as UInt8)
            self.write(count: values.count)
            for value in values { self.write(value) }
        case .dictionary(let members):
            self.write(8 as UInt8)
            self.write(count: members.count)
            for member in members {
                self.write(text: member.key)
                self.write(member.value)
            }
        }
    }
}

extension ByteReader {
    fileprivate mutating func propertyList(depth: Int) throws(DecodingError) -> PropertyListValue {
        let start = self.offset
        guard depth <= PropertyListValue.depthMax else {
            throw DecodingError(.malformed, at: start)
        }
        switch try self.byte() {
        case 1: return .string(try self.text())
        case 2: return .integer(try self.signed())
        case 3:
            let number = try self.double()
            guard number.isFinite else { throw DecodingError(.malformed, at: start) }
            return .real(number)
        case 4: return .boolean(try self.flag())
        case 5: return .date(try self.signed())
        case 6: return .data(try self.prefixed())
        case 7:
            var values: [PropertyListValue] = []
            for _ in 0..<(try self.count(minimumSize: 2)) {
                values.append(try self.propertyList(depth: depth + 1))
            }
            return .array(values)
        case 8:
            var members: [PropertyListValue.Member] = []
            for _ in 0..<(try self.count(minimumSize: 3)) {
                let key = try self.text()
                if let last = members.last,
                    !last.key.utf8.lexicographicallyPrecedes(key.utf8)
                {
                    throw DecodingError(.malformed, at: start)
                }
                members.append(
                    PropertyListValue.Member(
                        key: key, value: try self.propertyList(depth: depth + 1)))
            }
            return .dictionary(members)
        default: throw DecodingError(.malformed, at: start)
        }
    }
}
