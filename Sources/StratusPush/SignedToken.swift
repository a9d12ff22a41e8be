import StratusHTTP
import StratusModel
import StratusSealing

/// A JSON Web Token signed with ES256 (RFC 7519, RFC 7515): header, claims, signature.
enum SignedToken {
    static func make(header: String, claims: String, _ key: SigningKey) -> String {
        let text =
            Base64URL.encode(Bytes(header.utf8)) + "." + Base64URL.encode(Bytes(claims.utf8))
        return text + "." + Base64URL.encode(key.sign(Bytes(text.utf8)))
    }

    /// A JSON string with its quotation marks.
    static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case _ where scalar.value < 0x20:
                let digits = String(scalar.value, radix: 16)
                quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}
