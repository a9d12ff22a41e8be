import Foundation
import StratusModel
import Testing

/// A file for every format. Once a release has written one, its file is never edited, and a new
/// version adds another. With `STRATUS_GOLDEN=write` the files are written anew.
enum Golden {
    /// - Parameter now: what is written today. It becomes the file where that is asked for.
    static func bytes(_ name: String, now: Bytes? = nil) throws -> Bytes {
        let url = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Golden/\(name).hex")
        if let now, ProcessInfo.processInfo.environment["STRATUS_GOLDEN"] == "write" {
            try Data((Self.hexadecimal(now) + "\n").utf8).write(to: url)
        }
        let digits = try String(contentsOf: url, encoding: .utf8).filter(\.isHexDigit)
        var bytes: Bytes = []
        var rest = Substring(digits)
        while !rest.isEmpty {
            bytes.append(try #require(UInt8(rest.prefix(2), radix: 16)))
            rest = rest.dropFirst(2)
        }
        return bytes
    }

    static func hexadecimal(_ bytes: Bytes) -> String {
        bytes.map { String(Int($0) + 0x100, radix: 16).suffix(2) }.joined()
    }
}
