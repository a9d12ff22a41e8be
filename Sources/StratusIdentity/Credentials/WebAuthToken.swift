import StratusCoding
package import StratusModel
package import StratusSealing

/// The token of a signed-in client: "this session, as of then".
///
/// Sealed for one container and environment, so that it can be read without a lookup and is worth
/// nothing elsewhere. Its text is letters, digits, `-` and `_`, which every URL, cookie and client
/// leaves unchanged. Equal content is equal text, so that the answers to concurrent requests carry
/// the same token.
///
/// | bytes  | content, format 1                                      |
/// | ------ | ------------------------------------------------------ |
/// | 1      | format, 1                                              |
/// | 16     | account                                                |
/// | 16     | session                                                |
/// | flag   | stays                                                  |
/// | signed | issued, in units of five minutes since 1970            |
package struct WebAuthToken: Sendable, Equatable {
    /// A token is replaced by the next answer once it is older than this.
    package static let unitMilliseconds: Int64 = 5 * 60_000
    static let prefix = "s1_"

    package var account: AccountID
    package var session: Bytes
    package var stays: Bool
    package var issuedUnit: Int64

    package init(account: AccountID, session: Bytes, stays: Bool, issuedAtMilliseconds: Int64) {
        self.account = account
        self.session = session
        self.stays = stays
        self.issuedUnit = issuedAtMilliseconds / Self.unitMilliseconds
    }

    /// How long an unused one is good. Longer than the day that clients are known to keep one.
    package static func lifeMilliseconds(stays: Bool) -> Int64 {
        stays ? 14 * 86_400_000 : 26 * 3_600_000
    }

    package func isAlive(at milliseconds: Int64) -> Bool {
        let issued = self.issuedUnit.multipliedReportingOverflow(by: Self.unitMilliseconds)
        guard !issued.overflow else { return false }
        // A clock that went back is no reason to sign everybody out, within reason.
        return milliseconds >= issued.partialValue - 3_600_000
            && milliseconds - issued.partialValue < Self.lifeMilliseconds(stays: self.stays)
    }

    /// How long from now on it is good, and its answers bring the same token.
    func sameMilliseconds(at milliseconds: Int64) -> Int64 {
        let unit = milliseconds / Self.unitMilliseconds
        let dies =
            self.issuedUnit * Self.unitMilliseconds + Self.lifeMilliseconds(stays: self.stays)
        let renewed =
            unit >= self.issuedUnit
            ? (unit + 1) * Self.unitMilliseconds
            : (self.issuedUnit + 1) * Self.unitMilliseconds
        return max(0, min(dies, renewed) - milliseconds)
    }

    package func renewed(at milliseconds: Int64) -> WebAuthToken {
        var token = self
        token.issuedUnit = max(self.issuedUnit, milliseconds / Self.unitMilliseconds)
        return token
    }

    package func text(in container: ContainerReference, sealedWith cipher: TokenCipher) -> String {
        var writer = ByteWriter(reserving: 48)
        writer.write(1 as UInt8)
        writer.write(raw: self.account.bytes)
        writer.write(raw: self.session)
        writer.write(flag: self.stays)
        writer.write(signed: self.issuedUnit)
        return Self.prefix
            + Base64URL.encode(cipher.seal(writer.bytes, for: Self.circumstances(container)))
    }

    /// Nil for what was not sealed here for this container.
    package init?(text: String, in container: ContainerReference, openedWith cipher: TokenCipher) {
        guard text.hasPrefix(Self.prefix), text.utf8.count <= 256,
            let sealed = Base64URL.decode(text.dropFirst(Self.prefix.count)),
            let content = cipher.open(sealed, for: Self.circumstances(container))
        else { return nil }
        var reader = ByteReader(content)
        do throws(DecodingError) {
            try reader.identityFormat(1)
            guard let account = AccountID(bytes: try reader.raw(16)) else { return nil }
            self.account = account
            self.session = try reader.raw(16)
            self.stays = try reader.flag()
            self.issuedUnit = try reader.signed()
            try reader.finish()
        } catch { return nil }
        // Nobody can forge one. All the same, no time in it may be beyond what can be reckoned
        // with.
        guard Self.units.contains(self.issuedUnit) else { return nil }
    }

    /// From 1970 for 285,000 years.
    private static let units: ClosedRange<Int64> = 0...(1 << 53) / Self.unitMilliseconds

    private static func circumstances(_ container: ContainerReference) -> Bytes {
        Bytes("web auth".utf8) + [0, container.environment.rawValue]
            + Bytes(container.container.utf8)
    }
}
