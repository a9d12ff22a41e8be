package import StratusCoding
package import StratusModel

/// The containers in which a poll token is registered, and under whose name.
///
/// | bytes  | device, format 1                                                   |
/// | ------ | ------------------------------------------------------------------ |
/// | 1      | format, 1                                                          |
/// | 1      | APNs environment: 0 development, 1 production                      |
/// | count  | registrations, the oldest first: text container, 1 environment,    |
/// |        | text user record name, flag server key, prefixed account, prefixed |
/// |        | session; both empty for development users and server keys          |
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

    /// Containers of one token. A page of a browser has few.
    package static let registrationCountMax = 16

    package var environment: Environment
    package var registrations: [Registration]

    package init(environment: Environment, registrations: [Registration] = []) {
        self.environment = environment
        self.registrations = registrations
    }

    /// Takes the container's registration over, whoever had it.
    /// - Returns: false where there are too many.
    package mutating func register(_ registration: Registration) -> Bool {
        self.registrations.removeAll { $0.container == registration.container }
        guard self.registrations.count < Self.registrationCountMax else { return false }
        self.registrations.append(registration)
        return true
    }

    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 128)
        writer.write(1 as UInt8)
        writer.write(self.environment.rawValue)
        writer.write(count: self.registrations.count)
        for registration in self.registrations {
            writer.write(text: registration.container.container)
            writer.write(registration.container.environment.rawValue)
            writer.write(text: registration.userRecordName)
            writer.write(flag: registration.isServerKey)
            writer.write(prefixed: registration.session?.account.bytes ?? [])
            writer.write(prefixed: registration.session?.session ?? [])
        }
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.identityFormat(1)
        self.environment = try Self.environment(&reader)
        self.registrations = []
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
        }
        try reader.finish()
    }

    private static func environment(_ reader: inout ByteReader) throws(DecodingError) -> Environment
    {
        guard let environment = Environment(rawValue: try reader.byte()) else {
            throw DecodingError(.malformed, at: reader.offset - 1)
        }
        return environment
    }
}
