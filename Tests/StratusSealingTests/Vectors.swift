import Foundation
import StratusModel

/// Files beside these tests with lines that others published.
enum Vectors {
    static func lines(_ name: String, file: String = #filePath) throws -> [[String]] {
        let url = URL(filePath: file).deletingLastPathComponent().appending(path: "Vectors/\(name)")
        return try String(contentsOf: url, encoding: .utf8).split(separator: "\n")
            .filter { !$0.hasPrefix("#") }
            .map { $0.split(separator: " ").map(String.init) }
    }

    /// `-` is empty.
    static func bytes(_ digits: String) -> Bytes {
        if digits == "-" { return [] }
        var rest = digits[...]
        var bytes = Bytes()
        while !rest.isEmpty {
            bytes.append(UInt8(rest.prefix(2), radix: 16)!)
            rest = rest.dropFirst(2)
        }
        return bytes
    }

    static func digits(_ bytes: Bytes) -> String {
        bytes.map { String(Int($0) + 0x100, radix: 16).suffix(2) }.joined()
    }
}
