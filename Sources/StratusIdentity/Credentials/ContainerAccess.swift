import StratusCoding
package import StratusModel
import StratusRecords
import StratusSealing

/// A container's API tokens, server-to-server keys and users: rows at its home.
package struct ContainerAccess: Sendable {
    package let store: IdentityStore
    /// Live server-to-server keys that may share a name: the old and the new one of a rotation.
    package static let keysOfOneNameMax = 2
    static let credentialCountMax = 1_000

    package init(store: IdentityStore) { self.store = store }

    // MARK: API tokens

    package struct ListedToken: Sendable, Equatable {
        /// The stored hash: names the token without being it.
        package var hash: Bytes
        package var token: APIToken
        package var id: String { Hexadecimal.text(self.hash.prefix(8)) }
    }

    /// Draws a token. Its text is known to the caller alone: only its hash is kept.
    package func createToken(_ token: APIToken, in container: ContainerReference)
        async throws(RouteError) -> String
    {
        let text = Hexadecimal.text(self.store.draw(32))
        let key = IdentityKey(
            .apiToken, of: IdentityKey.home(container), self.store.keys.hash(ofToken: text))
        _ = try await self.store.submit(
            [.init(key, if: .absent, .put(body: token.encoded(), expiresAtMilliseconds: 0))],
            to: .container(container))
        return text
    }

    package func tokens(in container: ContainerReference) async throws(RouteError) -> [ListedToken]
    {
        var tokens: [ListedToken] = []
        for entry in try await self.store.list(
            .apiToken, of: IdentityKey.home(container), at: .container(container),
            countMax: Self.credentialCountMax)
        {
            guard let token = try? APIToken(decoding: entry.row.body) else { throw .unreadableRow }
            tokens.append(ListedToken(hash: entry.name, token: token))
        }
        return tokens
    }

    /// False: no such token.
    package func revokeToken(id: String, in container: ContainerReference) async throws(RouteError)
        -> Bool
    {
        guard let found = try await self.tokens(in: container).first(where: { $0.id == id }) else {
            return false
        }
        let key = IdentityKey(.apiToken, of: IdentityKey.home(container), found.hash)
        let outcome = try await self.store.submit(
            [.init(key, if: .present, .remove)], to: .container(container))
        if case .done = outcome { return true }
        return false
    }

    // MARK: Server-to-server keys

    package struct ListedKey: Sendable, Equatable {
        /// 64 hexadecimal digits: what requests name it by.
        package var id: String
        package var key: ServerKey
    }

    package enum AddedKey: Sendable, Equatable {
        case added(id: String)
        case noKey
        case nameIsFull
        case known(id: String)
    }

    package func addKey(name: String, pem: Bytes, in container: ContainerReference)
        async throws(RouteError) -> AddedKey
    {
        guard let key = ServerPublicKey(pem: pem) else { return .noKey }
        let der = key.der
        let home = IdentityKey.home(container)
        let id = SHA256.hash(
            Bytes("stratus server key".utf8) + [UInt8(home.count & 0xFF)] + home + der)
        let named = try await self.keys(in: container).filter { $0.key.name == name }
        if named.count >= Self.keysOfOneNameMax { return .nameIsFull }
        let row = ServerKey(name: name, publicKey: der, createdMilliseconds: self.store.now)
        let outcome = try await self.store.submit(
            [
                .init(
                    IdentityKey(.serverKey, of: home, id), if: .absent,
                    .put(body: row.encoded(), expiresAtMilliseconds: 0))
            ], to: .container(container))
        let text = Hexadecimal.text(id)
        if case .done = outcome { return .added(id: text) }
        return .known(id: text)
    }

    package func keys(in container: ContainerReference) async throws(RouteError) -> [ListedKey] {
        var keys: [ListedKey] = []
        for entry in try await self.store.list(
            .serverKey, of: IdentityKey.home(container), at: .container(container),
            countMax: Self.credentialCountMax)
        {
            guard let key = try? ServerKey(decoding: entry.row.body) else { throw .unreadableRow }
            keys.append(ListedKey(id: Hexadecimal.text(entry.name), key: key))
        }
        return keys
    }

    package func revokeKey(id: String, in container: ContainerReference) async throws(RouteError)
        -> Bool
    {
        guard let name = Hexadecimal.bytes(id), name.count == 32 else { return false }
        let key = IdentityKey(.serverKey, of: IdentityKey.home(container), name)
        let outcome = try await self.store.submit(
            [.init(key, if: .present, .remove)], to: .container(container))
        if case .done = outcome { return true }
        return false
    }

    // MARK: Users

    static func key(_ user: String, in container: ContainerReference) -> IdentityKey {
        IdentityKey(.user, of: IdentityKey.home(container), Bytes(user.utf8))
    }

    package func user(_ recordName: String, in container: ContainerReference)
        async throws(RouteError) -> ContainerUser?
    {
        guard let row = try await self.row(of: recordName, in: container) else { return nil }
        do { return try ContainerUser(decoding: row.body) } catch { throw .unreadableRow }
    }

    func row(of recordName: String, in container: ContainerReference) async throws(RouteError)
        -> IdentityRow?
    {
        try await self.store.row(Self.key(recordName, in: container), at: .container(container))
    }

    package func users(in container: ContainerReference) async throws(RouteError) -> [(
        recordName: String, user: ContainerUser
    )] {
        var users: [(recordName: String, user: ContainerUser)] = []
        for entry in try await self.store.list(
            .user, of: IdentityKey.home(container), at: .container(container))
        {
            guard let user = try? ContainerUser(decoding: entry.row.body) else {
                throw .unreadableRow
            }
            users.append((String(decoding: entry.name, as: UTF8.self), user))
        }
        return users
    }

    /// Changes what the container knows of a user, making the row where there is none.
    package func changeUser(
        _ recordName: String, account: AccountID?, in container: ContainerReference,
        _ change: (inout ContainerUser) -> Void
    ) async throws(RouteError) {
        let now = self.store.now
        try await self.store.update(
            Self.key(recordName, in: container), at: .container(container)
        ) { row throws(RouteError) in
            var user = ContainerUser(account: account, firstSeenMilliseconds: now)
            if let row {
                do { user = try ContainerUser(decoding: row.body) } catch { throw .unreadableRow }
            }
            let before = user
            change(&user)
            if row != nil, user == before { return nil }
            return .put(body: user.encoded(), expiresAtMilliseconds: 0)
        }
    }

    package func removeUser(_ recordName: String, in container: ContainerReference)
        async throws(RouteError)
    {
        _ = try await self.store.submit(
            [.init(Self.key(recordName, in: container), .remove)], to: .container(container))
    }

    // MARK: Sign-in pages

    /// Whether nobody has used this link before; it is used from now on.
    package func use(_ link: SignInLink) async throws(RouteError) -> Bool {
        let outcome = try await self.store.submit(
            [
                .init(
                    IdentityKey(
                        .usedLink, of: IdentityKey.home(link.container), link.nonce), if: .absent,
                    .put(body: [], expiresAtMilliseconds: link.expiresAtMilliseconds + 3_600_000))
            ], to: .container(link.container))
        if case .done = outcome { return true }
        return false
    }
}
