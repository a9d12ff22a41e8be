import StratusCoding
package import StratusModel
import StratusRecords
import StratusSealing

/// The passwords that people make for programs which ask for a name and a password, as clients of
/// WebDAV do. The account's own password is for the sign-in pages alone.
extension Accounts {
    /// The most app passwords of one account.
    package static let appPasswordCountMax = 50

    package struct ListedAppPassword: Sendable, Equatable {
        /// Names it for revoking. Nobody gets in with it.
        package var id: String
        package var container: ContainerReference
        package var madeMilliseconds: Int64
        package var kind: Session.AppPassword
    }

    package enum MadeAppPassword: Sendable, Equatable {
        /// The password: told once, and kept nowhere.
        case made(String, id: String)
        /// No such account, or it is disabled.
        case noAccount
        case tooMany
    }

    /// Makes one. The session and the unchanged account are one command, so a new account password
    /// set meanwhile ends it with the others.
    ///
    /// - Parameter generation: nil if somebody vouches for the person without a password.
    /// - Returns: ``MadeAppPassword/noAccount`` also if the account no longer has this password.
    package func makeAppPassword(
        _ kind: Session.AppPassword, of id: AccountID, provenBy generation: PasswordGeneration?,
        in container: ContainerReference
    ) async throws(RouteError) -> MadeAppPassword {
        let name = self.store.draw(16)
        for _ in 0..<Self.attemptCountMax {
            guard let row = try await self.store.row(Self.key(id), at: id.key) else {
                return .noAccount
            }
            let account = try Self.decode(row)
            guard account.status == .active,
                generation == nil || generation == PasswordGeneration(of: account)
            else { return .noAccount }
            guard try await self.appPasswords(of: id).count < Self.appPasswordCountMax else {
                return .tooMany
            }
            var session = Session(
                container: container,
                openedMilliseconds: max(self.store.now, account.sessionsValidFromMilliseconds),
                stays: false, agent: "")
            session.appPassword = kind
            let outcome = try await self.store.submit(
                [
                    .init(
                        Self.key(id), if: .revision(row.revision),
                        .put(body: row.body, expiresAtMilliseconds: 0)),
                    .init(
                        Self.key(id, session: name), if: .absent,
                        .put(body: session.encoded(), expiresAtMilliseconds: 0)),
                    .init(
                        IdentityKey(.user, of: id.bytes, IdentityKey.home(container)),
                        .put(body: [], expiresAtMilliseconds: 0)),
                ], to: id.key)
            switch outcome {
            case .done:
                return .made(
                    AppPasswordText(account: id, session: name).text(
                        in: container, sealedWith: self.store.keys.cipher),
                    id: Hexadecimal.text(name))
            case .conflict: continue
            case .limited, .refused: throw .refused("a change that is no change")
            }
        }
        throw .notExecuted(retryAfter: .seconds(1))
    }

    /// Of all containers, in the order they were made.
    package func appPasswords(of id: AccountID) async throws(RouteError) -> [ListedAppPassword] {
        var all: [ListedAppPassword] = []
        for (name, session) in try await self.sessionRows(of: id) {
            guard let kind = session.appPassword else { continue }
            all.append(
                ListedAppPassword(
                    id: Hexadecimal.text(name), container: session.container,
                    madeMilliseconds: session.openedMilliseconds, kind: kind))
        }
        all.sort { ($0.madeMilliseconds, $0.id) < ($1.madeMilliseconds, $1.id) }
        return all
    }

    /// False: there is none.
    package func revokeAppPassword(
        _ password: String, of id: AccountID, in container: ContainerReference
    ) async throws(RouteError) -> Bool {
        guard
            try await self.appPasswords(of: id).contains(where: {
                $0.id == password && $0.container == container
            }), let name = Hexadecimal.bytes(password)
        else { return false }
        try await self.closeSession(name, of: id)
        return true
    }
}

/// The text of an app password: `sd1_` and, sealed for one container, account and session.
///
/// | bytes | content, format 1 |
/// | ----- | ----------------- |
/// | 1     | format, 1         |
/// | 16    | account           |
/// | 16    | session           |
struct AppPasswordText: Sendable, Equatable {
    static let prefix = "sd1_"

    var account: AccountID
    var session: Bytes

    init(account: AccountID, session: Bytes) {
        self.account = account
        self.session = session
    }

    func text(in container: ContainerReference, sealedWith cipher: TokenCipher) -> String {
        let content = [1] + self.account.bytes + self.session
        return Self.prefix
            + Base64URL.encode(cipher.seal(content, for: Self.circumstances(container)))
    }

    /// Nil for what was not sealed here for this container.
    init?(text: String, in container: ContainerReference, openedWith cipher: TokenCipher) {
        guard text.hasPrefix(Self.prefix), text.utf8.count <= 256,
            let sealed = Base64URL.decode(text.dropFirst(Self.prefix.count)),
            let content = cipher.open(sealed, for: Self.circumstances(container)),
            content.count == 33, content[0] == 1,
            let account = AccountID(bytes: Bytes(content[1..<17]))
        else { return nil }
        self.init(account: account, session: Bytes(content[17...]))
    }

    private static func circumstances(_ container: ContainerReference) -> Bytes {
        Bytes("app password".utf8) + [0, container.environment.rawValue]
            + Bytes(container.container.utf8)
    }
}
