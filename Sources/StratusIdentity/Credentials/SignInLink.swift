import StratusCoding
package import StratusModel
package import StratusSealing

/// The address of a sign-in page: who asked for it and where the answer goes. Sealed, so that
/// nobody can forge one, and used up by one successful sign-in.
///
/// | bytes  | content, format 1                                       |
/// | ------ | ------------------------------------------------------- |
/// | 1      | format, 1                                               |
/// | text   | container                                               |
/// | 1      | environment                                             |
/// | 32     | the API token's hash; zeros for one that is not stored  |
/// | text   | the origin that asked; empty: none did                  |
/// | 16     | nonce                                                   |
/// | signed | issued, milliseconds                                    |
package struct SignInLink: Sendable, Equatable {
    package static let lifeMilliseconds: Int64 = 30 * 60_000

    package var container: ContainerReference
    package var tokenHash: Bytes
    package var origin: String?
    package var nonce: Bytes
    package var issuedMilliseconds: Int64

    package init(
        container: ContainerReference, tokenHash: Bytes, origin: String?, nonce: Bytes,
        issuedMilliseconds: Int64
    ) {
        self.container = container
        self.tokenHash = tokenHash
        self.origin = origin
        self.nonce = nonce
        self.issuedMilliseconds = issuedMilliseconds
    }

    package var expiresAtMilliseconds: Int64 { self.issuedMilliseconds + Self.lifeMilliseconds }

    package func isAlive(at milliseconds: Int64) -> Bool {
        milliseconds < self.expiresAtMilliseconds
            && milliseconds > self.issuedMilliseconds - 3_600_000
    }

    package func text(sealedWith cipher: TokenCipher) -> String {
        var writer = ByteWriter(reserving: 128)
        writer.write(1 as UInt8)
        writer.write(text: self.container.container)
        writer.write(self.container.environment.rawValue)
        writer.write(raw: self.tokenHash)
        writer.write(text: self.origin ?? "")
        writer.write(raw: self.nonce)
        writer.write(signed: self.issuedMilliseconds)
        return Base64URL.encode(cipher.seal(writer.bytes, for: Self.circumstances))
    }

    package init?(text: String, openedWith cipher: TokenCipher) {
        guard text.utf8.count <= 2_048, let sealed = Base64URL.decode(text[...]),
            let content = cipher.open(sealed, for: Self.circumstances)
        else { return nil }
        var reader = ByteReader(content)
        do throws(DecodingError) {
            try reader.identityFormat(1)
            let name = try reader.text()
            guard let environment = Environment(rawValue: try reader.byte()) else { return nil }
            self.container = ContainerReference(container: name, environment: environment)
            self.tokenHash = try reader.raw(32)
            let origin = try reader.text()
            self.origin = origin.isEmpty ? nil : origin
            self.nonce = try reader.raw(16)
            self.issuedMilliseconds = try reader.signed()
            try reader.finish()
        } catch { return nil }
        // Nobody can forge one. All the same, no time in it may be beyond what can be reckoned
        // with.
        guard Self.times.contains(self.issuedMilliseconds) else { return nil }
    }

    /// From 1970 for 285,000 years.
    private static let times: ClosedRange<Int64> = 0...(1 << 53)

    private static let circumstances = Bytes("sign-in link".utf8)
}
