import Foundation
import StratusModel
import Testing

/// Files of every version ever written. Never edited; a new version adds a file.
enum Golden {
    static func bytes(_ name: String) throws -> Bytes {
        let url = try #require(
            Bundle.module.url(forResource: name, withExtension: "hex", subdirectory: "Golden"),
            "no golden file \(name)")
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
