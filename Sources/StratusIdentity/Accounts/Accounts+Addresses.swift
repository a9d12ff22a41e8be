import StratusCoding
package import StratusModel
import StratusRecords
import StratusSealing

/// Addresses of e-mail: whose they are, and how somebody proves it.
extension Accounts {
    // MARK: Changing one

    package enum Moved: Sendable, Equatable { case done, taken, noAccount }

    /// Gives an account another address. Nobody has vouched for it, and a link that was sent to the
    /// address before is good no more.
    ///
    /// The new address is held first, as in ``register(_:in:)``, and the old one is given up before
    /// the account changes. So what stops in between leaves no address that leads to the account for
    /// ever, and a repeat goes on.
    package func move(_ id: AccountID, to address: EmailAddress) async throws(RouteError) -> Moved {
        guard let before = try await self.account(id) else { return .noAccount }
        let hash = self.store.keys.hash(of: address)
        guard try await self.hold(hash, for: id) else { return .taken }
        try await self.giveUp(before.email, for: hash, of: id)
        var replaced = before.email
        let isChanged = try await self.change(id) { account in
            replaced = account.email
            guard account.email != address.text else { return }
            let isSame = EmailAddress(account.email)?.normalised == address.normalised
            account.email = address.text
            // Another spelling of it is the same address.
            if isSame { return }
            account.verification = .unproven
            account.reset = nil
        }
        guard isChanged else { return .noAccount }
        // Another change of the same account may have come in between.
        if replaced != before.email { try await self.giveUp(replaced, for: hash, of: id) }
        guard try await self.keep(hash, for: id) else { return .taken }
        _ = try await self.store.submit(
            [
                .init(
                    IdentityKey(.listing, of: [], id.bytes),
                    .put(body: Bytes(address.text.utf8), expiresAtMilliseconds: 0))
            ], to: Self.listingHome)
        return .done
    }

    /// Holds an address for an account, for ten minutes if it is not the account's already.
    ///
    /// - Returns: false: it is somebody else's.
    private func hold(_ hash: Bytes, for id: AccountID) async throws(RouteError) -> Bool {
        var isOurs = true
        let end = self.store.now + 10 * 60_000
        try await self.store.update(
            IdentityKey(.address, of: hash), at: Self.home(ofAddress: hash)
        ) { row throws(RouteError) in
            isOurs = row == nil || row?.body == id.bytes
            guard isOurs, row?.expiresAtMilliseconds != 0 else { return nil }
            return .put(body: id.bytes, expiresAtMilliseconds: end)
        }
        return isOurs
    }

    /// - Returns: false: it was held no more.
    private func keep(_ hash: Bytes, for id: AccountID) async throws(RouteError) -> Bool {
        try await self.store.update(
            IdentityKey(.address, of: hash), at: Self.home(ofAddress: hash)
        ) { row throws(RouteError) in
            guard row?.body == id.bytes else { return nil }
            return .put(body: id.bytes, expiresAtMilliseconds: 0)
        }
    }

    /// - Parameter next: the address that the account gets; it is not given up.
    private func giveUp(_ email: String, for next: Bytes, of id: AccountID)
        async throws(RouteError)
    {
        guard let address = EmailAddress(email) else { return }
        let hash = self.store.keys.hash(of: address)
        guard hash != next else { return }
        try await self.store.update(
            IdentityKey(.address, of: hash), at: Self.home(ofAddress: hash)
        ) { row throws(RouteError) in row?.body == id.bytes ? .remove : nil }
    }

    // MARK: Proving one

    /// How long a link is good that proves an address.
    static let proofMilliseconds: Int64 = 86_400_000
    /// How far the clock of the node that made it may be ahead.
    private static let proofSkewMilliseconds: Int64 = 60_000
    private static let circumstances = Bytes("proof of an address".utf8)

    /// A text that is sent to an address: whoever has it reads what comes there. Sealed; nothing of
    /// it is kept.
    ///
    /// | bytes  | content, format 1    |
    /// | ------ | -------------------- |
    /// | 1      | format, 1            |
    /// | text   | address              |
    /// | signed | issued, milliseconds |
    package func proof(of address: EmailAddress) -> String {
        var writer = ByteWriter(reserving: 64)
        writer.write(1 as UInt8)
        writer.write(text: address.text)
        writer.write(signed: self.store.now)
        return Base64URL.encode(
            self.store.keys.cipher.seal(writer.bytes, for: Self.circumstances))
    }

    /// The address that a text proves. Nil: it was not made here, or is too old.
    package func provenAddress(_ proof: String) -> EmailAddress? {
        guard proof.utf8.count <= 1_024, let sealed = Base64URL.decode(proof[...]),
            let content = self.store.keys.cipher.open(sealed, for: Self.circumstances),
            let (text, issued) = Self.readProof(content),
            issued <= self.store.now + Self.proofSkewMilliseconds,
            self.store.now - issued < Self.proofMilliseconds
        else { return nil }
        return EmailAddress(text)
    }

    private static func readProof(_ content: Bytes) -> (String, Int64)? {
        var reader = ByteReader(content)
        do throws(DecodingError) {
            try reader.identityFormat(1)
            let text = try reader.text()
            let issued = try reader.signed()
            try reader.finish()
            return issued >= 0 ? (text, issued) : nil
        } catch { return nil }
    }

    // MARK: Writing to one

    /// E-mails to one address within an hour, whoever asks for them.
    package static let emailCountMax: UInt64 = 5

    /// Counts an e-mail that a stranger asks for, in the same way whether anybody has the address.
    ///
    /// - Returns: how long they have to wait if there were too many.
    package func countEmail(to address: EmailAddress, from place: String)
        async throws(RouteError) -> Int64?
    {
        if let wait = try await self.countTry(of: place) { return wait }
        let hash = self.store.keys.hash(of: address)
        let outcome = try await self.store.submit(
            [
                .init(
                    IdentityKey(.counter, of: hash, Bytes("e-mail".utf8)),
                    .count(limit: Self.emailCountMax, milliseconds: 3_600_000))
            ], to: Self.counterHome(ofAddress: hash))
        if case .limited(let wait) = outcome { return wait }
        return nil
    }
}
