/// Reads JSON5 (json5.org, version 1.0.0) for configuration files: comments, trailing commas, bare
/// keys, single quotes, hexadecimal numbers.
///
/// Two differences, both because a configuration is written by hand: a key that stands twice in one
/// object is an error, and numbers are finite (`Infinity` and `NaN` configure nothing).
package struct JSON5Parser {
    private let text: [Unicode.Scalar]
    private var next = 0
    private var line = 1
    private var lineStart = 0
    private var depth = 0

    /// Objects and arrays inside each other.
    package static let depthMax = 32

    private init(_ text: String) { self.text = Array(text.unicodeScalars) }

    package static func parse(_ text: String) throws(JSON5Error) -> JSON5Value {
        var parser = JSON5Parser(text)
        try parser.skipSpace()
        let value = try parser.value()
        try parser.skipSpace()
        guard parser.peek == nil else {
            throw parser.error("nothing may follow the value, but '\(parser.shown)' does")
        }
        return value
    }

    // MARK: Values

    private mutating func value() throws(JSON5Error) -> JSON5Value {
        let start = self.position
        guard let scalar = self.peek else { throw self.error("a value is missing at the end") }
        switch scalar {
        case "{": return JSON5Value(kind: .object(try self.object()), position: start)
        case "[": return JSON5Value(kind: .array(try self.array()), position: start)
        case "\"", "'": return JSON5Value(kind: .string(try self.string()), position: start)
        case "+", "-", ".", "0"..."9":
            return JSON5Value(kind: .number(try self.number()), position: start)
        default:
            guard Self.startsIdentifier(scalar) else {
                throw self.error("a value must stand here, not '\(self.shown)'")
            }
            switch self.identifier() {
            case "true": return JSON5Value(kind: .bool(true), position: start)
            case "false": return JSON5Value(kind: .bool(false), position: start)
            case "null": return JSON5Value(kind: .null, position: start)
            case let word:
                throw JSON5Error(
                    position: start, text: "'\(word)' is not a value: a string needs quotes")
            }
        }
    }

    private mutating func object() throws(JSON5Error) -> [JSON5Value.Member] {
        try self.enter()
        var members: [JSON5Value.Member] = []
        while true {
            try self.skipSpace()
            if self.take("}") { break }
            let start = self.position
            let key = try self.key()
            if let first = members.first(where: { $0.key == key }) {
                throw JSON5Error(
                    position: start,
                    text: "'\(key)' is given twice: first in line \(first.position.line)")
            }
            try self.skipSpace()
            guard self.take(":") else { throw self.error("':' must follow the key '\(key)'") }
            try self.skipSpace()
            members.append(
                JSON5Value.Member(key: key, position: start, value: try self.value()))
            try self.skipSpace()
            if self.take(",") { continue }
            guard self.take("}") else {
                throw self.error("',' or '}' must stand here, not '\(self.shown)'")
            }
            break
        }
        self.depth -= 1
        return members
    }

    private mutating func array() throws(JSON5Error) -> [JSON5Value] {
        try self.enter()
        var values: [JSON5Value] = []
        while true {
            try self.skipSpace()
            if self.take("]") { break }
            values.append(try self.value())
            try self.skipSpace()
            if self.take(",") { continue }
            guard self.take("]") else {
                throw self.error("',' or ']' must stand here, not '\(self.shown)'")
            }
            break
        }
        self.depth -= 1
        return values
    }

    /// Steps over the bracket.
    private mutating func enter() throws(JSON5Error) {
        self.depth += 1
        if self.depth > Self.depthMax {
            throw self.error("more than \(Self.depthMax) objects and arrays inside each other")
        }
        self.advance()
    }

    private mutating func key() throws(JSON5Error) -> String {
        switch self.peek {
        case "\"", "'": return try self.string()
        case let scalar? where Self.startsIdentifier(scalar): return self.identifier()
        default: throw self.error("a key must stand here, not '\(self.shown)'")
        }
    }

    private mutating func identifier() -> String {
        var word = String.UnicodeScalarView()
        while let scalar = self.peek,
            Self.startsIdentifier(scalar) || ("0"..."9").contains(scalar)
        {
            word.append(scalar)
            self.advance()
        }
        return String(word)
    }

    private static func startsIdentifier(_ scalar: Unicode.Scalar) -> Bool {
        scalar == "_" || scalar == "$" || scalar.properties.isAlphabetic
    }

    private mutating func string() throws(JSON5Error) -> String {
        let start = self.position
        let quote = self.peek
        self.advance()
        var out = String.UnicodeScalarView()
        while let scalar = self.peek {
            self.advance()
            if scalar == quote { return String(out) }
            if scalar == "\n" || scalar == "\r" { break }
            if scalar == "\\" {
                if let escaped = try self.escape() { out.append(escaped) }
            } else {
                out.append(scalar)
            }
        }
        throw JSON5Error(position: start, text: "the string that begins here does not end")
    }

    /// The character that a backslash and what follows it stand for; nil for a line that continues
    /// on the next.
    private mutating func escape() throws(JSON5Error) -> Unicode.Scalar? {
        guard let scalar = self.peek else { throw self.error("the file ends inside a string") }
        self.advance()
        switch scalar {
        case "b": return "\u{08}"
        case "f": return "\u{0C}"
        case "n": return "\n"
        case "r": return "\r"
        case "t": return "\t"
        case "v": return "\u{0B}"
        case "0": return "\0"
        case "\r":
            if self.peek == "\n" { self.advance() }
            self.countLine()
            return nil
        case "\n", "\u{2028}", "\u{2029}":
            self.countLine()
            return nil
        case "x": return Unicode.Scalar(UInt8(try self.hexadecimal(digits: 2)))
        case "u":
            let unit = try self.hexadecimal(digits: 4)
            if (0xD800..<0xDC00).contains(unit), self.take("\\"), self.take("u") {
                let low = try self.hexadecimal(digits: 4)
                guard (0xDC00..<0xE000).contains(low) else {
                    throw self.error("half of a surrogate pair stands alone")
                }
                return Unicode.Scalar(
                    0x10000 + (UInt32(unit) - 0xD800) << 10 + UInt32(low) - 0xDC00)
            }
            guard let scalar = Unicode.Scalar(unit) else {
                throw self.error("half of a surrogate pair stands alone")
            }
            return scalar
        default: return scalar
        }
    }

    private mutating func hexadecimal(digits: Int) throws(JSON5Error) -> UInt16 {
        var number: UInt16 = 0
        for _ in 0..<digits {
            guard let scalar = self.peek, let digit = Character(scalar).hexDigitValue,
                scalar.isASCII
            else { throw self.error("\(digits) hexadecimal digits must follow") }
            number = number << 4 | UInt16(digit)
            self.advance()
        }
        return number
    }

    private mutating func number() throws(JSON5Error) -> Double {
        let start = self.position
        var word = ""
        while let scalar = self.peek,
            Self.startsIdentifier(scalar) || ("0"..."9").contains(scalar)
                || scalar == "." || scalar == "+" || scalar == "-"
        {
            word.unicodeScalars.append(scalar)
            self.advance()
        }
        guard let number = Self.number(word), number.isFinite else {
            throw JSON5Error(
                position: start, text: "'\(word)' is not a number: a string needs quotes")
        }
        return number
    }

    private static func number(_ word: String) -> Double? {
        var digits = Substring(word)
        var sign = 1.0
        if digits.hasPrefix("-") || digits.hasPrefix("+") {
            sign = digits.removeFirst() == "-" ? -1 : 1
        }
        if digits.hasPrefix("0x") || digits.hasPrefix("0X") {
            // More than 52 bits would not be exact.
            guard let whole = UInt64(digits.dropFirst(2), radix: 16), whole >> 53 == 0,
                digits.dropFirst(2).first?.isHexDigit == true
            else { return nil }
            return sign * Double(whole)
        }
        guard digits.utf8.allSatisfy({ Self.numberBytes.contains($0) }),
            digits.utf8.first != UInt8(ascii: "+"), digits.utf8.first != UInt8(ascii: "-"),
            digits.utf8.first.map({ $0 | 0x20 }) != UInt8(ascii: "e")
        else { return nil }
        // JSON5 allows a point at either end; a zero in front of other digits is a mistake.
        if digits.utf8.count > 1, digits.hasPrefix("0"),
            let second = digits.dropFirst().first, second.isNumber
        {
            return nil
        }
        if digits.hasSuffix(".") { digits.removeLast() }
        if digits.hasPrefix(".") { digits = "0" + digits }
        return Double(digits).map { sign * $0 }
    }

    private static let numberBytes = Array("0123456789.+-eE".utf8)

    // MARK: Reading on

    private var peek: Unicode.Scalar? { self.next < self.text.count ? self.text[self.next] : nil }

    private var position: SourcePosition {
        SourcePosition(line: self.line, column: self.next - self.lineStart + 1)
    }

    /// The scalar here as it may stand in a message.
    private var shown: String {
        guard let scalar = self.peek else { return "the end of the file" }
        return scalar.value < 0x20 || scalar.value == 0x7F
            ? "U+00" + (scalar.value < 16 ? "0" : "") + String(scalar.value, radix: 16)
            : String(Character(scalar))
    }

    private func error(_ text: String) -> JSON5Error {
        JSON5Error(position: self.position, text: text)
    }

    private mutating func advance() { self.next += 1 }

    private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
        guard self.peek == scalar else { return false }
        self.advance()
        return true
    }

    private mutating func countLine() {
        self.line += 1
        self.lineStart = self.next
    }

    private mutating func skipSpace() throws(JSON5Error) {
        while let scalar = self.peek {
            switch scalar {
            case "\r":
                self.advance()
                if self.peek == "\n" { self.advance() }
                self.countLine()
            case "\n", "\u{2028}", "\u{2029}":
                self.advance()
                self.countLine()
            case "\t", "\u{0B}", "\u{0C}", " ", "\u{A0}", "\u{FEFF}":
                self.advance()
            case "/":
                try self.skipComment()
            default:
                guard scalar.properties.generalCategory == .spaceSeparator else { return }
                self.advance()
            }
        }
    }

    private mutating func skipComment() throws(JSON5Error) {
        let start = self.position
        self.advance()
        if self.take("/") {
            while let scalar = self.peek, scalar != "\n", scalar != "\r" { self.advance() }
            return
        }
        guard self.take("*") else {
            throw JSON5Error(position: start, text: "a comment begins with '//' or '/*'")
        }
        while let scalar = self.peek {
            self.advance()
            if scalar == "*", self.take("/") { return }
            if scalar == "\n" { self.countLine() }
        }
        throw JSON5Error(position: start, text: "the comment that begins here does not end")
    }
}
