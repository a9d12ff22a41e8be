import StratusHTTP
package import StratusModel

/// Base64 for URLs and tokens, without padding (RFC 4648 §5, RFC 7515 §2).
package enum Base64URL {
    package static func encode(_ bytes: Bytes) -> String {
        var text = Bytes()
        for byte in Base64.encode(bytes).utf8 where byte != 0x3D {
            switch byte {
            case 0x2B: text.append(0x2D)
            case 0x2F: text.append(0x5F)
            default: text.append(byte)
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// With or without padding, as browsers and their tools write it. Nil for anything else.
    package static func decode(_ text: String) -> Bytes? {
        guard text.utf8.count <= 8_192 else { return nil }
        var standard = Bytes()
        for byte in text.utf8 {
            switch byte {
            case 0x2D: standard.append(0x2B)
            case 0x5F: standard.append(0x2F)
            case 0x2B, 0x2F: return nil
            default: standard.append(byte)
            }
        }
        while standard.last == 0x3D { standard.removeLast() }
        while standard.count % 4 != 0 { standard.append(0x3D) }
        return Base64.decode(String(decoding: standard, as: UTF8.self))
    }
}
