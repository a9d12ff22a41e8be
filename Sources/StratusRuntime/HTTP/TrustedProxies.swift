package import StratusHTTP

/// The proxies in front of a server whose word about their clients' addresses counts.
///
/// A proxy appends to `X-Forwarded-For` the address that it was asked from. So the list is as long
/// as clients like, and its end is true as far as those who wrote it are trusted.
package struct TrustedProxies: Sendable, Equatable {
    /// An address, or all that begin with the same bits.
    private struct Network: Sendable, Equatable {
        let bytes: [UInt8]
        let bitCount: Int

        func contains(_ address: [UInt8]) -> Bool {
            guard address.count == self.bytes.count else { return false }
            let whole = self.bitCount / 8
            guard address[..<whole] == self.bytes[..<whole] else { return false }
            let rest = self.bitCount % 8
            return rest == 0 || (address[whole] ^ self.bytes[whole]) >> UInt8(8 - rest) == 0
        }
    }

    /// How a Unix socket's peers are called.
    package static let unix = "unix"
    /// Entries of one request that are looked at: more proxies stand in no row.
    static let hopCountMax = 16

    private var networks: [Network] = []
    private var trustsUnix = false

    package init() {}

    /// - Parameter texts: addresses, networks (`10.0.0.0/8`), or `unix`.
    /// - Returns: nil where ``isProxy(_:)`` denies one of them.
    package init?(_ texts: [String]) {
        for text in texts {
            if text == Self.unix {
                self.trustsUnix = true
            } else if let network = Self.network(text) {
                self.networks.append(network)
            } else {
                return nil
            }
        }
    }

    /// Whether a text names proxies.
    package static func isProxy(_ text: String) -> Bool {
        text == Self.unix || Self.network(text) != nil
    }

    /// Whether connections from there are a proxy's.
    ///
    /// - Parameter peer: an address without a port, or ``unix``.
    package func contains(_ peer: String) -> Bool {
        if peer == Self.unix { return self.trustsUnix }
        guard !self.networks.isEmpty, let address = SocketAddress.bytes(of: peer) else {
            return false
        }
        return self.networks.contains { $0.contains(address) }
    }

    /// The client whose request a proxy passed on: the last address that no trusted proxy wrote for
    /// another one. Nil where the peer is no proxy of ours, or says nothing that can be read.
    package func client(behind peer: String, _ headers: HeaderFields) -> String? {
        guard self.contains(peer) else { return nil }
        var found: String?
        for entry in headers.list("X-Forwarded-For").suffix(Self.hopCountMax).reversed() {
            let host = Self.host(of: entry)
            guard SocketAddress.bytes(of: host) != nil else { break }
            found = host
            guard self.contains(host) else { break }
        }
        return found
    }

    private static func network(_ text: String) -> Network? {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count <= 2, let bytes = SocketAddress.bytes(of: String(parts[0])) else {
            return nil
        }
        guard parts.count == 2 else { return Network(bytes: bytes, bitCount: bytes.count * 8) }
        let digits = parts[1]
        guard digits.utf8.count <= 3, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let bitCount = Int(digits), bitCount <= bytes.count * 8
        else { return nil }
        return Network(bytes: bytes, bitCount: bitCount)
    }

    /// An entry without its port and brackets, which some proxies write.
    private static func host(of entry: String) -> String {
        if entry.hasPrefix("[") {
            return String(entry.dropFirst().prefix { $0 != "]" })
        }
        let colons = entry.utf8.count { $0 == 0x3A }
        return colons == 1 ? String(entry.prefix { $0 != ":" }) : entry
    }
}
