import StratusCoding
package import StratusModel
import StratusRecords
import StratusSealing

/// Finds people for other people: by e-mail address or by record name in a container.
///
/// The finder returns people who consented, are active, and have used the container. A person who
/// did not consent and a person who does not exist get the same answer for the same work. The same
/// rows are read, from homes drawn from the question, and as many rows are decoded. If a row is
/// missing, a stand-in is decoded.
package struct PeopleFinder: Sendable {
    package struct Person: Sendable, Equatable {
        package var recordName: String
        package var account: Account
    }

    /// The result of a lookup, and the work it took.
    package struct LookUp: Sendable, Equatable {
        package var person: Person?
        package var readCount = 0
        package var decodedCount = 0
    }

    private let accounts: Accounts
    private let access: ContainerAccess

    package init(_ accounts: Accounts, _ access: ContainerAccess) {
        self.accounts = accounts
        self.access = access
    }

    package func lookUp(_ email: EmailAddress, in container: ContainerReference)
        async throws(RouteError) -> LookUp
    {
        var work = LookUp()
        let keys = self.accounts.store.keys
        let hash = keys.hash(of: email)
        let known = try await self.accounts.account(of: email)
        work.readCount += 1
        let id = known ?? Self.standIn(for: hash)
        let (account, exists) = try await self.account(id, &work)
        let name = keys.userRecordName(of: id, epoch: account.epoch, in: container)
        let (_, isUser) = try await self.user(name, in: container, &work)
        let isFound =
            known != nil && exists && isUser && Self.isFindable(account)
            // Whoever came first with an address is not found by it.
            && account.verification != .unproven
        work.person = isFound ? Person(recordName: name, account: account) : nil
        return work
    }

    package func lookUp(recordName name: String, in container: ContainerReference)
        async throws(RouteError) -> LookUp
    {
        var work = LookUp()
        let (user, isUser) = try await self.user(name, in: container, &work)
        let known = isUser ? user.account : nil
        let (account, exists) = try await self.account(
            known ?? Self.standIn(for: self.accounts.store.keys.hash(ofToken: name)), &work)
        let isFound = known != nil && exists && Self.isFindable(account)
        work.person = isFound ? Person(recordName: name, account: account) : nil
        return work
    }

    private static func isFindable(_ account: Account) -> Bool {
        account.isDiscoverable && account.status == .active
    }

    private func account(_ id: AccountID, _ work: inout LookUp) async throws(RouteError)
        -> (Account, exists: Bool)
    {
        let row = try await self.accounts.store.row(Accounts.key(id), at: id.key)
        work.readCount += 1
        work.decodedCount += 1
        do {
            return (try Account(decoding: row?.body ?? Self.accountStandIn), row != nil)
        } catch { throw .unreadableRow }
    }

    private func user(
        _ name: String, in container: ContainerReference, _ work: inout LookUp
    ) async throws(RouteError) -> (ContainerUser, exists: Bool) {
        let row = try await self.access.row(of: name, in: container)
        work.readCount += 1
        work.decodedCount += 1
        do {
            return (try ContainerUser(decoding: row?.body ?? Self.userStandIn), row != nil)
        } catch { throw .unreadableRow }
    }

    // MARK: Stand-ins

    /// The account that stands in for one that does not exist. Its home follows from the hash, so
    /// that no single partition answers for all of them.
    static func standIn(for hash: Bytes) -> AccountID {
        AccountID(bytes: Bytes(hash.prefix(16))) ?? AccountID(RequestIdentity(high: 0, low: 0))
    }

    private static let accountStandIn: Bytes = {
        var account = Account(
            email: "somebody@example.org", givenName: "Somebody", familyName: "Somewhere",
            createdMilliseconds: 1_700_000_000_000)
        account.password = PasswordHash(
            memoryKibibytes: 19_456, passes: 2, salt: Bytes(repeating: 0, count: 16),
            hash: Bytes(repeating: 0, count: 32))
        return account.encoded()
    }()

    private static let userStandIn = ContainerUser(
        account: AccountID(RequestIdentity(high: 0, low: 0)),
        firstSeenMilliseconds: 1_700_000_000_000
    ).encoded()
}
