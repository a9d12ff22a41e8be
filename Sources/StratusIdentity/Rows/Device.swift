package import StratusCoding
package import StratusModel

/// The containers in which a poll token or a device of a push provider is registered, and under
/// whose name.
///
/// | bytes  | device, format 1 for a poll token, 2 for a device                  |
/// | ------ | ------------------------------------------------------------------ |
/// | 1      | format                                                             |
/// | 1      | APNs environment: 0 development, 1 production                      |
/// | …      | format 2: 1 provider (1 APNs, 2 Web Push), flag guessed, text      |
/// |        | topic, signed milliseconds of the registration, prefixed address,  |
/// |        | sealed                                                             |
/// | count  | registrations, the oldest first: text container, 1 environment,    |
/// |        | text user record name, flag server key, prefixed account, prefixed |
/// |        | session, both empty for development users and server keys; varint  |
/// |        | badge                                                              |
///
/// The first byte is a flag for what the row holds: every build reads and writes both.
package struct Device: Sendable, Equatable {
    package struct Registration: Sendable, Equatable {
        package var container: ContainerReference
        package var userRecordName: String
        package var isServerKey: Bool
        /// The session that registered it: nobody is told after its end.
        package var session: Session?

        package struct Session: Sendable, Equatable {
            package var account: AccountID
            package var session: Bytes

            package init(account: AccountID, session: Bytes) {
                self.account = account
                self.session = session
            }
        }

        package init(
            container: ContainerReference, userRecordName: String, isServerKey: Bool,
            session: Session? = nil
        ) {
            self.container = container
            self.userRecordName = userRecordName
            self.isServerKey = isServerKey
            self.session = session
        }
    }

    /// Where a push provider finds the device.
    package struct Provider: Sendable, Equatable {
        package enum Kind: UInt8, Sendable {
            case apns = 1
            case webPush = 2
        }

        package var kind: Kind
        /// APNs: the app's bundle identifier; empty: the first of the container's key. Web Push:
        /// the number of the key that the browser subscribed with.
        package var topic: String
        /// Nobody said which of APNs' hosts knows the token.
        package var isGuessed: Bool
        /// When it was registered last: a provider that says the device went before that is wrong.
        package var registeredAtMilliseconds: Int64
        /// The token or endpoint, sealed.
        package var address: Bytes

        package init(
            _ kind: Kind, topic: String, isGuessed: Bool = false, registeredAtMilliseconds: Int64,
            address: Bytes
        ) {
            self.kind = kind
            self.topic = topic
            self.isGuessed = isGuessed
            self.registeredAtMilliseconds = registeredAtMilliseconds
            self.address = address
        }
    }

    /// Containers of one token. A page of a browser has few.
    package static let registrationCountMax = 16

    package var environment: Environment
    /// Nil for a poll token.
    package var provider: Provider?
    package private(set) var registrations: [Registration]
    /// What the badges of each registration's user have counted, in the same order.
    private var badges: [UInt64]

    package init(
        environment: Environment, provider: Provider? = nil, registrations: [Registration] = []
    ) {
        self.environment = environment
        self.provider = provider
        self.registrations = registrations
        self.badges = registrations.map { _ in 0 }
    }

    /// The badge that a user's device shows.
    package func badge(of registration: Registration) -> UInt64 {
        self.place(of: registration).map { self.badges[$0] } ?? 0
    }

    package mutating func setBadge(_ badge: UInt64, of registration: Registration) {
        if let place = self.place(of: registration) { self.badges[place] = badge }
    }

    private func place(of registration: Registration) -> Int? {
        self.registrations.firstIndex {
            $0.container == registration.container
                && $0.userRecordName == registration.userRecordName
        }
    }

    /// Takes the container's registration over, whoever had it.
    /// - Returns: false where there are too many.
    package mutating func register(_ registration: Registration) -> Bool {
        let badge = self.badge(of: registration)
        if let place = self.registrations.firstIndex(where: {
            $0.container == registration.container
        }) {
            self.registrations.remove(at: place)
            self.badges.remove(at: place)
        }
        guard self.registrations.count < Self.registrationCountMax else { return false }
        self.registrations.append(registration)
        self.badges.append(badge)
        return true
    }

    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 128)
        writer.write((self.provider == nil ? 1 : 2) as UInt8)
        writer.write(self.environment.rawValue)
        if let provider = self.provider {
            writer.write(provider.kind.rawValue)
            writer.write(flag: provider.isGuessed)
            writer.write(text: provider.topic)
            writer.write(signed: provider.registeredAtMilliseconds)
            writer.write(prefixed: provider.address)
        }
        writer.write(count: self.registrations.count)
        for (registration, badge) in zip(self.registrations, self.badges) {
            writer.write(text: registration.container.container)
            writer.write(registration.container.environment.rawValue)
            writer.write(text: registration.userRecordName)
            writer.write(flag: registration.isServerKey)
            writer.write(prefixed: registration.session?.account.bytes ?? [])
            writer.write(prefixed: registration.session?.session ?? [])
            writer.write(varint: badge)
        }
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        let format = try reader.byte()
        guard format == 1 || format == 2 else {
            throw DecodingError(.unknownVersion(format), at: 0)
        }
        self.environment = try Self.environment(&reader)
        self.provider = format == 2 ? try Self.provider(&reader) : nil
        self.registrations = []
        self.badges = []
        for _ in 0..<(try reader.count(minimumSize: 4)) {
            let container = try reader.text()
            let environment = try Self.environment(&reader)
            let user = try reader.text()
            let isServerKey = try reader.flag()
            let account = AccountID(bytes: try reader.prefixed())
            let session = try reader.prefixed()
            self.registrations.append(
                Registration(
                    container: ContainerReference(container: container, environment: environment),
                    userRecordName: user, isServerKey: isServerKey,
                    session: account.map { .init(account: $0, session: session) }))
            self.badges.append(try reader.varint())
        }
        try reader.finish()
    }

    private static func provider(_ reader: inout ByteReader) throws(DecodingError) -> Provider {
        guard let kind = Provider.Kind(rawValue: try reader.byte()) else {
            throw DecodingError(.malformed, at: reader.offset - 1)
        }
        let isGuessed = try reader.flag()
        let topic = try reader.text()
        let milliseconds = try reader.signed()
        return Provider(
            kind, topic: topic, isGuessed: isGuessed, registeredAtMilliseconds: milliseconds,
            address: try reader.prefixed())
    }

    private static func environment(_ reader: inout ByteReader) throws(DecodingError) -> Environment
    {
        guard let environment = Environment(rawValue: try reader.byte()) else {
            throw DecodingError(.malformed, at: reader.offset - 1)
        }
        return environment
    }
}
