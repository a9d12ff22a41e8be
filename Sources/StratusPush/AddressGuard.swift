package import StratusModel

/// Whether a push may be sent to where somebody else says (P-10): only over HTTPS, on its own port,
/// to hosts and addresses of the open internet.
///
/// Asked with the endpoint at its registration, and with each address that the host's name stands
/// for at each connect: the connection goes to the very addresses that were judged.
package enum AddressGuard {
    package enum Refusal: Error, Sendable, Equatable {
        case malformed, scheme, userInformation, port, host, address
    }

    /// The parts of an endpoint's URL that remain once it is judged.
    package struct Endpoint: Sendable, Equatable {
        package var host: String
        package var port: UInt16 = 443
        /// Path and query.
        package var target: String
        /// The audience of its VAPID token.
        package var origin: String { "https://\(self.authority)" }
        /// The `Host` of its requests.
        package var authority: String {
            self.port == 443 ? self.host : "\(self.host):\(self.port)"
        }
    }

    /// - Parameter allowsPrivate: takes any host and port. For stand-ins of a push service.
    package static func endpoint(
        _ url: String, allowsPrivate: Bool = false
    ) throws(Refusal) -> Endpoint {
        guard url.utf8.count <= 2_048, url.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x5C })
        else { throw .malformed }
        guard let scheme = url.firstRange(of: "://") else { throw .malformed }
        guard url[..<scheme.lowerBound] == "https" else { throw .scheme }
        let rest = url[scheme.upperBound...]
        let end = rest.firstIndex { $0 == "/" || $0 == "?" || $0 == "#" } ?? rest.endIndex
        guard !rest.contains("#") else { throw .malformed }
        let authority = rest[..<end]
        guard !authority.contains("@") else { throw .userInformation }
        // A bracket is an address, and addresses are no push services.
        guard !authority.contains("["), !authority.contains("]") else { throw .host }
        var host = authority
        var port: UInt16 = 443
        if let colon = authority.lastIndex(of: ":") {
            let digits = authority[authority.index(after: colon)...]
            // `UInt16` takes a sign and leading zeros, which no browser writes.
            guard let number = UInt16(digits), digits == String(number), number > 0,
                number == 443 || allowsPrivate
            else { throw .port }
            port = number
            host = authority[..<colon]
        }
        if allowsPrivate {
            guard !host.isEmpty else { throw .host }
        } else {
            try Self.check(host: String(host))
        }
        let target = rest[end...]
        return Endpoint(
            host: String(host).lowercased(), port: port,
            target: target.isEmpty || target.first == "?" ? "/" + String(target) : String(target))
    }

    /// A name with a dot in it, whose last label is no number: no address in any of its disguises
    /// (decimal, octal, hexadecimal), no name of this machine or of its network.
    private static func check(host: String) throws(Refusal) {
        let labels = host.split(separator: ".", omittingEmptySubsequences: false)
        guard host.utf8.count <= 253, labels.count >= 2, let last = labels.last else { throw .host }
        for label in labels {
            let isFit =
                (1...63).contains(label.utf8.count)
                && label.utf8.allSatisfy {
                    ($0 >= 0x30 && $0 <= 0x39) || ($0 | 0x20 >= 0x61 && $0 | 0x20 <= 0x7A)
                        || $0 == 0x2D
                } && label.first != "-" && label.last != "-"
            guard isFit else { throw .host }
        }
        let first = last.utf8.first ?? 0x30
        guard !(0x30...0x39).contains(first) else { throw .host }
        let lowered = last.lowercased()
        guard
            !["localhost", "local", "internal", "arpa", "onion", "test", "invalid"].contains(
                lowered)
        else { throw .host }
    }

    /// Whether four bytes are a global unicast address (RFC 6890).
    package static func isGlobal(v4 bytes: Bytes) -> Bool {
        guard bytes.count == 4 else { return false }
        switch (bytes[0], bytes[1], bytes[2]) {
        case (0, _, _), (10, _, _), (127, _, _): return false
        case (100, 64...127, _): return false
        case (169, 254, _): return false
        case (172, 16...31, _): return false
        case (192, 0, 0), (192, 0, 2), (192, 88, 99), (192, 168, _): return false
        case (198, 18...19, _), (198, 51, 100), (203, 0, 113): return false
        case (224..., _, _): return false
        default: return true
        }
    }

    /// Whether sixteen bytes are a global unicast address; one that carries an IPv4 address is as
    /// good as that.
    package static func isGlobal(v6 bytes: Bytes) -> Bool {
        guard bytes.count == 16 else { return false }
        let carried = Bytes(bytes[12...])
        // Only ::ffff:a.b.c.d of these is used; loopback and the like are refused with the rest.
        if bytes[..<8].allSatisfy({ $0 == 0 }) {
            return Array(bytes[8..<12]) == [0, 0, 255, 255] && Self.isGlobal(v4: carried)
        }
        // Translated: 64:ff9b::/96, and 6to4, whose address stands in front.
        if bytes[..<12].elementsEqual([0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0]) {
            return Self.isGlobal(v4: carried)
        }
        if bytes[0] == 0x20, bytes[1] == 0x02 { return Self.isGlobal(v4: Bytes(bytes[2..<6])) }
        // Teredo, documentation, benchmarking, ORCHID.
        if bytes[0] == 0x20, bytes[1] == 0x01 {
            if bytes[2] == 0, bytes[3] < 0x30 { return false }
            if bytes[2] == 0x0D, bytes[3] == 0xB8 { return false }
        }
        if bytes[0] == 0x3F, bytes[1] == 0xFF { return false }
        return bytes[0] & 0xE0 == 0x20
    }
}
