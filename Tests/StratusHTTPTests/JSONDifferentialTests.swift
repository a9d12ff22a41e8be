import Foundation
import StratusHTTP
import StratusModel
import Testing

/// Our reader beside Foundation's: the same documents, and the same documents damaged.
@Suite struct JSONDifferentialTests {
    /// The kinds of input that we refuse on purpose although Foundation's reader accepts it.
    static let stricter: Set<JSONError.Kind> = [
        .loneSurrogate, .numberOutOfRange, .byteOrderMark, .tooDeep, .badUTF8,
    ]

    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `random documents mean the same to Foundation`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<60 {
            let text = Self.document(depth: 4, using: &random)
            let ours = try JSONDocument(parsing: Bytes(text.utf8)).root
            let theirs = try JSONSerialization.jsonObject(
                with: Data(text.utf8), options: .fragmentsAllowed)
            #expect(Self.same(ours, theirs), "seed \(seed): \(text)")
        }
    }

    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `damaged documents are refused by both, or by us for a reason`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let alphabet =
            Bytes("{}[]\",:0123456789.eE+-\\untrflas \n\t\u{1}\u{80}".utf8) + [0xC3, 0xED, 0xFF]
        for _ in 0..<400 {
            var bytes = Bytes(Self.document(depth: 3, using: &random).utf8)
            for _ in 0..<Int.random(in: 1...3, using: &random) where !bytes.isEmpty {
                let at = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes[at] = alphabet.randomElement(using: &random)!
                case 1: bytes.remove(at: at)
                default: bytes.insert(alphabet.randomElement(using: &random)!, at: at)
                }
            }
            let theirs = try? JSONSerialization.jsonObject(
                with: Data(bytes), options: .fragmentsAllowed)
            let text = String(decoding: bytes, as: UTF8.self)
            do throws(JSONError) {
                let ours = try JSONDocument(parsing: bytes).root
                #expect(theirs != nil, "seed \(seed), only we accept: \(text)")
                if let theirs { #expect(Self.same(ours, theirs), "seed \(seed): \(text)") }
            } catch {
                #expect(
                    theirs == nil || Self.stricter.contains(error.kind)
                        || Self.isTrailingComma(bytes, error),
                    "seed \(seed), only Foundation accepts, \(error): \(text)")
            }
        }
    }

    /// `[1,]`, which Foundation's reader lets pass.
    private static func isTrailingComma(_ bytes: Bytes, _ error: JSONError) -> Bool {
        error.kind == .unexpectedByte && bytes[error.offset] == UInt8(ascii: "]")
            && bytes[..<error.offset].last { !" \n\t".utf8.contains($0) } == UInt8(ascii: ",")
    }

    private static func same(_ ours: JSONValue, _ theirs: Any) -> Bool {
        switch ours.kind {
        case .null: return theirs is NSNull
        case .bool: return (theirs as? Bool) == ours.bool
        case .string: return (theirs as? String).map { Bytes($0.utf8) } == ours.utf8
        case .number:
            guard let number = theirs as? NSNumber else { return false }
            if let integer = ours.int64 { return number.int64Value == integer }
            // Foundation's own conversion misses the nearest Double now and then, by one step:
            // the standard library's is the judge.
            return number.doubleValue == ours.double
                || Double(ours.numberText ?? "") == ours.double
        case .array:
            guard let elements = theirs as? [Any], let array = ours.array else { return false }
            return elements.count == array.count
                && zip(array, elements).allSatisfy { Self.same($0, $1) }
        case .object:
            guard let members = theirs as? [String: Any], let object = ours.object else {
                return false
            }
            return object.allSatisfy { member in
                members[member.name].map { Self.same(member.value, $0) } ?? false
            }
        }
    }

    private static func document(depth: Int, using random: inout SeededGenerator) -> String {
        let space = ["", "", "", " ", "\n\t"].randomElement(using: &random)!
        switch Int.random(in: 0..<(depth > 0 ? 9 : 6), using: &random) {
        case 0: return "null"
        case 1: return Bool.random(using: &random) ? "true" : "false"
        case 2:
            return
                "\(Int64(truncatingIfNeeded: random.next()) >> Int64.random(in: 0...63, using: &random))"
        case 3:
            let digits = Double(Int64.random(in: -100_000_000...100_000_000, using: &random))
            return "\(digits / 10_000)" + ["", "e3", "E-7", "e+12"].randomElement(using: &random)!
        case 4, 5: return Self.string(using: &random)
        case 6, 7:
            let elements = (0..<Int.random(in: 0...4, using: &random)).map { _ in
                Self.document(depth: depth - 1, using: &random)
            }
            return "[" + space + elements.joined(separator: space + ",") + "]"
        default:
            let members = (0..<Int.random(in: 0...5, using: &random)).map { index in
                // Keys of their own: which of two equal ones counts is ours to say.
                "\"\(index)" + Self.string(using: &random).dropFirst() + space + ":"
                    + Self.document(depth: depth - 1, using: &random)
            }
            return "{" + members.joined(separator: "," + space) + space + "}"
        }
    }

    private static func string(using random: inout SeededGenerator) -> String {
        let parts = [
            "a", "Z", "é", "€", "😀", "\\n", "\\\"", "\\\\", "\\/", "\\u00e9", "\\ud83d\\ude00", " ",
            "\u{7F}", "plain text of some length",
        ]
        let count = Int.random(in: 0...6, using: &random)
        return "\"" + (0..<count).map { _ in parts.randomElement(using: &random)! }.joined() + "\""
    }
}
