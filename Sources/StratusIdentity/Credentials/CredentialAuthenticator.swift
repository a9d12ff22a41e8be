package import StratusHTTP
package import StratusModel
import StratusRecords
package import StratusSealing
import Synchronization

/// Judges the credentials that CloudKit's clients send: API token, web-auth token, server-to-server
/// signature.
///
/// - Everything it knows stands in rows at the homes of containers and accounts; see
///   ``CredentialCache`` for how long it believes what it read.
/// - A signature beside a user's token is refused, beside an API token it counts. A credential that
///   stands twice in a query is refused: two readers could take two different ones.
package final class CredentialAuthenticator: Authenticator {
    package let store: IdentityStore
    package let access: ContainerAccess
    package let registry: ContainerRegistry
    package let sealingKeys: SealingKeyRing
    package let accounts: Accounts
    /// If not nil, any well-formed API token is valid in development environments, and web-auth
    /// tokens that were not made here stand for the development users.
    let development: DevelopmentAuthenticator?
    /// The address where people sign in; nil: at the host that the request came to.
    package let signInBase: String?
    private let ownEpoch = CredentialEpoch()
    package var epoch: CredentialEpoch? { self.ownEpoch }
    private let containers: CredentialCache<ContainerReference, Credentials>
    private let sessions: CredentialCache<SessionName, Standing?>
    private let users: CredentialCache<UserName, ContainerUser?>
    /// Whether the accounts of people who share something are active.
    private let owners: CredentialCache<AccountID, Bool>
    private let likelyVariants = Mutex<[String: SignedRequest.Variant]>([:])
    /// Hashes of tokens that containers have, because hashing one costs as much as all other work
    /// on an API token.
    private let tokenHashes = Mutex<[String: Bytes]>([:])
    /// Tokens of open sessions as they were opened: a client sends the same one for five minutes.
    private let opened = Mutex<[OpenedName: WebAuthToken]>([:])

    /// The generation of keys that ``opened`` was filled with.
    private let openedWith = Mutex<UInt64>(0)

    private struct OpenedName: Hashable, Sendable {
        var container: ContainerReference
        var text: String
    }

    /// The credentials that a container accepts.
    private struct Credentials: Sendable {
        /// Deleted: it takes nothing, whatever else is open.
        var isClosed = false
        /// Shut for a while: what is right now is right again then.
        var isResetting = false
        var layout = ContainerLayout()
        var tokens: [Bytes: APIToken] = [:]
        var keys: [String: Key] = [:]

        struct Key: Sendable {
            var publicKey: ServerPublicKey
            var userRecordName: String
        }
    }

    private struct SessionName: Hashable, Sendable {
        var account: AccountID
        var session: Bytes
    }

    private struct UserName: Hashable, Sendable {
        var container: ContainerReference
        var recordName: String
    }

    /// A session that is open: whose it is, and the token that its answers bring.
    private struct Standing: Sendable {
        var userRecordName: String
        var next: WebAuthToken
        var nextText: String
        var appPassword: Session.AppPassword?
    }

    package init(
        accounts: Accounts, development: DevelopmentAuthenticator? = nil, signInBase: String? = nil,
        feeds: TokenCipher? = nil, assets: AssetCiphers? = nil, zoneBuckets: Int = 1
    ) {
        self.accounts = accounts
        self.store = accounts.store
        self.access = ContainerAccess(store: accounts.store)
        self.registry = ContainerRegistry(store: accounts.store, zoneBuckets: zoneBuckets)
        self.sealingKeys = SealingKeyRing(
            store: accounts.store, feeds: feeds, assets: assets)
        self.development = development
        self.signInBase = signInBase
        let (world, epoch) = (accounts.store.world, self.ownEpoch)
        self.containers = CredentialCache(world: world, countMax: 4_096, epoch: epoch)
        self.sessions = CredentialCache(world: world, epoch: epoch)
        self.users = CredentialCache(world: world, epoch: epoch)
        self.owners = CredentialCache(world: world, epoch: epoch)
    }

    /// This node changed something itself.
    package func forget() {
        self.containers.forgetAll()
        self.sessions.forgetAll()
        self.users.forgetAll()
        self.owners.forgetAll()
        self.opened.withLock { $0 = [:] }
    }

    package func needsBody(_ head: RequestHead) -> Bool { SignedRequest.isPresent(in: head) }

    package func authenticate(_ request: PresentedRequest) async throws(AuthenticationRefusal)
        -> Authentication
    {
        guard let credentials = TokenCredentials(unambiguous: request.head.query) else {
            throw .wrong
        }
        return try await self.judging {
            if SignedRequest.isPresent(in: request.head) {
                guard credentials.webAuthToken == nil else { throw AuthenticationRefusal.wrong }
                return try await self.signed(request)
            }
            var proof = CredentialProof()
            var authentication = try await self.tokens(credentials, request, &proof)
            if let keys = self.sealingKeys.goodUntil { proof.end(at: keys) }
            authentication.provedUntil = proof.end
            return authentication
        }
    }

    /// Judges by the keys of now. What cannot be judged is no refusal.
    private func judging(
        _ body: () async throws -> Authentication
    ) async throws(AuthenticationRefusal) -> Authentication {
        do {
            try await self.keepUp()
            return try await body()
        } catch let refusal as AuthenticationRefusal {
            throw refusal
        } catch RouteError.notExecuted(let retryAfter) {
            throw .unavailable(retryAfter: retryAfter)
        } catch {
            throw .unavailable(retryAfter: .seconds(1))
        }
    }

    /// Updates the sealing keys. Results opened with other keys are not remembered.
    package func keepUp() async throws(RouteError) {
        try await self.sealingKeys.keepUp()
        let generation = self.sealingKeys.generation
        let isNew = self.openedWith.withLock { known -> Bool in
            defer { known = generation }
            return known != generation
        }
        if isNew {
            self.opened.withLock { $0 = [:] }
            self.sessions.forgetAll()
        }
    }

    package func refusalWithoutUser(_ request: PresentedRequest) async -> AuthenticationRefusal {
        let token = TokenCredentials(query: request.head.query).apiToken ?? ""
        return self.signInNeeded(
            request, tokenHash: self.store.keys.hash(ofToken: token))
    }

    // MARK: Tokens

    private func tokens(
        _ credentials: TokenCredentials, _ request: PresentedRequest,
        _ proof: inout CredentialProof
    ) async throws -> Authentication {
        guard let text = credentials.apiToken else { throw AuthenticationRefusal.none }
        guard TokenCredentials.isWellFormed(apiToken: text) else {
            throw AuthenticationRefusal.wrong
        }
        let known = try await self.credentials(of: request.container, &proof)
        guard !known.isClosed else { throw AuthenticationRefusal.wrong }
        var authentication = try await self.tokens(text, credentials, request, known, &proof)
        authentication.layout = known.layout
        return authentication
    }

    private func tokens(
        _ text: String, _ credentials: TokenCredentials, _ request: PresentedRequest,
        _ known: Credentials, _ proof: inout CredentialProof
    ) async throws -> Authentication {
        let isOpen = self.isOpen(request.container)
        let hash = self.hash(of: text, among: known, keepsAny: isOpen)
        let token = known.tokens[hash]
        guard token != nil || isOpen else { throw AuthenticationRefusal.wrong }
        if let token, !token.allows(origin: request.head.headers["Origin"]) {
            throw AuthenticationRefusal.denied(reason: "origin not allowed")
        }
        let receivesNames = token?.receivesNames ?? true
        guard let userText = credentials.webAuthToken else {
            if let development, isOpen, development.settings.signsInWithoutUserToken {
                return try await self.developer(development, credentials, request, &proof)
            }
            guard request.scope == .public else {
                throw self.signInNeeded(request, tokenHash: hash)
            }
            return Authentication(
                principal: Principal(kind: .anonymous), receivesNames: receivesNames)
        }
        if let development, isOpen, token == nil, !userText.hasPrefix(WebAuthToken.prefix),
            development.takes(userText)
        {
            var stranger = try await self.developer(
                development, credentials, request, &proof)
            stranger.receivesNames = true
            return stranger
        }
        return try await self.user(
            userText, request, tokenHash: hash, receivesNames: receivesNames, &proof)
    }

    private func user(
        _ text: String, _ request: PresentedRequest, tokenHash: Bytes, receivesNames: Bool,
        _ proof: inout CredentialProof
    ) async throws -> Authentication {
        let began = self.store.world.now
        let now = self.store.now
        guard let token = self.open(text, in: request.container), token.isAlive(at: now),
            let standing = try await self.standing(token, in: request.container, &proof),
            standing.appPassword == nil
        else { throw self.signInNeeded(request, tokenHash: tokenHash) }
        proof.end(at: began + .milliseconds(token.sameMilliseconds(at: now)))
        let name = standing.userRecordName
        let user = try await self.user(name, in: request.container, &proof)
        if user?.isRestricted == true, request.scope != .public,
            !request.head.path.hasSuffix("/users/unrestrict")
        {
            throw AuthenticationRefusal.denied(
                reason: "private db access disabled for this account")
        }
        return Authentication(
            principal: Principal(
                kind: .user, userRecordName: name, roles: user?.roles ?? []),
            account: token.account,
            webAuthToken: self.text(
                of: token.renewed(at: now), standing, in: request.container),
            receivesNames: receivesNames)
    }

    /// Signs in one of the development users. The container knows it like any other user, so its
    /// data is found when it is deleted.
    private func developer(
        _ development: DevelopmentAuthenticator, _ credentials: TokenCredentials,
        _ request: PresentedRequest, _ proof: inout CredentialProof
    ) async throws -> Authentication {
        var authentication = try await development.authenticate(request, credentials)
        try await self.admit(&authentication, in: request.container, &proof)
        return authentication
    }

    private func admit(
        _ authentication: inout Authentication, in container: ContainerReference,
        _ proof: inout CredentialProof
    ) async throws {
        let name = authentication.principal.userRecordName
        guard !name.isEmpty else { return }
        if let user = try await self.user(name, in: container, &proof) {
            authentication.principal.roles = user.roles
        } else {
            // The record comes first: who is known has one.
            try await UserRecords(store: self.store, registry: self.registry).make(
                name, in: container)
            try await self.access.changeUser(name, account: nil, in: container) { _ in }
            self.users.forget(UserName(container: container, recordName: name))
        }
    }

    // MARK: App passwords

    package func authenticate(
        _ request: PresentedRequest, password: String, from place: String
    ) async throws(AuthenticationRefusal) -> Authentication {
        try await self.judging {
            if let found = try await self.appPassword(password, request) { return found }
            if let wait = try await self.accounts.countTry(of: place) {
                throw AuthenticationRefusal.limited(retryAfter: .milliseconds(wait))
            }
            throw AuthenticationRefusal.wrong
        }
    }

    /// Nil: it is not good.
    private func appPassword(
        _ password: String, _ request: PresentedRequest
    ) async throws -> Authentication? {
        let container = request.container
        let known = try await self.credentials(of: container)
        guard !known.isClosed else { return nil }
        if let development, self.isOpen(container), !password.hasPrefix(AppPasswordText.prefix),
            development.takes(password)
        {
            var authentication = try await development.authenticate(
                request, password: password, from: "")
            var proof = CredentialProof()
            try await self.admit(&authentication, in: container, &proof)
            authentication.layout = known.layout
            return authentication
        }
        guard
            let text = AppPasswordText(
                text: password, in: container, openedWith: self.store.keys.cipher)
        else { return nil }
        let token = WebAuthToken(
            account: text.account, session: text.session, stays: false,
            issuedAtMilliseconds: self.store.now)
        guard let standing = try await self.standing(token, in: container),
            let kind = standing.appPassword
        else { return nil }
        let user = try await self.user(standing.userRecordName, in: container)
        if user?.isRestricted == true {
            throw AuthenticationRefusal.denied(
                reason: "private db access disabled for this account")
        }
        var authentication = Authentication(
            principal: Principal(
                kind: .user, userRecordName: standing.userRecordName, roles: user?.roles ?? []),
            account: text.account)
        authentication.appPassword = kind
        authentication.layout = known.layout
        return authentication
    }

    private func open(_ text: String, in container: ContainerReference) -> WebAuthToken? {
        let name = OpenedName(container: container, text: text)
        if let token = self.opened.withLock({ $0[name] }) { return token }
        guard let token = self.session(text, in: container) else { return nil }
        self.opened.withLock { opened in
            if opened.count >= 16_384 { opened = [:] }
            opened[name] = token
        }
        return token
    }

    /// The standing was read less than a second ago, so its token is nearly always the one wanted.
    private func text(
        of token: WebAuthToken, _ standing: Standing, in container: ContainerReference
    ) -> String {
        token == standing.next
            ? standing.nextText : token.text(in: container, sealedWith: self.store.keys.cipher)
    }

    /// - Parameter keepsAny: a token that the container does not have may be sent again too.
    private func hash(of token: String, among known: Credentials, keepsAny: Bool) -> Bytes {
        if let hash = self.tokenHashes.withLock({ $0[token] }) { return hash }
        let hash = self.store.keys.hash(ofToken: token)
        guard keepsAny || known.tokens[hash] != nil else { return hash }
        self.tokenHashes.withLock { hashes in
            if hashes.count >= 4_096 { hashes = [:] }
            hashes[token] = hash
        }
        return hash
    }

    /// The session a token stands for, if it is open.
    package func session(_ text: String, in container: ContainerReference) -> WebAuthToken? {
        WebAuthToken(text: text, in: container, openedWith: self.store.keys.cipher)
    }

    /// 421 with a page to sign in at: one of its own for every answer, harmless to ask for again.
    private func signInNeeded(_ request: PresentedRequest, tokenHash: Bytes)
        -> AuthenticationRefusal
    {
        let link = SignInLink(
            container: request.container, tokenHash: tokenHash,
            origin: request.head.headers["Origin"].flatMap { WebOrigin($0)?.text },
            nonce: self.store.draw(16),
            issuedMilliseconds: self.store.now)
        let base =
            self.signInBase
            ?? (request.isSecure ? "https://" : "http://")
            + (request.head.headers["Host"] ?? "127.0.0.1:8080")
        return .required(
            redirectURL: "\(base)/signin?t=\(link.text(sealedWith: self.store.keys.cipher))")
    }

    // MARK: Signatures

    private func signed(_ request: PresentedRequest) async throws -> Authentication {
        // One answer for every error (the reference, §3.5), except for a date in another form: that
        // reveals nothing about keys, and clients could not find the cause otherwise.
        guard let signed = SignedRequest(request.head) else { throw AuthenticationRefusal.wrong }
        guard let date = signed.milliseconds else { throw AuthenticationRefusal.wrongDate }
        guard signed.keyID.utf8.count == 64,
            let signature = ServerSignature.base64(Bytes(signed.signature.utf8)),
            let identity = ServerSignature.identity(of: signature)
        else { throw AuthenticationRefusal.wrong }
        let now = self.store.now
        guard abs(now - date) <= SignedRequest.windowMilliseconds else {
            throw AuthenticationRefusal.wrong
        }
        let id = signed.keyID.lowercased()
        let known = try await self.credentials(of: request.container)
        guard let key = known.keys[id] else { throw AuthenticationRefusal.wrong }
        guard self.verifies(signed, signature, by: key.publicKey, id: id, request) else {
            throw AuthenticationRefusal.wrong
        }
        guard request.scope == .public else { throw AuthenticationRefusal.wrong }
        let user = try await self.user(key.userRecordName, in: request.container)
        var authentication = Authentication(
            principal: Principal(
                kind: .serverKey, userRecordName: key.userRecordName, roles: user?.roles ?? []),
            signed: Authentication.Signed(
                identity: SHA256.hash(Bytes(id.utf8) + identity),
                deadlineMilliseconds: date + SignedRequest.windowMilliseconds))
        authentication.layout = known.layout
        return authentication
    }

    private func verifies(
        _ signed: SignedRequest, _ signature: Bytes, by key: ServerPublicKey, id: String,
        _ request: PresentedRequest
    ) -> Bool {
        let bodyHash = SHA256.hash(request.body)
        let likely = self.likelyVariants.withLock { $0[id] }
        for variant in SignedRequest.variants(
            of: request.head, bodyIsEmpty: request.body.isEmpty, likely: likely)
        {
            let digest = signed.digest(variant, head: request.head, bodyHash: bodyHash)
            guard key.verifies(signature, digest: digest) else { continue }
            if variant != likely {
                self.likelyVariants.withLock { variants in
                    if variants.count >= 10_000 { variants = [:] }
                    variants[id] = variant
                }
            }
            return true
        }
        return false
    }

    // MARK: Looking up

    /// When to ask a container again that is being reset.
    private static let resetPatience = Duration.seconds(5)

    private func credentials(of container: ContainerReference) async throws(RouteError)
        -> Credentials
    {
        var proof = CredentialProof()
        return try await self.credentials(of: container, &proof)
    }

    private func credentials(
        of container: ContainerReference, _ proof: inout CredentialProof
    ) async throws(RouteError) -> Credentials {
        let found = try await self.containers.dated(container) { () async throws(RouteError) in
            var credentials = Credentials()
            let descriptor = try await self.registry.descriptor(of: container)
            credentials.isResetting = descriptor?.state == .resetting
            credentials.layout = descriptor?.layout ?? ContainerLayout()
            if let descriptor, descriptor.state != .active {
                credentials.isClosed = true
                return credentials
            }
            // Developers need not create the containers they use.
            if descriptor == nil, self.isOpen(container) {
                credentials.isClosed = try await !self.registry.admit(container)
            }
            for listed in try await self.access.tokens(in: container) {
                credentials.tokens[listed.hash] = listed.token
            }
            for listed in try await self.access.keys(in: container) {
                guard let publicKey = ServerPublicKey(der: listed.key.publicKey),
                    let bytes = Hexadecimal.bytes(listed.id)
                else { throw .unreadableRow }
                credentials.keys[listed.id] = Credentials.Key(
                    publicKey: publicKey,
                    userRecordName: self.store.keys.userRecordName(
                        ofServerKey: bytes, in: container))
            }
            // The container was created during this read, or just now. A caller with a token of it
            // must learn where its records are.
            if descriptor == nil {
                credentials.layout = try await self.registry.layout(of: container)
            }
            return credentials
        }
        proof.note(found.readAt, for: self.containers.lifetime)
        let known = found.value
        if known.isResetting { throw .notExecuted(retryAfter: Self.resetPatience) }
        return known
    }

    package func layout(of container: ContainerReference) async throws -> ContainerLayout {
        try await self.credentials(of: container).layout
    }

    /// The container's API token with this hash; nil if it has none.
    package func apiToken(_ hash: Bytes, in container: ContainerReference) async throws(RouteError)
        -> APIToken?
    {
        try await self.credentials(of: container).tokens[hash]
    }

    /// Whether sign-in pages may answer for tokens that are not stored.
    package func takesAnyToken(in container: ContainerReference) async throws(RouteError) -> Bool {
        guard self.isOpen(container) else { return false }
        return try await !self.credentials(of: container).isClosed
    }

    private func isOpen(_ container: ContainerReference) -> Bool {
        self.development != nil && container.environment == .development
    }

    private func standing(_ token: WebAuthToken, in container: ContainerReference)
        async throws(RouteError) -> Standing?
    {
        var proof = CredentialProof()
        return try await self.standing(token, in: container, &proof)
    }

    private func standing(
        _ token: WebAuthToken, in container: ContainerReference, _ proof: inout CredentialProof
    ) async throws(RouteError) -> Standing? {
        let found = try await self.sessions.dated(
            SessionName(account: token.account, session: token.session)
        ) { () async throws(RouteError) in
            let rows = try await self.store.rows(
                [
                    Accounts.key(token.account),
                    Accounts.key(token.account, session: token.session),
                ], at: token.account.key)
            guard let accountRow = rows[0], let sessionRow = rows[1] else { return nil }
            let account = try Accounts.decode(accountRow)
            guard let session = try? Session(decoding: sessionRow.body) else {
                throw .unreadableRow
            }
            guard account.status == .active, session.container == container,
                session.openedMilliseconds >= account.sessionsValidFromMilliseconds
            else { return nil }
            let next = token.renewed(at: self.store.now)
            return Standing(
                userRecordName: self.store.keys.userRecordName(
                    of: token.account, epoch: account.epoch, in: container),
                next: next,
                nextText: next.text(in: container, sealedWith: self.store.keys.cipher),
                appPassword: session.appPassword)
        }
        proof.note(found.readAt, for: self.sessions.lifetime)
        return found.value
    }

    /// Who may be told of changes under a registration of a poll token, as credentials stand now.
    /// Nil: nobody, because the container is closed, the session has ended, the account is not
    /// active, or the key was revoked.
    package func listener(_ registration: Device.Registration) async throws(RouteError)
        -> (principal: Principal, isRestricted: Bool)?
    {
        let container = registration.container
        let name = registration.userRecordName
        let known = try await self.credentials(of: container)
        guard !known.isClosed else { return nil }
        if registration.isServerKey {
            guard known.keys.values.contains(where: { $0.userRecordName == name }) else {
                return nil
            }
        } else if let session = registration.session {
            let token = WebAuthToken(
                account: session.account, session: session.session, stays: false,
                issuedAtMilliseconds: self.store.now)
            guard let standing = try await self.standing(token, in: container),
                standing.userRecordName == name, standing.appPassword == nil
            else { return nil }
        } else {
            // A development user.
            guard self.development != nil, self.isOpen(container) else { return nil }
        }
        let user = try await self.user(name, in: container)
        return (
            Principal(
                kind: registration.isServerKey ? .serverKey : .user, userRecordName: name,
                roles: user?.roles ?? []), user?.isRestricted ?? false
        )
    }

    package func maySharesBeUsed(
        of owner: String, in container: ContainerReference
    ) async throws(RouteError) -> Bool {
        guard let user = try await self.user(owner, in: container) else { return true }
        if user.isRestricted { return false }
        guard let account = user.account else { return true }
        return try await self.owners.value(account) { () async throws(RouteError) in
            try await self.accounts.account(account)?.status == .active
        }
    }

    private func user(_ recordName: String, in container: ContainerReference)
        async throws(RouteError) -> ContainerUser?
    {
        var proof = CredentialProof()
        return try await self.user(recordName, in: container, &proof)
    }

    private func user(
        _ recordName: String, in container: ContainerReference, _ proof: inout CredentialProof
    ) async throws(RouteError) -> ContainerUser? {
        let found = try await self.users.dated(
            UserName(container: container, recordName: recordName)
        ) { () async throws(RouteError) in
            try await self.access.user(recordName, in: container)
        }
        proof.note(found.readAt, for: self.users.lifetime)
        return found.value
    }
}
