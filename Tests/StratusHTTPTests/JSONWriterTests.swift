import StratusHTTP
import StratusModel
import Testing

@Suite struct JSONWriterTests {
    static func text(_ write: (inout JSONWriter) -> Void) -> String {
        var writer = JSONWriter(reserving: 0)
        write(&writer)
        return String(decoding: writer.finish(), as: UTF8.self)
    }

    @Test func `commas and colons take care of themselves`() {
        let text = Self.text { writer in
            writer.object { writer in
                writer.member("a", 1)
                writer.key("b")
                writer.array { writer in
                    writer.write("x")
                    writer.writeNull()
                    writer.array { _ in }
                    writer.object { _ in }
                    writer.write(true)
                }
                writer.member("c", 1.5)
                writer.member("d", false)
                writer.member("e", base64: [1, 2, 3])
                writer.key("f")
                writer.write(raw: Bytes("{\"g\":0}".utf8))
                writer.member("h", "i")
            }
        }
        #expect(
            text
                == #"{"a":1,"b":["x",null,[],{},true],"c":1.5,"d":false,"e":"AQID","f":{"g":0},"h":"i"}"#
        )
    }

    @Test(arguments: [
        ("", #""""#), ("plain", #""plain""#), ("\"\\/", #""\"\\/""#),
        ("\u{8}\u{C}\n\r\t", #""\b\f\n\r\t""#), ("\0\u{1F}", #""\u0000\u001F""#),
        ("\u{7F}é€😀", "\"\u{7F}é€😀\""), ("01234567\n", #""01234567\n""#),
        ("\n0123456701234567\"", #""\n0123456701234567\"""#),
    ])
    func `strings are escaped where they must be and nowhere else`(value: String, text: String) {
        #expect(Self.text { $0.write(value) } == text)
    }

    @Test(arguments: [0, 1, 9, 10, 35, 36, 1_295, 1_296, 123_456_789, .max - 1, .max] as [UInt64])
    func `a number to base 36 is the text that String makes`(value: UInt64) {
        let expected = "\"\(String(value, radix: 36))\""
        #expect(Self.text { $0.write(base36: value) } == expected)
        let many = Self.text { writer in
            writer.array { for _ in 0..<9 { $0.write(base36: value) } }
        }
        let list = Array(repeating: expected, count: 9).joined(separator: ",")
        #expect(many == "[\(list)]")
    }

    @Test func `a value can be written again`() {
        let text = Self.text {
            $0.array { list in
                list.write("first")
                let start = list.count
                // With the comma before it, which is not a part of the value.
                list.object { $0.member("a", String(repeating: "x", count: 100)) }
                let end = list.count
                for _ in 0..<3 { list.write(again: (start + 1)..<end) }
            }
        }
        let object = #"{"a":"\#(String(repeating: "x", count: 100))"}"#
        #expect(text == "[\"first\",\(object),\(object),\(object),\(object)]")
    }

    @Test func `names that the program chose are written as others are`() {
        let known = Self.text {
            $0.object {
                $0.member(known: "a", "x")
                $0.member(known: "bcdefghi", 1)
                $0.member(known: "c", Int64(2))
                $0.member(known: "d", 0.5)
                $0.key(
                    known: "a_name_that_is_longer_than_the_first_room_of_the_output_by_far_and_more"
                )
                $0.write(true)
                $0.member("e", true)
                $0.member(known: "f", false)
            }
        }
        let name = "a_name_that_is_longer_than_the_first_room_of_the_output_by_far_and_more"
        #expect(
            known
                == #"{"a":"x","bcdefghi":1,"c":2,"d":0.5,"\#(name)":true,"e":true,"f":false}"#)
    }

    /// Strings are written in blocks of four words, then a word at a time, and what is left in two
    /// or three loads.
    @Test func `every byte is escaped or kept wherever it stands in a string of any length`() {
        for length in Array(1...19) + [31, 32, 33, 63, 64, 65] {
            for place in 0..<length {
                for byte in [0x00, 0x1F, 0x20, 0x21, 0x22, 0x23, 0x5B, 0x5C, 0x5D, 0x7F] as Bytes {
                    var bytes = (0..<length).map { 0x61 + UInt8($0 % 26) }
                    bytes[place] = byte
                    let value = String(decoding: bytes, as: UTF8.self)
                    let escaped: String =
                        switch byte {
                        case 0x22: "\\\""
                        case 0x5C: "\\\\"
                        case 0x00: "\\u0000"
                        case 0x1F: "\\u001F"
                        default: String(decoding: [byte], as: UTF8.self)
                        }
                    let text =
                        String(decoding: bytes[..<place], as: UTF8.self) + escaped
                        + String(decoding: bytes[(place + 1)...], as: UTF8.self)
                    #expect(Self.text { $0.write(value) } == "\"\(text)\"")
                }
            }
            let all = String(repeating: "\"", count: length)
            #expect(
                Self.text { $0.write(all) }
                    == "\"" + String(repeating: "\\\"", count: length) + "\"")
        }
    }

    @Test(
        arguments: [
            (0, "0"), (-1, "-1"), (9, "9"), (10, "10"), (-987_654_321, "-987654321"),
            (.max, "9223372036854775807"), (.min, "-9223372036854775808"),
        ] as [(Int64, String)])
    func `integers are written in full`(value: Int64, text: String) {
        #expect(Self.text { $0.write(value) } == text)
    }

    @Test(
        arguments: [
            (0.0, "0.0"), (-0.0, "-0.0"), (0.1, "0.1"), (1e16, "1e+16"),
            (.leastNonzeroMagnitude, "5e-324"),
            (1.0 / 3, "0.3333333333333333"), (.infinity, "null"), (.nan, "null"),
            (123456789.125, "123456789.125"),
        ] as [(Double, String)])
    func `doubles are as short as they can be, and null where JSON has no word`(
        value: Double, text: String
    ) {
        #expect(Self.text { $0.write(value) } == text)
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `whatever string is written is read back`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<500 {
            var scalars = String.UnicodeScalarView()
            for _ in 0..<Int.random(in: 0...40, using: &random) {
                let top: UInt32 = [0x20, 0x80, 0x800, 0x11_0000].randomElement(using: &random)!
                if let scalar = Unicode.Scalar(UInt32.random(in: 0..<top, using: &random)) {
                    scalars.append(scalar)
                }
            }
            let text = String(scalars)
            var writer = JSONWriter()
            writer.write(text)
            let read = try JSONDocument(parsing: writer.finish()).root.utf8
            #expect(read == Bytes(text.utf8))
        }
    }

    @Test func `what is left open stops the process`() async {
        await #expect(processExitsWith: .failure) {
            var writer = JSONWriter()
            writer.beginArray()
            _ = writer.finish()
        }
    }
}

@Suite struct Base64Tests {
    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="),
        ("fooba", "Zm9vYmE="), ("foobar", "Zm9vYmFy"),
    ])
    func `the vectors of RFC 4648`(plain: String, text: String) {
        #expect(Base64.encode(Bytes(plain.utf8)) == text)
        #expect(Base64.decode(text) == Bytes(plain.utf8))
    }

    @Test(arguments: [
        "Z", "Zg", "Zg=", "Zg===", "====", "=", "Zm9v=", "Zm9vZ", "Zh==", "Zm9=", "Z m9", "Zm9v\n",
        " Zm9", "Zm-v", "Zm_v", "Zg==Zg==", "Z=g=", "Zm9vé", "Zm9\0",
    ])
    func `what is not canonical is refused`(text: String) {
        #expect(Base64.decode(text) == nil)
    }

    @Test(arguments: [1, 2] as [UInt64])
    func `every byte string survives`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for count in 0..<200 {
            let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
            #expect(Base64.decode(Base64.encode(bytes)) == bytes)
        }
    }

    @Test func `JSON may escape base64's slashes`() throws {
        let value = try JSONReaderTests.parse(#""\/\/8=""#)
        #expect(value.base64 == [0xFF, 0xFF])
        #expect(try JSONReaderTests.parse(#""x""#).base64 == nil)
        #expect(try JSONReaderTests.parse("1").base64 == nil)
    }
}
