import StratusCluster
package import StratusHTTP
package import StratusIdentity
package import StratusModel
package import StratusRecords

/// The people and the containers of a cluster, as the work on them needs them: accounts, access to
/// containers, the registry of containers, and the keys that tokens are sealed with.
package struct Directory: Sendable {
    package static let passwordLength = 8...256

    package let accounts: Accounts
    package let access: ContainerAccess
    package let authenticator: CredentialAuthenticator
    /// How long a save may wait. A request that was admitted before access ended may arrive until
    /// then.
    package let commandDeadline: Duration
    /// How an archive writes records.
    package let form: RecordForm
    /// What opens encrypted fields for archives; nil: they are left out.
    package let keys: DatabaseKeys?
    /// What writes to people; nil: nothing does.
    package let email: EmailDesk?

    package var registry: ContainerRegistry { self.authenticator.registry }
    package var sealingKeys: SealingKeyRing { self.authenticator.sealingKeys }
    var store: IdentityStore { self.accounts.store }

    func makeUserRecord(_ name: String, in container: ContainerReference) async throws {
        try await UserRecords(store: self.store, registry: self.registry).make(name, in: container)
    }

    package init(
        _ authenticator: CredentialAuthenticator,
        commandDeadline: Duration = Limits().commandDeadline, form: RecordForm,
        keys: DatabaseKeys? = nil, email: EmailDesk? = nil
    ) {
        self.keys = keys
        self.email = email
        self.accounts = authenticator.accounts
        self.access = authenticator.access
        self.authenticator = authenticator
        self.commandDeadline = commandDeadline
        self.form = form
    }

    /// Opens a session and makes the person known to the container.
    ///
    /// - Returns: the web-auth token; nil if the account is disabled or gone, or has another
    ///   password than was proven.
    package func open(
        _ id: AccountID, provenBy password: Accounts.PasswordGeneration? = nil,
        in container: ContainerReference, stays: Bool, agent: String
    ) async throws -> String? {
        try await self.authenticator.keepUp()
        guard
            let session = try await self.accounts.openSession(
                of: id, provenBy: password, in: container, stays: stays, agent: agent)
        else { return nil }
        let epoch = try await self.accounts.account(id)?.epoch ?? 1
        let name = self.store.keys.userRecordName(of: id, epoch: epoch, in: container)
        try await self.access.changeUser(name, account: id, in: container) { $0.account = id }
        try await self.makeUserRecord(name, in: container)
        self.authenticator.forget()
        return session.text(in: container, sealedWith: self.store.keys.cipher)
    }

    /// The home of a person's private database, where the reserved zones lie. Nil: no such account.
    func homeDatabase(of id: AccountID, in container: ContainerReference) async throws
        -> DatabaseID?
    {
        guard let account = try await self.accounts.account(id) else { return nil }
        return DatabaseID(
            container: container, scope: .private,
            owner: self.store.keys.userRecordName(of: id, epoch: account.epoch, in: container))
    }

    /// Makes an app password, and makes the person known to the container.
    package func makeAppPassword(
        _ kind: Session.AppPassword, of id: AccountID,
        provenBy generation: Accounts.PasswordGeneration? = nil, in container: ContainerReference
    ) async throws -> Accounts.MadeAppPassword {
        try await self.authenticator.keepUp()
        let made = try await self.accounts.makeAppPassword(
            kind, of: id, provenBy: generation, in: container)
        guard case .made = made else { return made }
        let epoch = try await self.accounts.account(id)?.epoch ?? 1
        let name = self.store.keys.userRecordName(of: id, epoch: epoch, in: container)
        try await self.access.changeUser(name, account: id, in: container) { $0.account = id }
        try await self.makeUserRecord(name, in: container)
        self.authenticator.forget()
        return made
    }
}

/// How records, zones and subscriptions are written where they leave the cluster: as the web
/// services do it.
package struct RecordForm: Sendable {
    package var record: @Sendable (Record, OpenedFields, inout JSONWriter) -> Void
    package var zone: @Sendable (ZoneID, inout JSONWriter) -> Void
    package var subscription: @Sendable (Subscription, inout JSONWriter) -> Void

    package init(
        record: @escaping @Sendable (Record, OpenedFields, inout JSONWriter) -> Void,
        zone: @escaping @Sendable (ZoneID, inout JSONWriter) -> Void,
        subscription: @escaping @Sendable (Subscription, inout JSONWriter) -> Void
    ) {
        self.record = record
        self.zone = zone
        self.subscription = subscription
    }
}
