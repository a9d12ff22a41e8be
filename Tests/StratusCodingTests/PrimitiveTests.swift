import StratusCoding
import StratusModel
import Testing

@Suite struct PrimitiveTests {
    @Test(arguments: [0, 1, 127, 128, 300, 1 << 32, .max] as [UInt64])
    func `a varint comes back`(value: UInt64) throws {
        var writer = ByteWriter()
        writer.write(varint: value)
        var reader = ByteReader(writer.bytes)
        #expect(try reader.varint() == value)
        try reader.finish()
    }

    @Test(arguments: [0, -1, 1, .min, .max] as [Int64])
    func `a signed number comes back`(value: Int64) throws {
        var writer = ByteWriter()
        writer.write(signed: value)
        var reader = ByteReader(writer.bytes)
        #expect(try reader.signed() == value)
    }

    @Test(
        arguments: [
            ("too long", [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01]),
            ("too large", [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02]),
            ("needless zeros", [0x81, 0x00]),
            ("cut short", [0x80]),
        ] as [(String, Bytes)])
    func `a varint nobody would write is refused`(name: String, bytes: Bytes) {
        #expect(throws: DecodingError.self, "\(name)") {
            var reader = ByteReader(bytes)
            _ = try reader.varint()
        }
    }

    @Test func `X-22 a lie in a length reserves nothing`() {
        var writer = ByteWriter()
        writer.write(varint: 1 << 60)
        #expect(throws: DecodingError(.truncated, at: 0)) {
            var reader = ByteReader(writer.bytes)
            _ = try reader.prefixed()
        }
    }

    @Test func `text that is not UTF-8 is refused`() {
        #expect(throws: DecodingError(.malformed, at: 0)) {
            var reader = ByteReader([2, 0xC3, 0x28])
            _ = try reader.text()
        }
    }

    @Test func `the checksum agrees with the published check value`() {
        #expect(CRC32C.of(Bytes("123456789".utf8)) == 0xE306_9283)
        let whole = Bytes((0..<100).map { UInt8($0) })
        let first = CRC32C.of(Bytes(whole[..<37]))
        #expect(CRC32C.of(Bytes(whole[37...]), continuing: first) == CRC32C.of(whole))
    }
}
