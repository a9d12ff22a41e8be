package import StratusModel

/// Names one row of who is asking: an account, a session, a token, a role.
///
/// What the kinds' rows hold is the business of StratusIdentity; here a kind only keeps them apart
/// and in order. Every row of one home starts with the home, so that a home's rows of a kind are
/// one range.
package struct IdentityKey: Sendable, Hashable {
    /// The raw value is on disk for ever.
    package enum Kind: UInt8, Sendable, Hashable, CaseIterable {
        case account = 1
        case session = 2
        /// The account that an e-mail address belongs to.
        case address = 3
        /// The number of attempts at something.
        case counter = 4
        case apiToken = 5
        case serverKey = 6
        /// One user as a container knows them: roles, consent.
        case user = 7
        /// A sign-in page's address that was used.
        case usedLink = 8
        /// The audit log of what administrators did, one row for each action.
        case audit = 9
        /// All accounts, for the list.
        case listing = 10
        /// A container as an installation knows it: whether it may be used.
        case container = 11
        /// All containers, for the list.
        case containerListing = 12
        /// The keys that seal tokens, wrapped.
        case sealingKey = 13
        /// The containers in which a poll token or a device of a push provider is registered.
        case device = 14
        /// The key of a container, wrapped.
        case containerKey = 15
        /// A key or a setting by which a container sends to push providers, sealed.
        case pushKey = 16
        /// Which key a version of a named master key is.
        case masterCheck = 17
        /// How far a rotation of keys has come.
        case keyRotation = 18
        /// How an app looks on the pages where its people sign in.
        case brand = 19
    }

    package var kind: Kind
    /// The owner of the row: an account's identifier, a container, an address' hash.
    package var home: Bytes
    /// The name of the row among the home's rows of that kind.
    package var name: Bytes

    package init(_ kind: Kind, of home: Bytes, _ name: Bytes = []) {
        self.kind = kind
        self.home = home
        self.name = name
    }

    /// The home of what belongs to a container in one environment.
    package static func home(_ container: ContainerReference) -> Bytes {
        [container.environment.rawValue] + Bytes(container.container.utf8)
    }

    // | bytes | key in Table.identity                                                  |
    // | ----- | ---------------------------------------------------------------------- |
    // | 1     | kind                                                                   |
    // | 2     | length of the home, big-endian                                         |
    // | …     | home                                                                   |
    // | …     | name                                                                   |
    //
    // Kind 0 orders the rows that expire: 0x00, 8 expiry in milliseconds big-endian, the row's key.

    var encoded: Bytes {
        precondition(self.home.count <= Int(UInt16.max), "a home is a name, not a text")
        let count = UInt16(self.home.count)
        var key: Bytes = [self.kind.rawValue, UInt8(count >> 8), UInt8(count & 0xFF)]
        key.reserveCapacity(3 + self.home.count + self.name.count)
        key.append(contentsOf: self.home)
        key.append(contentsOf: self.name)
        return key
    }

    static func expiry(_ milliseconds: Int64, of key: Bytes) -> Bytes {
        var order = Self.expiryStart(milliseconds)
        order.append(contentsOf: key)
        return order
    }

    static func expiryStart(_ milliseconds: Int64) -> Bytes {
        var start: Bytes = [0]
        Keys.append(UInt64(clamping: milliseconds), to: &start)
        return start
    }
}

/// One stored row, as a reader sees it.
package struct IdentityRow: Sendable, Hashable {
    /// Grows with every change of the row; what a conditional change compares.
    package var revision: UInt64
    /// From then on the row is as good as gone. 0: never.
    package var expiresAtMilliseconds: Int64
    package var body: Bytes

    package init(revision: UInt64, expiresAtMilliseconds: Int64 = 0, body: Bytes) {
        self.revision = revision
        self.expiresAtMilliseconds = expiresAtMilliseconds
        self.body = body
    }

    package func isLive(at milliseconds: Int64) -> Bool {
        self.expiresAtMilliseconds == 0 || milliseconds < self.expiresAtMilliseconds
    }
}
