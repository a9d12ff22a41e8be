import StratusConfiguration
import StratusModel
import StratusNode
import Testing

@Suite struct JSON5ParserTests {
    /// A value without its positions, written compactly.
    static func compact(_ value: JSON5Value) -> String {
        switch value.kind {
        case .null: "null"
        case .bool(let flag): "\(flag)"
        case .number(let number): "\(number)"
        case .string(let text): "'\(text)'"
        case .array(let values): "[" + values.map(Self.compact).joined(separator: " ") + "]"
        case .object(let members):
            "{" + members.map { $0.key + ":" + Self.compact($0.value) }.joined(separator: " ") + "}"
        }
    }

    static let accepted: [(text: String, value: String)] = [
        ("{}", "{}"), ("[]", "[]"), ("null", "null"), ("true", "true"), ("'a'", "'a'"),
        ("{a:1,'b':2,\"c\":3,}", "{a:1.0 b:2.0 c:3.0}"),
        ("{$_ä1: 1}", "{$_ä1:1.0}"),
        ("[1,]", "[1.0]"),
        ("// a\n/* b\n*/ [1 /* c */, 2] // d", "[1.0 2.0]"),
        ("\u{FEFF}\u{A0}\u{2003}1", "1.0"),
        ("0x1F", "31.0"), ("-0x10", "-16.0"), ("+5", "5.0"), (".5", "0.5"), ("5.", "5.0"),
        ("1e3", "1000.0"), ("1E-2", "0.01"), ("0", "0.0"), ("0.0", "0.0"), ("-0", "-0.0"),
        (#"'a\'b"c'"#, #"'a'b"c'"#), (#""\x41\u0042\uD83D\uDE00\n\0""#, "'AB😀\n\0'"),
        ("'a\\\nb'", "'ab'"), ("'a\\\r\nb'", "'ab'"), (#"'\q'"#, "'q'"),
        ("{a:{b:[{c:null}]}}", "{a:{b:[{c:null}]}}"),
    ]

    @Test(arguments: accepted)
    func `is read`(row: (text: String, value: String)) throws {
        #expect(Self.compact(try JSON5Parser.parse(row.text)) == row.value)
    }

    static let refused: [(text: String, line: Int, column: Int, says: String)] = [
        ("", 1, 1, "a value is missing at the end"),
        ("{", 1, 2, "a key must stand here, not 'the end of the file'"),
        ("{a}", 1, 3, "':' must follow the key 'a'"),
        ("{a:}", 1, 4, "a value must stand here, not '}'"),
        ("{a:1 b:2}", 1, 6, "',' or '}' must stand here, not 'b'"),
        ("[1 2]", 1, 4, "',' or ']' must stand here, not '2'"),
        ("{,}", 1, 2, "a key must stand here, not ','"),
        ("{a:1}\n x", 2, 2, "nothing may follow the value, but 'x' does"),
        ("{\n  a: yes,\n}", 2, 6, "'yes' is not a value: a string needs quotes"),
        ("{a:1,\n\n  a:2}", 3, 3, "'a' is given twice: first in line 1"),
        ("'a", 1, 1, "the string that begins here does not end"),
        ("{a: 'x\ny'}", 1, 5, "the string that begins here does not end"),
        ("/* a", 1, 1, "the comment that begins here does not end"),
        ("/a", 1, 1, "a comment begins with '//' or '/*'"),
        ("127.0.0.1", 1, 1, "'127.0.0.1' is not a number: a string needs quotes"),
        ("16MiB", 1, 1, "'16MiB' is not a number: a string needs quotes"),
        ("010", 1, 1, "'010' is not a number: a string needs quotes"),
        ("1e999", 1, 1, "'1e999' is not a number: a string needs quotes"),
        ("-Infinity", 1, 1, "'-Infinity' is not a number: a string needs quotes"),
        ("NaN", 1, 1, "'NaN' is not a value: a string needs quotes"),
        ("+-1", 1, 1, "'+-1' is not a number: a string needs quotes"),
        ("0x", 1, 1, "'0x' is not a number: a string needs quotes"),
        (
            "0xFFFFFFFFFFFFFFFFFF", 1, 1,
            "'0xFFFFFFFFFFFFFFFFFF' is not a number: a string needs quotes"
        ),
        (#"'\u12'"#, 1, 6, "4 hexadecimal digits must follow"),
        (#"'\uD800x'"#, 1, 8, "half of a surrogate pair stands alone"),
        ("\u{1}", 1, 1, "a value must stand here, not 'U+0001'"),
    ]

    @Test(arguments: refused)
    func `is refused at its place`(row: (text: String, line: Int, column: Int, says: String)) {
        #expect(
            throws: JSON5Error(
                position: SourcePosition(line: row.line, column: row.column), text: row.says)
        ) { try JSON5Parser.parse(row.text) }
    }

    @Test func `too many brackets are refused, not followed`() {
        let text = String(repeating: "[", count: 100_000)
        #expect(throws: JSON5Error.self) { try JSON5Parser.parse(text) }
    }

    @Test(arguments: 0..<200 as Range<UInt64>)
    func `whatever stands in a file gives a value or a place in the file`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let pieces = [
            "{", "}", "[", "]", ",", ":", "'", "\"", "\\", "\\u", "D800", "//", "/*", "*/", "\n",
            "\r", " ", "a", "null", "0x", "1", "-", ".", "e", "é", "\u{0}", "\u{2028}", "{a:1}",
        ]
        for _ in 0..<50 {
            let text = (0..<Int.random(in: 0...20, using: &random))
                .map { _ in pieces.randomElement(using: &random) ?? "" }.joined()
            do {
                _ = try JSON5Parser.parse(text)
            } catch {
                let lineCount = text.unicodeScalars.count + 1
                #expect((1...lineCount).contains(error.position.line), "seed \(seed): \(text)")
                #expect(error.position.column >= 1, "seed \(seed): \(text)")
            }
        }
    }
}
