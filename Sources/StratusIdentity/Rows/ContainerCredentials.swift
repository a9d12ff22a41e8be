package import StratusCoding
package import StratusModel

/// The token by which a browser or app names its container. Not a secret in itself: it stands in
/// web pages.
///
/// | bytes  | API token, format 1                                    |
/// | ------ | ------------------------------------------------------ |
/// | 1      | format, 1                                              |
/// | text   | name                                                   |
/// | text   | the URL that sign-in leads back to; empty: a message to the window that opened it |
/// | count  | allowed origins, each a text; none: any                |
/// | flag   | whether the app receives people's names                |
/// | signed | created, milliseconds                                  |
package struct APIToken: Sendable, Equatable {
    package var name: String
    /// Nil: the page that opened the sign-in window is sent a message.
    package var callbackURL: String?
    /// `https://app.example.org`; empty: any.
    package var origins: [String]
    package var receivesNames: Bool
    package var createdMilliseconds: Int64

    package init(
        name: String, callbackURL: String? = nil, origins: [String] = [],
        receivesNames: Bool = false, createdMilliseconds: Int64
    ) {
        self.name = name
        self.callbackURL = callbackURL
        self.origins = origins
        self.receivesNames = receivesNames
        self.createdMilliseconds = createdMilliseconds
    }

    package func allows(origin: String?) -> Bool {
        guard let origin, !self.origins.isEmpty else { return true }
        return self.origins.contains { $0.lowercased() == origin.lowercased() }
    }

    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 128)
        writer.write(1 as UInt8)
        writer.write(text: self.name)
        writer.write(text: self.callbackURL ?? "")
        writer.write(count: self.origins.count)
        for origin in self.origins { writer.write(text: origin) }
        writer.write(flag: self.receivesNames)
        writer.write(signed: self.createdMilliseconds)
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.identityFormat(1)
        self.name = try reader.text()
        let callback = try reader.text()
        self.callbackURL = callback.isEmpty ? nil : callback
        self.origins = []
        for _ in 0..<(try reader.count()) { self.origins.append(try reader.text()) }
        self.receivesNames = try reader.flag()
        self.createdMilliseconds = try reader.signed()
        try reader.finish()
    }
}

/// A server-to-server key.
///
/// | bytes    | server key, format 1                                   |
/// | -------- | ------------------------------------------------------ |
/// | 1        | format, 1                                              |
/// | text     | name; two live keys may share one                      |
/// | prefixed | the public key, SPKI in DER                            |
/// | signed   | created, milliseconds                                  |
package struct ServerKey: Sendable, Equatable {
    package var name: String
    package var publicKey: Bytes
    package var createdMilliseconds: Int64

    package init(name: String, publicKey: Bytes, createdMilliseconds: Int64) {
        self.name = name
        self.publicKey = publicKey
        self.createdMilliseconds = createdMilliseconds
    }

    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 160)
        writer.write(1 as UInt8)
        writer.write(text: self.name)
        writer.write(prefixed: self.publicKey)
        writer.write(signed: self.createdMilliseconds)
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.identityFormat(1)
        self.name = try reader.text()
        self.publicKey = try reader.prefixed()
        self.createdMilliseconds = try reader.signed()
        try reader.finish()
    }
}

/// A container's record of one of its users.
///
/// | bytes    | container user, format 1                               |
/// | -------- | ------------------------------------------------------ |
/// | 1        | format, 1                                              |
/// | prefixed | account; empty for a server-to-server key              |
/// | count    | custom roles, sorted, each a text                      |
/// | flag     | restricted: the private database is closed to its owner |
/// | signed   | first seen, milliseconds                               |
package struct ContainerUser: Sendable, Equatable {
    package var account: AccountID?
    package var roles: [String]
    package var isRestricted: Bool
    package var firstSeenMilliseconds: Int64

    package init(
        account: AccountID?, roles: [String] = [], isRestricted: Bool = false,
        firstSeenMilliseconds: Int64
    ) {
        self.account = account
        self.roles = roles
        self.isRestricted = isRestricted
        self.firstSeenMilliseconds = firstSeenMilliseconds
    }

    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 64)
        writer.write(1 as UInt8)
        writer.write(prefixed: self.account?.bytes ?? [])
        writer.write(count: self.roles.count)
        for role in self.roles { writer.write(text: role) }
        writer.write(flag: self.isRestricted)
        writer.write(signed: self.firstSeenMilliseconds)
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.identityFormat(1)
        self.account = AccountID(bytes: try reader.prefixed())
        self.roles = []
        for _ in 0..<(try reader.count()) { self.roles.append(try reader.text()) }
        self.isRestricted = try reader.flag()
        self.firstSeenMilliseconds = try reader.signed()
        try reader.finish()
    }
}
