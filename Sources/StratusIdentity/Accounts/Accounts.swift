import StratusCluster
import StratusCoding
package import StratusModel
package import StratusRecords
package import StratusRuntime
import StratusSealing

/// People: who they are, how they prove it, and where they are signed in.
///
/// An account's rows live at the home of its identifier. The home of an address' hash holds the
/// account that the address belongs to, and the count of tries beside it. So known and unknown
/// addresses cost the same.
package struct Accounts: Sendable {
    package let store: IdentityStore
    package let hasher: PasswordHasher
    package let limits: Limits

    /// How often a password may be tried.
    package struct Limits: Sendable, Equatable {
        package var spanMilliseconds: Int64 = 15 * 60_000
        /// For one address of e-mail from one place: guessing there shuts nobody else out.
        package var triesFromOnePlace: UInt64 = 10
        /// For one address of e-mail from everywhere.
        package var triesFromEverywhere: UInt64 = 200
        /// From one place for all addresses of e-mail.
        package var triesOfOnePlace: UInt64 = 300

        package init() {}
    }

    package init(store: IdentityStore, hasher: PasswordHasher, limits: Limits = Limits()) {
        self.store = store
        self.hasher = hasher
        self.limits = limits
    }

    // MARK: Where rows are

    package static func key(_ account: AccountID) -> IdentityKey {
        IdentityKey(.account, of: account.bytes)
    }

    static func key(_ account: AccountID, session: Bytes) -> IdentityKey {
        IdentityKey(.session, of: account.bytes, session)
    }

    static func home(ofAddress hash: Bytes) -> ShardKey {
        .account("mail:" + Hexadecimal.text(hash))
    }

    /// Where what strangers do with an address is counted. It is not where its account would be: the
    /// first command to a partition makes it, which takes longer than a command to one that an
    /// account has made already.
    static func counterHome(ofAddress hash: Bytes) -> ShardKey {
        .account("tries:" + Hexadecimal.text(hash))
    }

    static let listingHome = ShardKey.account("accounts")

    // MARK: One account

    package func account(_ id: AccountID) async throws(RouteError) -> Account? {
        guard let row = try await self.store.row(Self.key(id), at: id.key) else { return nil }
        return try Self.decode(row)
    }

    /// Questions that a page of accounts has under way at a time.
    static let questionCountMax = 16

    /// Accounts in the order of their identifiers; nil for one that is no more.
    ///
    /// Each account has a home of its own, so there is no one question for a page: several are asked
    /// side by side.
    package func accounts(_ ids: [AccountID]) async throws -> [Account?] {
        var found = [Account?](repeating: nil, count: ids.count)
        try await withThrowingTaskGroup(of: (Int, Account?).self) { tasks in
            for position in ids.indices {
                if position >= Self.questionCountMax, let next = try await tasks.next() {
                    found[next.0] = next.1
                }
                tasks.addTask { (position, try await self.account(ids[position])) }
            }
            for try await (position, account) in tasks { found[position] = account }
        }
        return found
    }

    package func account(of email: EmailAddress) async throws(RouteError) -> AccountID? {
        let hash = self.store.keys.hash(of: email)
        let row = try await self.store.row(
            IdentityKey(.address, of: hash), at: Self.home(ofAddress: hash))
        return row.flatMap { AccountID(bytes: $0.body) }
    }

    static func decode(_ row: IdentityRow) throws(RouteError) -> Account {
        do { return try Account(decoding: row.body) } catch { throw .unreadableRow }
    }

    /// Changes an account; false where there is none.
    package func change(
        _ id: AccountID, _ change: (inout Account) -> Void
    ) async throws(RouteError) -> Bool {
        try await self.store.update(Self.key(id), at: id.key) { row throws(RouteError) in
            guard let row else { return nil }
            var account = try Self.decode(row)
            change(&account)
            return .put(body: account.encoded(), expiresAtMilliseconds: 0)
        }
    }

    // MARK: Signing up

    package struct Registration: Sendable {
        package var email: EmailAddress
        package var password: Secret<String>?
        package var givenName = ""
        package var familyName = ""
        package var isDiscoverable = false
        package var verification = Account.Verification.unproven

        package init(email: EmailAddress, password: Secret<String>?) {
            self.email = email
            self.password = password
        }
    }

    package enum Registered: Sendable, Equatable {
        case made(AccountID)
        case taken
        case busy
    }

    /// Registers a person: reserves the address, makes the account, then assigns the address to it.
    /// If this stops in between, the address is free again after ten minutes.
    ///
    /// - Parameter room: for the password's hash, where it was reserved before.
    package func register(
        _ registration: Registration, in room: PasswordHasher.Room? = nil
    ) async throws(RouteError) -> Registered {
        var account = Account(
            email: registration.email.text, givenName: registration.givenName,
            familyName: registration.familyName, createdMilliseconds: self.store.now)
        account.isDiscoverable = registration.isDiscoverable
        account.verification = registration.verification
        if let password = registration.password {
            guard let room = room ?? self.hasher.reserve() else { return .busy }
            account.password = await self.hasher.hash(
                password, salt: self.store.draw(16), in: room)
        }
        let id = AccountID(self.store.world.drawIdentity())
        let hash = self.store.keys.hash(of: registration.email)
        let home = Self.home(ofAddress: hash)
        let address = IdentityKey(.address, of: hash)
        let reserved = try await self.store.submit(
            [
                .init(
                    address, if: .absent,
                    .put(body: id.bytes, expiresAtMilliseconds: self.store.now + 10 * 60_000))
            ], to: home)
        guard case .done(let revisions) = reserved, let revision = revisions.first else {
            return .taken
        }
        _ = try await self.store.submit(
            [
                .init(
                    Self.key(id), if: .absent,
                    .put(body: account.encoded(), expiresAtMilliseconds: 0))
            ], to: id.key)
        let confirmed = try await self.store.submit(
            [
                .init(
                    address, if: .revision(revision),
                    .put(body: id.bytes, expiresAtMilliseconds: 0))
            ], to: home)
        guard case .done = confirmed else { return .taken }
        _ = try await self.store.submit(
            [
                .init(
                    IdentityKey(.listing, of: [], id.bytes),
                    .put(body: Bytes(account.email.utf8), expiresAtMilliseconds: 0))
            ], to: Self.listingHome)
        return .made(id)
    }

    // MARK: Proving it

    package enum Proof: Sendable, Equatable {
        /// The password was this one: ``openSession`` wants it to be the same still.
        case proven(AccountID, PasswordGeneration)
        /// Wrong address, wrong password, disabled: nobody is told which.
        case failed
        case limited(retryAfterMilliseconds: Int64)
        case busy
    }

    /// Which of its passwords an account has: a password that is set again is another generation.
    package struct PasswordGeneration: Sendable, Equatable {
        /// Its salt is drawn for each password.
        private let hash: PasswordHash?

        init(of account: Account) { self.hash = account.password }
    }

    /// Checks whether the password belongs to the address. Every outcome but ``Proof/busy`` costs
    /// the same work, and counts as a try.
    ///
    /// - Parameter place: where the request came from, without its port.
    package func prove(
        _ email: EmailAddress, _ password: Secret<String>, from place: String
    ) async throws(RouteError) -> Proof {
        let hash = self.store.keys.hash(of: email)
        let counters = Self.counterHome(ofAddress: hash)
        let fromHere = IdentityKey(.counter, of: hash, Bytes(place.utf8.prefix(64)))
        let span = self.limits.spanMilliseconds
        guard let room = self.hasher.reserve() else { return .busy }
        if let wait = try await self.countTry(of: place) {
            return .limited(retryAfterMilliseconds: wait)
        }
        let counted = try await self.store.submit(
            [
                .init(fromHere, .count(limit: self.limits.triesFromOnePlace, milliseconds: span)),
                .init(
                    IdentityKey(.counter, of: hash),
                    .count(limit: self.limits.triesFromEverywhere, milliseconds: span)),
            ], to: counters)
        if case .limited(let wait) = counted { return .limited(retryAfterMilliseconds: wait) }

        let known = try await self.account(of: email)
        // Where nobody has the address, somebody who does not exist is looked up.
        let id = known ?? PeopleFinder.standIn(for: hash)
        let account = try await self.account(id)
        let matches = await self.hasher.verify(password, against: account?.password, in: room)
        guard matches, known != nil, let account, account.status == .active else { return .failed }
        _ = try await self.store.submit([.init(fromHere, .remove)], to: counters)
        return .proven(id, PasswordGeneration(of: account))
    }

    /// Counts one try of a place; how long it has to wait if it had too many.
    package func countTry(of place: String) async throws(RouteError) -> Int64? {
        let name = Bytes(place.utf8.prefix(64))
        let outcome = try await self.store.submit(
            [
                .init(
                    IdentityKey(.counter, of: name),
                    .count(
                        limit: self.limits.triesOfOnePlace,
                        milliseconds: self.limits.spanMilliseconds))
            ], to: .account("place:" + place))
        if case .limited(let wait) = outcome { return wait }
        return nil
    }

    // MARK: Passwords

    /// Sets a password and ends every session. False: busy, or no such account.
    package func setPassword(_ password: Secret<String>, of id: AccountID)
        async throws(RouteError) -> Bool
    {
        guard let hash = await self.hasher.hash(password, salt: self.store.draw(16)) else {
            return false
        }
        return try await self.changeEndingSessions(id) { account in
            account.password = hash
            account.reset = nil
            return true
        }
    }

    /// A secret that sets a new password once, within a day. Nil: no such account.
    ///
    /// - Parameter address: where the secret goes, and nowhere else; nil: to whoever asks for it.
    ///   If the account has another address by now, nothing is made.
    package func makeReset(of id: AccountID, mailedTo address: EmailAddress? = nil)
        async throws(RouteError) -> String?
    {
        let secret = Base64URL.encode(id.bytes + self.store.draw(32))
        let reset = Account.Reset(
            hash: self.store.keys.hash(ofToken: secret),
            expiresAtMilliseconds: self.store.now + 86_400_000, isMailed: address != nil)
        var isMade = false
        _ = try await self.change(id) { account in
            isMade =
                address == nil
                || EmailAddress(account.email)?.normalised == address?.normalised
            if isMade { account.reset = reset }
        }
        return isMade ? secret : nil
    }

    /// Whether a link still sets a password. Nothing is used up.
    package func isGood(reset secret: String) async throws(RouteError) -> Bool {
        guard let id = Self.account(ofReset: secret), let reset = try await self.account(id)?.reset
        else { return false }
        return reset.hash == self.store.keys.hash(ofToken: secret)
            && self.store.now < reset.expiresAtMilliseconds
    }

    private static func account(ofReset secret: String) -> AccountID? {
        guard let bytes = Base64URL.decode(secret[...]), bytes.count == 48 else { return nil }
        return AccountID(bytes: Bytes(bytes[..<16]))
    }

    package enum Redeemed: Sendable, Equatable {
        case done
        /// The secret was used, is too old, or is none.
        case refused
        case busy
    }

    /// Sets the password of the person the secret was made for, and ends every session.
    ///
    /// - Parameter room: for the password's hash, where it was reserved before.
    package func redeem(
        reset secret: String, password: Secret<String>, in room: PasswordHasher.Room? = nil
    ) async throws(RouteError) -> Redeemed {
        guard let id = Self.account(ofReset: secret) else { return .refused }
        guard let room = room ?? self.hasher.reserve() else { return .busy }
        let hash = await self.hasher.hash(password, salt: self.store.draw(16), in: room)
        let proof = self.store.keys.hash(ofToken: secret)
        let now = self.store.now
        let isDone = try await self.changeEndingSessions(id) { account in
            // Hashes with a secret key: comparing them tells nobody anything.
            guard let reset = account.reset, reset.hash == proof,
                now < reset.expiresAtMilliseconds
            else { return false }
            account.reset = nil
            account.password = hash
            if reset.isMailed { account.verification = .proof }
            return true
        }
        return isDone ? .done : .refused
    }

    // MARK: Sessions

    /// The longest a session lives, however much it is used.
    static let sessionLifeMilliseconds: Int64 = 180 * 86_400_000
    /// The most sessions of one account. A further sign-in ends the oldest one.
    package static let sessionCountMax = 100

    /// Opens a session, if the account is active and its password is still the one that was proven.
    ///
    /// The session and the unchanged account row are one command, conditional on the row's
    /// revision. If the password changes or the account is disabled meanwhile, that either refuses
    /// the session or ends it with the others. No clock takes part.
    ///
    /// - Parameter generation: nil if somebody vouches for the person without a password.
    /// - Returns: nil if the account no longer exists, or no longer has this password.
    package func openSession(
        of id: AccountID, provenBy generation: PasswordGeneration?,
        in container: ContainerReference, stays: Bool, agent: String
    ) async throws(RouteError) -> WebAuthToken? {
        let session = self.store.draw(16)
        let now = self.store.now
        for _ in 0..<Self.attemptCountMax {
            guard let row = try await self.store.row(Self.key(id), at: id.key) else { return nil }
            var account = try Self.decode(row)
            guard account.status == .active,
                generation == nil || generation == PasswordGeneration(of: account)
            else { return nil }
            let oldest = try await self.sessions(of: id)
                .sorted { $0.session.openedMilliseconds < $1.session.openedMilliseconds }
                .dropLast(Self.sessionCountMax - 1).prefix(100)
            // All sessions of an account are ended by a time: one opened before it is void.
            let opened = Session(
                container: container,
                openedMilliseconds: max(now, account.sessionsValidFromMilliseconds), stays: stays,
                agent: String(decoding: agent.utf8.prefix(120), as: UTF8.self))
            account.lastSignInMilliseconds = now
            let outcome = try await self.store.submit(
                [
                    .init(
                        Self.key(id), if: .revision(row.revision),
                        .put(body: account.encoded(), expiresAtMilliseconds: 0)),
                    .init(
                        Self.key(id, session: session), if: .absent,
                        .put(
                            body: opened.encoded(),
                            expiresAtMilliseconds: now + Self.sessionLifeMilliseconds)),
                    // Where this person has data: what an export or an erasure must visit.
                    .init(
                        IdentityKey(.user, of: id.bytes, IdentityKey.home(container)),
                        .put(body: [], expiresAtMilliseconds: 0)),
                ] + oldest.map { .init(Self.key(id, session: $0.name), .remove) }, to: id.key)
            switch outcome {
            case .done:
                return WebAuthToken(
                    account: id, session: session, stays: stays, issuedAtMilliseconds: now)
            case .conflict: continue
            case .limited, .refused: throw .refused("a change that is no change")
            }
        }
        throw .notExecuted(retryAfter: .seconds(1))
    }

    /// How often a change that others overtake is tried.
    static let attemptCountMax = 32

    package func closeSession(_ session: Bytes, of id: AccountID) async throws(RouteError) {
        _ = try await self.store.submit(
            [.init(Self.key(id, session: session), .remove)], to: id.key)
    }

    /// Ends every session. False: no such account.
    package func closeAllSessions(of id: AccountID) async throws(RouteError) -> Bool {
        try await self.changeEndingSessions(id) { _ in true }
    }

    /// Disables an account and ends every session of it: after being enabled, the person signs in
    /// again. False: no such account.
    package func disable(_ id: AccountID) async throws(RouteError) -> Bool {
        try await self.changeEndingSessions(id) {
            $0.status = .disabled
            return true
        }
    }

    /// Changes an account and removes all of its sessions in one command.
    ///
    /// - Parameter change: false leaves everything as it is.
    /// - Returns: whether it was changed.
    private func changeEndingSessions(
        _ id: AccountID, _ change: (inout Account) -> Bool
    ) async throws(RouteError) -> Bool {
        for _ in 0..<Self.attemptCountMax {
            guard let row = try await self.store.row(Self.key(id), at: id.key) else { return false }
            var account = try Self.decode(row)
            guard change(&account) else { return false }
            let names = try await self.sessionRows(of: id).map(\.name)
            var edits = names.map { IdentityCommand.Edit(Self.key(id, session: $0), .remove) }
            while edits.count >= IdentityCommand.editCountMax {
                let some = Array(edits.suffix(IdentityCommand.editCountMax))
                edits.removeLast(some.count)
                _ = try await self.store.submit(some, to: id.key)
            }
            edits.insert(
                .init(
                    Self.key(id), if: .revision(row.revision),
                    .put(body: account.encoded(), expiresAtMilliseconds: 0)), at: 0)
            switch try await self.store.submit(edits, to: id.key) {
            case .done: return true
            case .conflict: continue
            case .limited, .refused: throw .refused("a change that is no change")
            }
        }
        throw .notExecuted(retryAfter: .seconds(1))
    }

    /// Sign-ins.
    package func sessions(of id: AccountID) async throws(RouteError) -> [(
        name: Bytes, session: Session
    )] {
        try await self.sessionRows(of: id).filter { $0.session.appPassword == nil }
    }

    /// Sign-ins and app passwords.
    func sessionRows(of id: AccountID) async throws(RouteError) -> [(
        name: Bytes, session: Session
    )] {
        var all: [(name: Bytes, session: Session)] = []
        for entry in try await self.store.list(.session, of: id.bytes, at: id.key) {
            guard let session = try? Session(decoding: entry.row.body) else { throw .unreadableRow }
            all.append((entry.name, session))
        }
        return all
    }

    /// The containers that this person has used.
    package func containers(of id: AccountID) async throws(RouteError) -> [ContainerReference] {
        try await self.store.list(.user, of: id.bytes, at: id.key).compactMap { entry in
            guard let first = entry.name.first, let environment = Environment(rawValue: first),
                let name = String(validating: entry.name.dropFirst(), as: UTF8.self)
            else { return nil }
            return ContainerReference(container: name, environment: environment)
        }
    }

    /// Ends somebody's sessions in a container that is no more, and forgets that they were there.
    package func leave(_ container: ContainerReference, _ id: AccountID)
        async throws(RouteError)
    {
        let there = try await self.sessionRows(of: id).filter { $0.session.container == container }
        let edits =
            there.prefix(IdentityCommand.editCountMax - 1).map {
                IdentityCommand.Edit(Self.key(id, session: $0.name), .remove)
            } + [
                IdentityCommand.Edit(
                    IdentityKey(.user, of: id.bytes, IdentityKey.home(container)), .remove)
            ]
        _ = try await self.store.submit(edits, to: id.key)
    }

    /// Removes a person: sessions, address, account. The containers remove their own data about the
    /// person first.
    package func remove(_ id: AccountID) async throws(RouteError) -> Bool {
        guard let account = try await self.account(id) else { return false }
        if let email = EmailAddress(account.email), try await self.account(of: email) == id {
            let hash = self.store.keys.hash(of: email)
            _ = try await self.store.submit(
                [.init(IdentityKey(.address, of: hash), .remove)], to: Self.home(ofAddress: hash))
        }
        // The account before its sessions: from here on none of them is good.
        _ = try await self.store.submit([.init(Self.key(id), .remove)], to: id.key)
        for kind in [IdentityKey.Kind.session, .user] {
            let rows = try await self.store.list(kind, of: id.bytes, at: id.key)
            var rest = rows[...]
            while !rest.isEmpty {
                let some = rest.prefix(IdentityCommand.editCountMax)
                rest = rest.dropFirst(some.count)
                _ = try await self.store.submit(
                    some.map { .init(IdentityKey(kind, of: id.bytes, $0.name), .remove) },
                    to: id.key)
            }
        }
        _ = try await self.store.submit(
            [.init(IdentityKey(.listing, of: [], id.bytes), .remove)], to: Self.listingHome)
        return true
    }

    /// Accounts by identifier, a page at a time.
    package func page(after id: AccountID?, limit: Int) async throws(RouteError) -> [AccountID] {
        try await self.store.page(
            .listing, of: [], at: Self.listingHome, after: id?.bytes, limit: limit
        ).compactMap { AccountID(bytes: $0.name) }
    }

    /// Every account, by identifier.
    package func all() async throws(RouteError) -> [(id: AccountID, email: String)] {
        try await self.store.list(.listing, of: [], at: Self.listingHome).compactMap { entry in
            AccountID(bytes: entry.name).map {
                ($0, String(decoding: entry.row.body, as: UTF8.self))
            }
        }
    }
}
