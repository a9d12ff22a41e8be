import StratusHTTP
package import StratusModel
package import StratusSealing

/// Every key of who is asking, derived from the one secret that all nodes of a cluster share.
package struct IdentityKeys: Sendable {
    private let master: Bytes
    package let cipher: TokenCipher
    private let tokenHashKey: Bytes
    private let addressKey: Bytes
    /// The key under which other keys are stored.
    var wrappingKey: Bytes { KeyedHash.derive(self.master, "wrapping") }

    /// - Parameter master: 32 secret bytes, the same on every node and over every restart.
    package init(master: Bytes) {
        precondition(master.count == 32, "a master key has 32 bytes")
        self.master = KeyedHash.derive(master, "stratus identity 1")
        self.cipher = TokenCipher(key: KeyedHash.derive(self.master, "credentials"))
        self.tokenHashKey = KeyedHash.derive(self.master, "api token")
        self.addressKey = KeyedHash.derive(self.master, "address")
    }

    /// The stored form of an API token, or of a one-time secret.
    package func hash(ofToken token: String) -> Bytes {
        KeyedHash.hmac(key: self.tokenHashKey, parts: [Bytes(token.utf8)])
    }

    /// The home of an e-mail address, as ``EmailAddress`` normalises it.
    package func hash(of address: EmailAddress) -> Bytes {
        KeyedHash.hmac(key: self.addressKey, parts: [Bytes(address.normalised.utf8)])
    }

    /// Ties an entry of the audit trail to the one before it.
    func chain(_ before: Bytes, _ entry: Bytes) -> Bytes {
        KeyedHash.derive(self.master, "audit", before, entry)
    }

    /// The mask of the links of a container's shares.
    func shareLink(_ container: ContainerReference) -> Bytes {
        KeyedHash.derive(
            self.master, "share link", Bytes(container.container.utf8),
            [container.environment.rawValue])
    }

    /// A person's name in one container and environment: `_` and 128 bits, which reveal nothing of
    /// the same person's names elsewhere.
    package func userRecordName(
        of account: AccountID, epoch: UInt64, in container: ContainerReference
    ) -> String {
        self.name(
            "user", container, account.bytes, withUnsafeBytes(of: epoch.bigEndian) { Bytes($0) })
    }

    /// The user that a server-to-server key acts as.
    package func userRecordName(ofServerKey key: Bytes, in container: ContainerReference) -> String
    {
        self.name("server key", container, key)
    }

    private func name(
        _ purpose: String, _ container: ContainerReference, _ one: Bytes, _ two: Bytes = []
    ) -> String {
        let key = KeyedHash.derive(
            self.master, "container", Bytes(container.container.utf8),
            [container.environment.rawValue])
        return "_" + Hexadecimal.text(KeyedHash.derive(key, purpose, one, two)[..<16])
    }
}

package enum Hexadecimal {
    package static func text(_ bytes: some Sequence<UInt8>) -> String {
        var text = Bytes()
        for byte in bytes {
            text.append(Self.digit(byte >> 4))
            text.append(Self.digit(byte & 15))
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Nil for an odd number of digits or anything else.
    package static func bytes(_ text: String) -> Bytes? {
        var bytes = Bytes()
        var rest = text.utf8.makeIterator()
        while let first = rest.next() {
            guard let high = Self.value(first), let low = rest.next().flatMap(Self.value) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

/// Base64 as URLs and cookies take it (RFC 4648 §5), without padding.
package enum Base64URL {
    package static func encode(_ bytes: Bytes) -> String {
        String(
            decoding: Base64.encode(bytes).utf8.compactMap { byte -> UInt8? in
                switch byte {
                case UInt8(ascii: "+"): UInt8(ascii: "-")
                case UInt8(ascii: "/"): UInt8(ascii: "_")
                case UInt8(ascii: "="): nil
                default: byte
                }
            }, as: UTF8.self)
    }

    package static func decode(_ text: Substring) -> Bytes? {
        var standard = Bytes()
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "-"): standard.append(UInt8(ascii: "+"))
            case UInt8(ascii: "_"): standard.append(UInt8(ascii: "/"))
            case UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="): return nil
            default: standard.append(byte)
            }
        }
        while standard.count % 4 != 0 { standard.append(UInt8(ascii: "=")) }
        return Base64.decode(standard.span)
    }
}
