import Foundation
import StratusHTTP
import StratusModel
import StratusSealing

/// Arithmetic of tests, by other means than the product's where that is easy.
enum Sums {
    static func sha256(_ bytes: Bytes) -> Bytes { SHA256.hash(bytes) }
    static func base64(_ text: String) -> Bytes? { Data(base64Encoded: text).map { Bytes($0) } }
    static func base64(_ bytes: Bytes) -> String { Data(bytes).base64EncodedString() }

    private static let order: Bytes = [
        0xFF, 0xFF, 0xFF, 0xFF, 0x00, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
        0xFF, 0xBC, 0xE6, 0xFA, 0xAD, 0xA7, 0x17, 0x9E, 0x84, 0xF3, 0xB9, 0xCA, 0xC2, 0xFC, 0x63,
        0x25, 0x51,
    ]

    /// (r, n - s) for (r, s), both in DER.
    static func twin(of signature: Bytes) -> Bytes? {
        guard signature.count > 8, signature[0] == 0x30, signature[2] == 0x02 else { return nil }
        let rEnd = 4 + Int(signature[3])
        guard signature.count > rEnd + 2, signature[rEnd] == 0x02 else { return nil }
        var s = Bytes(signature[(rEnd + 2)...].drop { $0 == 0 })
        s = Bytes(repeating: 0, count: 32 - s.count) + s
        var borrow = 0
        var difference = Bytes(repeating: 0, count: 32)
        for position in (0..<32).reversed() {
            let value = Int(Self.order[position]) - Int(s[position]) - borrow
            borrow = value < 0 ? 1 : 0
            difference[position] = UInt8((value + 256) % 256)
        }
        difference = Bytes(difference.drop { $0 == 0 })
        if difference.first.map({ $0 >= 0x80 }) ?? true { difference = [0] + difference }
        let body =
            Bytes(signature[2..<rEnd]) + [0x02, UInt8(difference.count)] + difference
        return [0x30, UInt8(body.count)] + body
    }
}
