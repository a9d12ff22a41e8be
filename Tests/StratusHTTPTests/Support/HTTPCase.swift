import Foundation
import StratusModel
import Testing

/// One case of `Fixtures/http-cases.txt`; the format is described at the top of that file.
struct HTTPCase: Sendable, CustomTestStringConvertible {
    struct Answer: Sendable, Equatable, CustomStringConvertible {
        var status: Int
        /// Nil where it is not compared.
        var body: Bytes?
        var isBodiless = false

        var description: String {
            "\(self.status) \(self.body.map { String(decoding: $0.prefix(80), as: UTF8.self) } ?? "…")"
        }
    }
    enum End: String, Sendable { case open, partial, close }

    var name: String
    var bytes = Bytes()
    var answers: [Answer] = []
    var end = End.open

    var testDescription: String { self.name }

    static let all: [HTTPCase] = {
        let folder = URL(filePath: #filePath).deletingLastPathComponent()
        let fixture = folder.appending(path: "../Fixtures/http-cases.txt")
        do {
            return try Self.parse(String(contentsOf: fixture, encoding: .utf8))
        } catch {
            fatalError("the cases cannot be read: \(error)")
        }
    }()

    struct FormatError: Error { let line: String }

    static func parse(_ text: String) throws -> [HTTPCase] {
        var cases: [HTTPCase] = []
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            let space = line.firstIndex(of: " ") ?? line.endIndex
            let rest = line[space...].dropFirst()
            if line.hasPrefix("case ") {
                cases.append(HTTPCase(name: String(rest)))
                continue
            }
            guard let last = cases.indices.last else { throw FormatError(line: String(line)) }
            switch line[..<space] {
            case "send":
                cases[last].bytes += try Self.unescape(rest)
            case "repeat":
                let parts = rest.split(separator: " ", maxSplits: 1)
                guard parts.count == 2, let count = Int(parts[0]) else {
                    throw FormatError(line: String(line))
                }
                let piece = try Self.unescape(parts[1])
                for _ in 0..<count { cases[last].bytes += piece }
            case "answer":
                cases[last].answers.append(try Self.answer(rest))
            case "answers":
                let parts = rest.split(separator: " ", maxSplits: 1)
                guard parts.count == 2, let count = Int(parts[0]) else {
                    throw FormatError(line: String(line))
                }
                cases[last].answers += Array(repeating: try Self.answer(parts[1]), count: count)
            case "bodiless":
                guard let status = Int(rest) else { throw FormatError(line: String(line)) }
                cases[last].answers.append(Answer(status: status, isBodiless: true))
            case "end":
                guard let end = End(rawValue: String(rest)) else {
                    throw FormatError(line: String(line))
                }
                cases[last].end = end
            default:
                throw FormatError(line: String(line))
            }
        }
        return cases
    }

    private static func answer(_ text: Substring) throws -> Answer {
        let parts = text.split(separator: " ", maxSplits: 1)
        guard let status = parts.first.flatMap({ Int($0) }) else {
            throw FormatError(line: String(text))
        }
        return Answer(status: status, body: try parts.dropFirst().first.map(Self.unescape))
    }

    static func unescape(_ text: Substring) throws -> Bytes {
        var bytes = Bytes()
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\") else {
                bytes.append(byte)
                continue
            }
            switch rest.popFirst() {
            case UInt8(ascii: "r"): bytes.append(0x0D)
            case UInt8(ascii: "n"): bytes.append(0x0A)
            case UInt8(ascii: "t"): bytes.append(0x09)
            case UInt8(ascii: "\\"): bytes.append(0x5C)
            case UInt8(ascii: "x"):
                let digits = String(decoding: rest.prefix(2), as: UTF8.self)
                guard digits.count == 2, let value = UInt8(digits, radix: 16) else {
                    throw FormatError(line: String(text))
                }
                bytes.append(value)
                rest = rest.dropFirst(2)
            default: throw FormatError(line: String(text))
            }
        }
        return bytes
    }
}
