package import StratusCoding
package import StratusModel
package import StratusSealing

/// Names an account for its whole life: 128 random bits, never shown to a client.
package struct AccountID: Sendable, Hashable, CustomStringConvertible {
    package let bytes: Bytes

    package init?(bytes: Bytes) {
        guard bytes.count == 16 else { return nil }
        self.bytes = bytes
    }

    package init(_ identity: RequestIdentity) {
        self.bytes = [identity.high, identity.low].flatMap { word in
            (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * UInt64($0))) }
        }
    }

    /// 32 hexadecimal digits.
    package init?(_ text: String) {
        guard let bytes = Hexadecimal.bytes(text), bytes.count == 16 else { return nil }
        self.bytes = bytes
    }

    package var description: String { Hexadecimal.text(self.bytes) }
    /// The key that places its rows.
    package var key: ShardKey { .account(self.description) }
}

/// An address as somebody wrote it, and as it is compared.
package struct EmailAddress: Sendable, Hashable {
    package let text: String
    /// Lower case; nothing else of it is ours to judge.
    package var normalised: String { self.text.lowercased() }

    /// Something, `@`, something, without spaces and controls; 254 bytes at most (RFC 5321).
    package init?(_ text: String) {
        let trimmed = text.utf8.drop { $0 <= 0x20 }.reversed().drop { $0 <= 0x20 }.reversed()
        guard let trimmed = String(validating: Bytes(trimmed), as: UTF8.self),
            (3...254).contains(trimmed.utf8.count),
            trimmed.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }),
            let at = trimmed.utf8.lastIndex(of: UInt8(ascii: "@")), at != trimmed.utf8.startIndex,
            trimmed.utf8.index(after: at) != trimmed.utf8.endIndex
        else { return nil }
        self.text = trimmed
    }
}

/// A person who signs in.
///
/// | bytes  | account, format 1                                              |
/// | ------ | -------------------------------------------------------------- |
/// | 1      | format, 1                                                      |
/// | text   | e-mail, as written                                             |
/// | text   | given name                                                     |
/// | text   | family name                                                    |
/// | 1      | status                                                         |
/// | flag   | password set; then varint KiB, varint passes, prefixed salt, prefixed hash |
/// | signed | created, milliseconds                                          |
/// | signed | sessions opened before are void, milliseconds                  |
/// | varint | epoch: part of what the person is called in containers         |
/// | flag   | discoverable                                                   |
/// | 1      | whether somebody has vouched for the address                   |
/// | signed | last sign-in, milliseconds; 0: never                           |
/// | flag   | whether a reset waits; then prefixed hash, signed expiry, flag mailed |
package struct Account: Sendable, Equatable {
    package enum Status: UInt8, Sendable, Equatable {
        case active = 1
        case disabled = 2
    }

    /// Who says that the address is this person's.
    package enum Verification: UInt8, Sendable, CaseIterable {
        /// Nobody. Others cannot find the person by it.
        case unproven = 0
        /// An administrator, who typed it.
        case administrator = 1
        /// The person, who opened a link that was sent there.
        case proof = 2

        /// What administrators and exports call it.
        package var name: String {
            switch self {
            case .unproven: "nobody"
            case .administrator: "administrator"
            case .proof: "proof"
            }
        }
    }

    package struct Reset: Sendable, Equatable {
        /// The hash of the one-time secret in the link.
        package var hash: Bytes
        package var expiresAtMilliseconds: Int64
        /// Whether the link was sent to the person's address: who has it, reads what comes there.
        package var isMailed: Bool

        package init(hash: Bytes, expiresAtMilliseconds: Int64, isMailed: Bool = false) {
            self.hash = hash
            self.expiresAtMilliseconds = expiresAtMilliseconds
            self.isMailed = isMailed
        }
    }

    package var email: String
    package var givenName: String
    package var familyName: String
    package var status = Status.active
    package var password: PasswordHash?
    package var createdMilliseconds: Int64
    package var sessionsValidFromMilliseconds: Int64 = 0
    package var epoch: UInt64 = 1
    /// Whether others may find this person by address, and see the name.
    package var isDiscoverable = false
    package var verification = Verification.unproven
    /// 0: never.
    package var lastSignInMilliseconds: Int64 = 0
    package var reset: Reset?

    package init(
        email: String, givenName: String = "", familyName: String = "", createdMilliseconds: Int64
    ) {
        self.email = email
        self.givenName = givenName
        self.familyName = familyName
        self.createdMilliseconds = createdMilliseconds
    }

    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 256)
        writer.write(1 as UInt8)
        writer.write(text: self.email)
        writer.write(text: self.givenName)
        writer.write(text: self.familyName)
        writer.write(self.status.rawValue)
        writer.write(flag: self.password != nil)
        if let password {
            writer.write(varint: UInt64(password.memoryKibibytes))
            writer.write(varint: UInt64(password.passes))
            writer.write(prefixed: password.salt)
            writer.write(prefixed: password.hash)
        }
        writer.write(signed: self.createdMilliseconds)
        writer.write(signed: self.sessionsValidFromMilliseconds)
        writer.write(varint: self.epoch)
        writer.write(flag: self.isDiscoverable)
        writer.write(self.verification.rawValue)
        writer.write(signed: self.lastSignInMilliseconds)
        writer.write(flag: self.reset != nil)
        if let reset {
            writer.write(prefixed: reset.hash)
            writer.write(signed: reset.expiresAtMilliseconds)
            writer.write(flag: reset.isMailed)
        }
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.identityFormat(1)
        self.email = try reader.text()
        self.givenName = try reader.text()
        self.familyName = try reader.text()
        guard let status = Status(rawValue: try reader.byte()) else {
            throw DecodingError(.malformed, at: reader.offset - 1)
        }
        self.status = status
        if try reader.flag() {
            let memory = try reader.varint32()
            let passes = try reader.varint32()
            let salt = try reader.prefixed()
            self.password = PasswordHash(
                memoryKibibytes: memory, passes: passes, salt: salt, hash: try reader.prefixed())
        }
        self.createdMilliseconds = try reader.signed()
        self.sessionsValidFromMilliseconds = try reader.signed()
        self.epoch = try reader.varint()
        self.isDiscoverable = try reader.flag()
        guard let verification = Verification(rawValue: try reader.byte()) else {
            throw DecodingError(.malformed, at: reader.offset - 1)
        }
        self.verification = verification
        self.lastSignInMilliseconds = try reader.signed()
        if try reader.flag() {
            let hash = try reader.prefixed()
            let expiry = try reader.signed()
            self.reset = Reset(
                hash: hash, expiresAtMilliseconds: expiry, isMailed: try reader.flag())
        }
        try reader.finish()
    }
}

extension ByteReader {
    mutating func identityFormat(_ expected: UInt8) throws(DecodingError) {
        let version = try self.byte()
        guard version == expected else {
            throw DecodingError(.unknownVersion(version), at: self.offset - 1)
        }
    }

    mutating func varint32() throws(DecodingError) -> UInt32 {
        guard let value = UInt32(exactly: try self.varint()) else {
            throw DecodingError(.malformed, at: self.offset - 1)
        }
        return value
    }
}
