import StratusCoding
package import StratusModel
import StratusSealing

/// A person at a page that asks for their password once and then takes several forms. The text that
/// stands in those forms proves who sends them; a new account password ends it.
///
/// | bytes    | content, format 1                                    |
/// | -------- | ---------------------------------------------------- |
/// | 1        | format, 1                                            |
/// | 16       | account                                              |
/// | signed   | issued, milliseconds                                 |
/// | prefixed | salt of the account's password, drawn for each of it |
extension Accounts {
    package static let visitMilliseconds: Int64 = 15 * 60_000
    /// How far the clock of the node that made the text may be ahead.
    private static let visitSkewMilliseconds: Int64 = 60_000

    private static let circumstances = Bytes("visit of app passwords".utf8)

    /// Nil: no such account, it is disabled, or its password has changed since it was proven.
    package func visit(
        of id: AccountID, provenBy generation: PasswordGeneration
    ) async throws(RouteError) -> String? {
        guard let account = try await self.account(id), account.status == .active,
            generation == PasswordGeneration(of: account)
        else { return nil }
        var writer = ByteWriter(reserving: 32)
        writer.write(1 as UInt8)
        writer.write(raw: id.bytes)
        writer.write(signed: self.store.now)
        writer.write(prefixed: account.password?.salt ?? [])
        return Base64URL.encode(
            self.store.keys.cipher.seal(writer.bytes, for: Self.circumstances))
    }

    /// Somebody who has proven a password of theirs.
    package struct Visitor: Sendable {
        package var id: AccountID
        package var generation: PasswordGeneration
    }

    /// Nil: the text was not made here, is too old, or the account's password has changed.
    package func visitor(_ text: String) async throws(RouteError) -> Visitor? {
        guard text.utf8.count <= 256, let sealed = Base64URL.decode(text[...]),
            let content = self.store.keys.cipher.open(sealed, for: Self.circumstances),
            let (id, issued, salt) = Self.read(content),
            issued <= self.store.now + Self.visitSkewMilliseconds,
            self.store.now - issued < Self.visitMilliseconds,
            let account = try await self.account(id), account.status == .active,
            salt == account.password?.salt ?? []
        else { return nil }
        return Visitor(id: id, generation: PasswordGeneration(of: account))
    }

    private static func read(_ content: Bytes) -> (AccountID, Int64, Bytes)? {
        var reader = ByteReader(content)
        do throws(DecodingError) {
            try reader.identityFormat(1)
            let bytes = try reader.raw(16)
            let issued = try reader.signed()
            let salt = try reader.prefixed()
            try reader.finish()
            guard let id = AccountID(bytes: Bytes(bytes)), issued >= 0 else { return nil }
            return (id, issued, salt)
        } catch { return nil }
    }
}
