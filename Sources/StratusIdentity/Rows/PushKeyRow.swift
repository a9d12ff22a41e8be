import StratusCluster
import StratusCoding
import StratusModel
import StratusRecords
import StratusSealing

/// The rows of ``PushKeys``, below a container's home. The name begins with the kind.
///
/// | bytes | row, format 1                                                           |
/// | ----- | ----------------------------------------------------------------------- |
/// | 1     | format, 1                                                               |
/// | 1     | kind: 1 APNs key, 2 VAPID key, 3 pause, 4 provider token                |
/// | …     | APNs key: texts team and key, count of topics, each a text, signed      |
/// |       | created, prefixed key in PEM, sealed                                    |
/// | …     | VAPID key: text contact, signed created, prefixed key in PEM, sealed    |
/// | …     | pause: signed since                                                     |
/// | …     | provider token: signed seconds of its making, prefixed token, sealed    |
///
/// A name: the kind; then of APNs keys and provider tokens the team, 0x00 and the key, of VAPID
/// keys 8 bytes number. What is sealed is sealed for the name, and a provider token for the key's
/// point besides: a key that took another's place does not show the other's token.
enum PushKeyRow {
    enum Kind: UInt8 {
        case apns = 1
        case vapid = 2
        case pause = 3
        case token = 4
    }

    static func name(_ kind: Kind) -> Bytes { [kind.rawValue] }

    static func name(_ kind: Kind, _ team: String, _ key: String) -> Bytes {
        [kind.rawValue] + Bytes(team.utf8) + [0] + Bytes(key.utf8)
    }

    static func name(vapid number: UInt64) -> Bytes {
        [Kind.vapid.rawValue] + withUnsafeBytes(of: number.bigEndian) { Bytes($0) }
    }

    static func apns(
        team: String, key: String, topics: [String], created: Int64, _ signing: SigningKey,
        _ cipher: TokenCipher
    ) -> Bytes {
        var writer = Self.begin(.apns)
        writer.write(text: team)
        writer.write(text: key)
        writer.write(count: topics.count)
        for topic in topics { writer.write(text: topic) }
        writer.write(signed: created)
        writer.write(prefixed: cipher.seal(signing.pem, for: Self.name(.apns, team, key)))
        return writer.bytes
    }

    static func vapid(
        number: UInt64, contact: String, created: Int64, _ signing: SigningKey,
        _ cipher: TokenCipher
    ) -> Bytes {
        var writer = Self.begin(.vapid)
        writer.write(text: contact)
        writer.write(signed: created)
        writer.write(prefixed: cipher.seal(signing.pem, for: Self.name(vapid: number)))
        return writer.bytes
    }

    static func pause(since milliseconds: Int64) -> Bytes {
        var writer = Self.begin(.pause)
        writer.write(signed: milliseconds)
        return writer.bytes
    }

    static func token(
        _ text: String, issuedAt: Int64, of key: PushKeys.APNsKey, _ cipher: TokenCipher
    ) -> Bytes {
        var writer = Self.begin(.token)
        writer.write(signed: issuedAt)
        writer.write(prefixed: cipher.seal(Bytes(text.utf8), for: Self.purpose(of: key)))
        return writer.bytes
    }

    /// Nil: none that this key has made.
    static func token(
        _ body: Bytes, of key: PushKeys.APNsKey, _ ciphers: [TokenCipher]
    ) -> (text: String, issuedAt: Int64)? {
        var reader = ByteReader(body)
        guard (try? Self.kind(&reader)) == .token, let issuedAt = try? reader.signed(),
            let sealed = try? reader.prefixed(),
            let text = Self.open(sealed, for: Self.purpose(of: key), ciphers)
        else { return nil }
        return (String(decoding: text, as: UTF8.self), issuedAt)
    }

    private static func purpose(of key: PushKeys.APNsKey) -> Bytes {
        Self.name(.token, key.team, key.key) + [0] + key.signing.publicPoint
    }

    static func read(
        _ listed: IdentityAnswer.Listed, _ ciphers: [TokenCipher],
        parsed: inout ParsedSigningKeys, into known: inout PushKeys.Known
    ) throws(RouteError) {
        do {
            var reader = ByteReader(listed.row.body)
            switch try Self.kind(&reader) {
            case .apns:
                let (team, key) = (try reader.text(), try reader.text())
                var topics: [String] = []
                for _ in 0..<(try reader.count()) { topics.append(try reader.text()) }
                let created = try reader.signed()
                known.apns.append(
                    PushKeys.APNsKey(
                        team: team, key: key, topics: topics, createdMilliseconds: created,
                        revision: listed.row.revision,
                        signing: try Self.signing(&reader, listed, ciphers, &parsed)))
            case .vapid:
                let (contact, created) = (try reader.text(), try reader.signed())
                known.vapid.append(
                    PushKeys.VAPIDKey(
                        number: listed.name.dropFirst().reduce(0) { $0 << 8 | UInt64($1) },
                        contact: contact, createdMilliseconds: created,
                        signing: try Self.signing(&reader, listed, ciphers, &parsed)))
            case .pause: known.isPaused = true
            case .token: break
            }
        } catch { throw .unreadableRow }
    }

    private static func signing(
        _ reader: inout ByteReader, _ listed: IdentityAnswer.Listed, _ ciphers: [TokenCipher],
        _ parsed: inout ParsedSigningKeys
    ) throws(DecodingError) -> SigningKey {
        let sealed = try reader.prefixed()
        try reader.finish()
        guard let pem = Self.open(sealed, for: listed.name, ciphers),
            let key = parsed.key(of: listed, pem: pem)
        else { throw DecodingError(.malformed, at: 0) }
        return key
    }

    private static func open(_ sealed: Bytes, for purpose: Bytes, _ ciphers: [TokenCipher])
        -> Bytes?
    {
        for cipher in ciphers {
            if let plain = cipher.open(sealed, for: purpose) { return plain }
        }
        return nil
    }

    /// The row with what is sealed in it sealed under another cipher.
    ///
    /// - Parameter known: the container's keys; what a provider token is sealed for is among them.
    /// - Returns: nil where the row has nothing that the older cipher opens.
    static func sealedAnew(
        _ body: Bytes, named name: Bytes, _ known: PushKeys.Known, from old: TokenCipher,
        to new: TokenCipher
    ) -> Bytes? {
        var reader = ByteReader(body)
        guard let kind = try? Self.kind(&reader) else { return nil }
        var purpose = name
        do {
            switch kind {
            case .apns:
                for _ in 0..<2 { _ = try reader.text() }
                for _ in 0..<(try reader.count()) { _ = try reader.text() }
                _ = try reader.signed()
            case .vapid:
                _ = try reader.text()
                _ = try reader.signed()
            case .pause: return nil
            case .token:
                _ = try reader.signed()
                guard
                    let key = known.apns.first(where: { Self.name(.token, $0.team, $0.key) == name }
                    )
                else { return nil }
                purpose = Self.purpose(of: key)
            }
            let head = Bytes(body.prefix(reader.offset))
            guard let plain = old.open(try reader.prefixed(), for: purpose) else { return nil }
            var writer = ByteWriter(reserving: body.count)
            writer.write(raw: head)
            writer.write(prefixed: new.seal(plain, for: purpose))
            return writer.bytes
        } catch { return nil }
    }

    private static func begin(_ kind: Kind) -> ByteWriter {
        var writer = ByteWriter(reserving: 400)
        writer.write(1 as UInt8)
        writer.write(kind.rawValue)
        return writer
    }

    private static func kind(_ reader: inout ByteReader) throws(DecodingError) -> Kind {
        try reader.identityFormat(1)
        guard let kind = Kind(rawValue: try reader.byte()) else {
            throw DecodingError(.malformed, at: 1)
        }
        return kind
    }
}
