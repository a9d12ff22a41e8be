import StratusHTTP
import StratusModel
import Testing

@Suite struct JSONReaderTests {
    static func parse(_ text: String, _ limits: JSONLimits = JSONLimits()) throws(JSONError)
        -> JSONValue
    {
        try JSONDocument(parsing: Bytes(text.utf8), limits: limits).root
    }

    // MARK: What is refused

    @Test func `what cannot be read may be kept, and nothing is read from it`() throws {
        var limits = JSONLimits()
        limits.keepsUnreadable = true
        let value = try Self.parse(
            #"{"a":"x\ud800y","b":"\udc00","c":1e999,"d":"\ud83d\ude00","e":["\ud83d"],"\ud800":1}"#,
            limits)
        for key in ["a", "b"] {
            #expect(value[key]?.kind == .string)
            #expect(value[key]?.string == nil && value[key]?.utf8 == nil)
            #expect(value[key]?.base64 == nil)
        }
        #expect(value["c"]?.kind == .number && value["c"]?.double == nil)
        #expect(value["c"]?.int64 == nil && value["c"]?.wholeInt64 == nil)
        #expect(value["d"]?.string == "😀")
        #expect(value["e"]?.array?.first { _ in true }?.string == nil)
        #expect(value.object?.map(\.name).last == "\u{FFFD}")
        #expect(value["\u{D7FF}"] == nil)
        // Every half, wherever it stands.
        for text in [#""\ud800""#, #""\ud800\n""#, #""\ud800\ud800\udc00""#, #""\udfff\ud800""#] {
            #expect(try Self.parse(text, limits).string == nil, "\(text)")
            #expect(throws: JSONError.self, "\(text)") { try Self.parse(text) }
        }
        for text in [#""\ud800\u12"#, #""\ud800\"#, #""\ud800\uzzzz""#] {
            #expect(throws: JSONError.self, "\(text)") { try Self.parse(text, limits) }
        }
    }

    typealias Wrong = (text: Bytes, kind: JSONError.Kind, offset: Int)
    static func wrong(_ text: String, _ kind: JSONError.Kind, _ offset: Int) -> Wrong {
        (Bytes(text.utf8), kind, offset)
    }

    static let refused: [Wrong] = [
        wrong("", .truncated, 0), wrong("  ", .truncated, 2), wrong("[", .truncated, 1),
        wrong("[1", .truncated, 2), wrong("[1,", .truncated, 3), wrong("{", .truncated, 1),
        wrong("{\"a", .truncated, 3), wrong("{\"a\"", .truncated, 4),
        wrong("{\"a\":", .truncated, 5),
        wrong("{\"a\":1", .truncated, 6), wrong("{\"a\":1,", .truncated, 7),
        wrong("tru", .truncated, 3),
        wrong("-", .truncated, 1), wrong("1.", .truncated, 2), wrong("1e", .truncated, 2),
        wrong("1e+", .truncated, 3), wrong("\"\\", .truncated, 2), wrong("\"\\u12", .truncated, 5),
        wrong("[1,]", .unexpectedByte, 3), wrong("{\"a\":1,}", .unexpectedByte, 7),
        wrong("{a:1}", .unexpectedByte, 1), wrong("{\"a\" 1}", .unexpectedByte, 5),
        wrong("[1 2]", .unexpectedByte, 3), wrong("[1}", .unexpectedByte, 2),
        wrong("{\"a\":1]", .unexpectedByte, 6), wrong("]", .unexpectedByte, 0),
        wrong("True", .unexpectedByte, 0), wrong("trux", .unexpectedByte, 3),
        wrong("nul1", .unexpectedByte, 3), wrong("'a'", .unexpectedByte, 0),
        wrong("NaN", .unexpectedByte, 0), wrong("Infinity", .unexpectedByte, 0),
        wrong("//", .unexpectedByte, 0), wrong("/**/1", .unexpectedByte, 0),
        wrong("+1", .unexpectedByte, 0), wrong(".5", .unexpectedByte, 0),
        wrong("\u{A0}1", .unexpectedByte, 0), wrong("\u{0C}1", .unexpectedByte, 0),
        wrong("01", .badNumber, 1), wrong("-01", .badNumber, 2), wrong("00", .badNumber, 1),
        wrong("1.e1", .badNumber, 2), wrong("1.5.5", .trailingBytes, 3), wrong("-a", .badNumber, 1),
        wrong("1e5.5", .trailingBytes, 3), wrong("0x1", .trailingBytes, 1),
        wrong("1ex", .badNumber, 2),
        wrong("1 2", .trailingBytes, 2), wrong("{}x", .trailingBytes, 2),
        wrong("1\0", .trailingBytes, 1),
        wrong("1e400", .numberOutOfRange, 0), wrong("[-1e309]", .numberOutOfRange, 1),
        wrong("1e99999999999999999999", .numberOutOfRange, 0),
        wrong(String(repeating: "9", count: 400), .numberOutOfRange, 0),
        wrong("\"\\x\"", .badEscape, 1), wrong("\"\\u12G4\"", .badEscape, 5),
        wrong("\"\\'\"", .badEscape, 1), wrong("\"\\U0041\"", .badEscape, 1),
        wrong("\"\\ud800\"", .loneSurrogate, 1), wrong("\"\\udc00\"", .loneSurrogate, 1),
        wrong("\"\\ud800x\"", .loneSurrogate, 1), wrong("\"\\ud800\\n\"", .loneSurrogate, 1),
        wrong("\"\\ud800\\ud800\"", .loneSurrogate, 1),
        wrong("\"\\udc00\\ud800\"", .loneSurrogate, 1),
        wrong("\"\\ud800\\u0041\"", .loneSurrogate, 1),
        wrong("\"a\nb\"", .controlCharacter, 2), wrong("\"\0\"", .controlCharacter, 1),
        wrong("\"0123456789\t\"", .controlCharacter, 11), wrong("\u{FEFF}1", .byteOrderMark, 0),
        ([0x22, 0x80, 0x22], .badUTF8, 1), ([0x22, 0xC0, 0x80, 0x22], .badUTF8, 1),
        ([0x22, 0xC1, 0xBF, 0x22], .badUTF8, 1), ([0x22, 0xE0, 0x9F, 0x80, 0x22], .badUTF8, 1),
        ([0x22, 0xED, 0xA0, 0x80, 0x22], .badUTF8, 1),
        ([0x22, 0xF0, 0x8F, 0xBF, 0xBF, 0x22], .badUTF8, 1),
        ([0x22, 0xF4, 0x90, 0x80, 0x80, 0x22], .badUTF8, 1),
        ([0x22, 0xF5, 0x80, 0x80, 0x80, 0x22], .badUTF8, 1),
        ([0x22, 0xC3, 0x22], .badUTF8, 1), ([0x22, 0xE2, 0x82, 0x22], .badUTF8, 1),
        ([0x22, 0xF0, 0x9F, 0x98, 0x22], .badUTF8, 1), ([0x22, 0xC3], .badUTF8, 1),
        ([0x22, 0xFF, 0x22], .badUTF8, 1), ([0xFF, 0xFE, 0x31, 0x00], .unexpectedByte, 0),
    ]

    @Test(arguments: refused)
    func `G-17: what is wrong is named with its place`(row: Wrong) {
        let text = String(decoding: row.text, as: UTF8.self)
        #expect(throws: JSONError(row.kind, at: row.offset), "\(text.prefix(40))") {
            try JSONDocument(parsing: row.text)
        }
    }

    // MARK: Limits

    @Test func `G-17: nesting is refused at the limit, not by the stack`() throws {
        let limits = JSONLimits(depthMax: 3, sizeMax: .mebibytes(1), valueCountMax: 100)
        #expect(throws: Never.self) { try Self.parse("[[[1]]]", limits) }
        #expect(throws: Never.self) { try Self.parse("[[[]],[[]]]", limits) }
        #expect(throws: JSONError(.tooDeep, at: 3)) { try Self.parse("[[[[1]]]]", limits) }
        #expect(throws: JSONError(.tooDeep, at: 15)) {
            try Self.parse("{\"a\":{\"a\":{\"a\":{}}}}", limits)
        }
        let brackets = String(repeating: "[", count: 100_000)
        #expect(throws: JSONError(.tooDeep, at: 96)) { try Self.parse(brackets) }
        #expect(throws: JSONError(.truncated, at: 100_000)) {
            try Self.parse(
                brackets, JSONLimits(depthMax: .max, sizeMax: .mebibytes(1), valueCountMax: .max))
        }
    }

    @Test func `G-17: a million keys are exact within the limit and refused beyond it`() throws {
        let count = 200_000
        var writer = JSONWriter()
        writer.object { writer in
            for index in 0..<count { writer.member("k\(index)", index) }
        }
        let text = writer.finish()
        let object = try #require(JSONDocument(parsing: text).root.object)
        #expect(object["k199999"]?.int64 == 199_999)
        #expect(object.reduce(0) { sum, member in sum + 1 } == count)
        let small = JSONLimits(depthMax: 4, sizeMax: .mebibytes(16), valueCountMax: count)
        #expect(throws: JSONError.self) { try JSONDocument(parsing: text, limits: small) }
    }

    @Test func `G-17: a string of ten mebibytes is exact`() throws {
        let text = String(repeating: "é\\n0123456789abcd", count: 640 << 10)
        let value = try Self.parse("\"\(text)\"")
        #expect(value.string == String(repeating: "é\n0123456789abcd", count: 640 << 10))
    }

    @Test func `size and values are limited`() {
        let limits = JSONLimits(depthMax: 4, sizeMax: 10, valueCountMax: 4)
        #expect(throws: Never.self) { try Self.parse("[1,2,3]   ", limits) }
        #expect(throws: JSONError(.tooLarge, at: 10)) { try Self.parse("[1,2,3]    ", limits) }
        #expect(throws: JSONError(.tooManyValues, at: 7)) { try Self.parse("[1,2,3,4]", limits) }
        #expect(throws: JSONError(.tooManyValues, at: 6)) {
            try Self.parse(
                "{\"\":1,\"\":2}", JSONLimits(depthMax: 4, sizeMax: 20, valueCountMax: 3))
        }
    }

    // MARK: Numbers

    typealias Number = (
        text: String, int64: Int64?, whole: Int64?, double: Double, form: JSONValue.NumberForm
    )
    static let numbers: [Number] = [
        ("0", 0, 0, 0, .integer), ("-0", 0, 0, -0.0, .integer), ("1", 1, 1, 1, .integer),
        ("-17", -17, -17, -17, .integer), ("1.0", nil, 1, 1, .fraction),
        ("1e3", nil, 1000, 1000, .fraction),
        ("1E+2", nil, 100, 100, .fraction), ("1e-2", nil, nil, 0.01, .fraction),
        ("0.1", nil, nil, 0.1, .fraction), ("-0.0", nil, 0, -0.0, .fraction),
        (
            "9007199254740993", 9_007_199_254_740_993, 9_007_199_254_740_993, 9_007_199_254_740_992,
            .integer
        ),
        ("9007199254740993.0", nil, 9_007_199_254_740_992, 9_007_199_254_740_992, .fraction),
        ("9007199254740994.0", nil, nil, 9_007_199_254_740_994, .fraction),
        ("9223372036854775807", .max, .max, 9.223372036854775807e18, .integer),
        ("-9223372036854775808", .min, .min, -9.223372036854775808e18, .integer),
        ("9223372036854775808", nil, nil, 9.223372036854775808e18, .largeInteger),
        ("-9223372036854775809", nil, nil, -9.223372036854775808e18, .largeInteger),
        ("18446744073709551616", nil, nil, 1.8446744073709552e19, .largeInteger),
        ("100000000000000000000000", nil, nil, 1e23, .largeInteger),
        ("5e-324", nil, nil, .leastNonzeroMagnitude, .fraction), ("1e-400", nil, 0, 0, .fraction),
        ("1.7976931348623157e308", nil, nil, .greatestFiniteMagnitude, .fraction),
        ("2.2250738585072011e-308", nil, nil, Double("2.2250738585072011e-308")!, .fraction),
        ("123456789012345678901234567890e-20", nil, nil, 1234567890.1234567, .fraction),
        ("0.000000000000000000000000000000000001", nil, nil, 1e-36, .fraction),
        ("1.000000000000000000000000000000", nil, 1, 1, .fraction),
        ("1e22", nil, nil, 1e22, .fraction),
        ("1e23", nil, nil, 1e23, .fraction), ("0e999", nil, 0, 0, .fraction),
        ("9007199254740992e22", nil, nil, 9007199254740992e22, .fraction),
    ]

    @Test(arguments: numbers)
    func `G-36: numbers are exact or say that they are not`(row: Number) throws {
        let value = try Self.parse("[\(row.text)]").array!.first { _ in true }!
        #expect(value.int64 == row.int64, "\(row.text)")
        #expect(value.wholeInt64 == row.whole, "\(row.text)")
        #expect(value.double?.bitPattern == row.double.bitPattern, "\(row.text)")
        #expect(value.numberForm == row.form, "\(row.text)")
        #expect(value.numberText == row.text)
    }

    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func `every Double survives being written and read`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<5_000 {
            let double = Double(bitPattern: random.next())
            guard double.isFinite else { continue }
            let short = Double(Int64.random(in: -1_000_000...1_000_000, using: &random)) / 1000
            for value in [double, short] {
                var writer = JSONWriter()
                writer.write(value)
                let read = try JSONDocument(parsing: writer.finish()).root
                #expect(read.double?.bitPattern == value.bitPattern, "\(value)")
            }
        }
    }

    // MARK: Strings

    @Test(arguments: [
        (#""""#, ""), (#""a""#, "a"), (#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{C}\n\r\t"),
        (#""\u0041\u00e9\u20AC""#, "Aé€"), (#""\ud83d\ude00""#, "😀"), (#""😀é€""#, "😀é€"),
        (#""\u0000""#, "\0"), (#""\uffff\uFFFE""#, "\u{FFFF}\u{FFFE}"),
        (#""\uDBFF\uDFFF""#, "\u{10FFFF}"),
        (#""\ud7ff\ue000""#, "\u{D7FF}\u{E000}"),
        ("\"\u{7F}\u{80}\u{7FF}\u{800}\"", "\u{7F}\u{80}\u{7FF}\u{800}"),
        (#""0123456\n89""#, "0123456\n89"), ("\"01234567\u{E9}\"", "01234567é"),
    ])
    func `strings are decoded when asked for`(text: String, expected: String) throws {
        let value = try Self.parse(text)
        // Compared as bytes: Swift's `==` takes different spellings of one character as equal.
        #expect(value.string.map { Bytes($0.utf8) } == Bytes(expected.utf8))
        #expect(value.utf8 == Bytes(expected.utf8))
        #expect(value.isString(expected))
        #expect(!value.isString(expected + "x"))
        #expect(expected.isEmpty || !value.isString(String(expected.unicodeScalars.dropLast())))
    }

    // MARK: Objects and arrays

    @Test func `G-17: a repeated key counts once, with its last value, however it is written`()
        throws
    {
        let value = try Self.parse(#"{"a":1,"b":2,"\u0061":3,"c":4,"a":{"x":5}}"#)
        #expect(value["a"]?["x"]?.int64 == 5)
        #expect(value.object?.map(\.name) == ["b", "c", "a"])
        #expect(value.object?["d"] == nil)
        for spare in [0, 40] {
            let filler = (0..<spare).map { "\"f\($0)\":0," }.joined()
            let object = try Self.parse("{\(filler)\"k\":1,\"\\u006b\":2,\"z\":3}").object!
            #expect(object.map(\.name).suffix(2) == ["k", "z"])
            #expect(object["k"]?.int64 == 2)
            #expect(object.map(\.name).count == spare + 2)
        }
    }

    @Test func `containers are walked in order and skipped whole`() throws {
        let value = try Self.parse(#" [ {"a":[1,[2]],"b":{}} , [] , "s" , null , true ] "#)
        let elements = Array(try #require(value.array))
        #expect(elements.map(\.kind) == [.object, .array, .string, .null, .bool])
        #expect(value.array?.count == 5)
        #expect(elements[1].array?.isEmpty == true)
        #expect(elements[0]["b"]?.object?.isEmpty == true)
        #expect(elements[0]["a"]?.array?.map { $0.kind } == [.number, .array])
        #expect(elements[4].bool == true)
        #expect(elements[3].isNull)
        #expect(
            elements.map { String(decoding: $0.source, as: UTF8.self) }
                == [#"{"a":[1,[2]],"b":{}}"#, "[]", #""s""#, "null", "true"])
        #expect(
            String(decoding: value.source, as: UTF8.self)
                == #"[ {"a":[1,[2]],"b":{}} , [] , "s" , null , true ]"#)
        #expect(elements.map(\.offset) == [3, 26, 31, 37, 44])
    }

    @Test func `an accessor of another type gives nothing`() throws {
        for text in ["null", "true", "1", "\"1\"", "[1]", "{\"1\":1}"] {
            let value = try Self.parse(text)
            #expect((value.bool != nil) == (value.kind == .bool))
            #expect((value.int64 != nil) == (value.kind == .number))
            #expect((value.double != nil) == (value.kind == .number))
            #expect((value.numberText != nil) == (value.kind == .number))
            #expect((value.string != nil) == (value.kind == .string))
            #expect((value.array != nil) == (value.kind == .array))
            #expect((value.object != nil) == (value.kind == .object))
            #expect((value["1"] != nil) == (value.kind == .object))
            #expect(value.isNull == (value.kind == .null))
        }
    }
}
