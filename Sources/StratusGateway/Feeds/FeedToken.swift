import StratusCoding
import StratusHTTP
import StratusIdentity
package import StratusModel
import StratusRecords
package import StratusSealing

/// A position in a feed, as clients carry it: `syncToken` and `metaSyncToken`.
///
/// | bytes | what                                                                  |
/// | ----- | --------------------------------------------------------------------- |
/// | 1     | kind, in the clear: it tells a client's mistake from a damaged token   |
/// | 16+n  | sealed by ``TokenCipher`` for the kind and the feed's place            |
///
/// of which the sealed n bytes are
///
/// | bytes | what                                                                  |
/// | ----- | --------------------------------------------------------------------- |
/// | 1     | version, 1                                                            |
/// | 8     | a zone's incarnation; a database's turn                               |
/// | 8     | the change tag of the last change seen                                |
/// | 2     | bits: 1 a database's position midway through its pages, 2 a floor     |
/// | 8     | only with bit 2: the floor, see `FeedPosition`, `DatabasePosition`     |
///
/// That is 48 letters of base64, 60 with a floor. Equal positions have equal tokens. A database in
/// buckets has tokens of another version: see ``PartedToken``.
package struct FeedToken: Sendable, Hashable {
    /// The raw value is in clients' hands for ever.
    package enum Kind: UInt8, Sendable, Hashable, CaseIterable {
        case zone = 0x01
        case database = 0x0F
        /// A token of the deprecated `zones/changes`.
        case meta = 0x04
    }

    package var kind: Kind
    /// The incarnation or the turn.
    package var era: UInt64
    package var tag: UInt64
    package var isMidway: Bool
    package var floor: UInt64

    package init(
        _ kind: Kind, era: UInt64, tag: UInt64, isMidway: Bool = false, floor: UInt64 = 0
    ) {
        self.kind = kind
        self.era = era
        self.tag = tag
        self.isMidway = isMidway
        self.floor = floor
    }

    init(_ position: FeedPosition) {
        self.init(
            .zone, era: position.incarnation.raw, tag: position.tag.raw,
            floor: position.floor.raw)
    }

    init(_ kind: Kind, _ position: DatabasePosition) {
        self.init(
            kind, era: position.turn, tag: position.tag.raw, isMidway: position.isMidway,
            floor: position.floor)
    }

    var feedPosition: FeedPosition {
        FeedPosition(
            incarnation: ZoneIncarnation(self.era), tag: ChangeTag(self.tag),
            floor: ChangeTag(self.floor))
    }

    var databasePosition: DatabasePosition {
        DatabasePosition(
            turn: self.era, tag: ChangeTag(self.tag), isMidway: self.isMidway, floor: self.floor)
    }

    package func text(at place: FeedPlace, sealedWith cipher: TokenCipher) -> String {
        var writer = ByteWriter(reserving: 32)
        writer.write(1 as UInt8)
        writer.write(fixed: self.era)
        writer.write(fixed: self.tag)
        writer.write(fixed: (self.isMidway ? 1 : 0) | (self.floor != 0 ? 2 : 0) as UInt16)
        if self.floor != 0 { writer.write(fixed: self.floor) }
        let sealed = cipher.seal(writer.bytes, for: place.circumstances(self.kind))
        return Base64.encode([self.kind.rawValue] + sealed)
    }

    /// Reads what a client sent back. What does not open (made elsewhere, for another zone, with
    /// another key) answers like an expired one: every client then starts from the beginning.
    package init(
        _ kind: Kind, text: String, at place: FeedPlace, openedWith cipher: TokenCipher
    ) throws(InputRefusal) {
        // The first letters say the kind even where the rest was cut in the middle of a group.
        guard let head = Base64.decode(String(text.prefix(4))), head.first == kind.rawValue else {
            throw .unknownTokenType
        }
        guard let bytes = Base64.decode(text),
            Self.contentSizes.contains(bytes.count - 1 - TokenCipher.overhead)
        else { throw .invalidTokenFormat }
        guard let content = cipher.open(Bytes(bytes[1...]), for: place.circumstances(kind)) else {
            throw .unknownTokenType
        }
        guard let token = try? Self(kind, content: content) else { throw .unknownTokenType }
        self = token
    }

    private init(_ kind: Kind, content: Bytes) throws(DecodingError) {
        var reader = ByteReader(content)
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        let era = try reader.fixed64()
        let tag = try reader.fixed64()
        let bits = try reader.fixed16()
        let floor = bits & 2 != 0 ? try reader.fixed64() : 0
        try reader.finish()
        self.init(kind, era: era, tag: tag, isMidway: bits & 1 != 0, floor: floor)
    }

    private static let contentSizes = [19, 27]
}

/// The feed that a token belongs to. No token is good for another place.
package struct FeedPlace: Sendable, Hashable {
    package var container: ContainerReference
    package var scope: DatabaseScope
    /// Empty for the public database.
    package var owner: String
    /// Nil for the feed of a database.
    package var zone: String?
    /// Who reads a zone that is somebody else's; nil where that is the owner, or in public.
    package var reader: String?

    package init(
        container: ContainerReference, scope: DatabaseScope, owner: String, zone: String? = nil,
        reader: String? = nil
    ) {
        self.reader = reader
        self.container = container
        self.scope = scope
        self.owner = owner
        self.zone = zone
    }

    func circumstances(_ kind: FeedToken.Kind) -> Bytes {
        self.circumstances(kind.rawValue)
    }

    /// Whose it is and what it is for, in a form that no two places share.
    func circumstances(_ purpose: UInt8, _ more: Bytes = []) -> Bytes {
        var writer = ByteWriter(reserving: 128)
        writer.write(purpose)
        writer.write(text: self.container.container)
        writer.write(self.container.environment.rawValue)
        writer.write(self.scope.rawValue)
        writer.write(text: self.owner)
        writer.write(flag: self.zone != nil)
        writer.write(text: self.zone ?? "")
        writer.write(prefixed: more)
        if let reader = self.reader { writer.write(text: reader) }
        return writer.bytes
    }
}

/// A marker at which a query goes on: a cursor of the query engine, sealed for the very same query.
package enum ContinuationMarker {
    static let purpose: UInt8 = 0x02

    static func text(
        _ cursor: Bytes, of query: Bytes, at place: FeedPlace, sealedWith cipher: TokenCipher
    ) -> String {
        let sealed = cipher.seal(cursor, for: place.circumstances(Self.purpose, query))
        return Base64.encode([Self.purpose] + sealed)
    }

    static func cursor(
        _ text: String, of query: Bytes, at place: FeedPlace, openedWith cipher: TokenCipher
    ) throws(InputRefusal) -> Bytes {
        guard let bytes = Base64.decode(text), bytes.first == Self.purpose,
            let cursor = cipher.open(
                Bytes(bytes[1...]), for: place.circumstances(Self.purpose, query))
        else { throw .invalidMarker }
        return cursor
    }
}
