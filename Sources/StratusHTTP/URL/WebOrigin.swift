/// The origin of a web page: `http(s)://host[:port]`, and nothing else.
///
/// Browsers send `null` for pages without an origin, and other programs send any text. Only a web
/// origin may become the receiver of a token.
package struct WebOrigin: Sendable, Hashable {
    package let text: String

    package init?(_ text: String) {
        guard text.utf8.count <= 300 else { return nil }
        let lower = text.lowercased()
        guard let scheme = ["https://", "http://"].first(where: { lower.hasPrefix($0) }) else {
            return nil
        }
        guard Self.isAuthority(lower.utf8.dropFirst(scheme.utf8.count)) else { return nil }
        self.text = text
    }

    /// The origin that a URL belongs to.
    package init?(of url: String) {
        guard let end = url.firstRange(of: "://")?.upperBound else { return nil }
        self.init(String(url[..<end] + url[end...].prefix { !"/?#".contains($0) }))
    }

    /// Origins are compared without regard to case.
    package func isSame(as other: String) -> Bool { self.text.lowercased() == other.lowercased() }

    private static func isAuthority(_ authority: Substring.UTF8View) -> Bool {
        var rest = authority[...]
        if rest.first == UInt8(ascii: "[") {
            guard let end = rest.firstIndex(of: UInt8(ascii: "]")) else { return false }
            let address = rest[rest.index(after: rest.startIndex)..<end]
            guard !address.isEmpty, address.allSatisfy({ Self.isHex($0) || $0 == 0x3A }) else {
                return false
            }
            rest = rest[rest.index(after: end)...]
        } else {
            let host = rest.prefix { $0 != UInt8(ascii: ":") }
            guard !host.isEmpty, host.allSatisfy(Self.isName) else { return false }
            rest = rest[host.endIndex...]
        }
        guard let colon = rest.first else { return true }
        guard colon == UInt8(ascii: ":"),
            let port = String(validating: rest.dropFirst(), as: UTF8.self),
            port.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let number = UInt16(port)
        else { return false }
        return number > 0
    }

    private static func isHex(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte)
    }

    private static func isName(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte) || byte == 0x2D || byte == 0x2E
            || byte == 0x5F
    }
}
