import StratusCoding
import StratusHTTP
import StratusModel
import StratusRecords
import StratusSealing

/// What a client has seen of the shared database: where each zone stood. In place of a
/// ``FeedToken``: the same kinds, sealed in the same way for the same places.
///
/// | bytes  | what is sealed                                                      |
/// | ------ | ------------------------------------------------------------------- |
/// | 1      | version, 3                                                          |
/// | …      | for each zone, in their order: text owner, text zone, 8 incarnation, |
/// |        | varint tag, varint turn                                             |
///
/// A zone is given about 75 bytes, so about 150 zones have room; where names are long, fewer. What
/// has none is told of again and again, and never that it is gone. Equal states have equal tokens.
struct SharedToken: Sendable, Hashable {
    private static let version: UInt8 = 3
    /// Bytes that are sealed.
    static let sizeMax = 12 << 10

    /// Where a zone stood, and the turn of the caller's list in which the caller came to it.
    struct Place: Sendable, Hashable {
        var position: FeedPosition
        var turn: UInt64
    }

    var kind: FeedToken.Kind
    private(set) var zones: [ZoneID: Place] = [:]

    /// Whether a client can be given all of it to keep.
    var hasRoom: Bool {
        self.zones.keys.reduce(1) { $0 + Self.size(of: $1) } <= Self.sizeMax
    }

    /// At most so many bytes say where a zone stands.
    private static func size(of zone: ZoneID) -> Int {
        zone.owner.utf8.count + zone.name.utf8.count + 34
    }

    init(_ kind: FeedToken.Kind) { self.kind = kind }

    /// Zones in the order in which a token has them.
    static func precedes(_ one: ZoneID, _ other: ZoneID) -> Bool {
        if one.owner == other.owner {
            return one.name.utf8.lexicographicallyPrecedes(other.name.utf8)
        }
        return one.owner.utf8.lexicographicallyPrecedes(other.owner.utf8)
    }

    subscript(zone: ZoneID) -> Place? {
        get { self.zones[zone] }
        set { self.zones[zone] = newValue }
    }

    func text(at place: FeedPlace, sealedWith cipher: TokenCipher) -> String {
        var writer = ByteWriter(reserving: 64)
        writer.write(Self.version)
        var size = 1
        for (zone, place) in self.zones.sorted(by: { Self.precedes($0.key, $1.key) }) {
            size += Self.size(of: zone)
            guard size <= Self.sizeMax else { break }
            writer.write(text: zone.owner)
            writer.write(text: zone.name)
            writer.write(fixed: place.position.incarnation.raw)
            writer.write(varint: place.position.tag.raw)
            writer.write(varint: place.turn)
        }
        let sealed = cipher.seal(writer.bytes, for: place.circumstances(self.kind))
        return Base64.encode([self.kind.rawValue] + sealed)
    }

    /// Reads what a client sent back. What does not open answers like an expired one.
    init(
        _ kind: FeedToken.Kind, text: String, at place: FeedPlace, openedWith cipher: TokenCipher
    ) throws(InputRefusal) {
        guard let head = Base64.decode(String(text.prefix(4))), head.first == kind.rawValue else {
            throw .unknownTokenType
        }
        guard let bytes = Base64.decode(text),
            (1...Self.sizeMax).contains(bytes.count - 1 - TokenCipher.overhead)
        else { throw .invalidTokenFormat }
        guard let content = cipher.open(Bytes(bytes[1...]), for: place.circumstances(kind)),
            let zones = try? Self.zones(content)
        else { throw .unknownTokenType }
        self.init(kind)
        self.zones = zones
    }

    private static func zones(_ content: Bytes) throws(DecodingError) -> [ZoneID: Place] {
        var reader = ByteReader(content)
        let version = try reader.byte()
        guard version == Self.version else { throw DecodingError(.unknownVersion(version), at: 0) }
        var zones: [ZoneID: Place] = [:]
        while reader.remaining > 0 {
            let owner = try reader.text()
            let zone = ZoneID(name: try reader.text(), owner: owner)
            let position = FeedPosition(
                incarnation: ZoneIncarnation(try reader.fixed64()),
                tag: ChangeTag(try reader.varint()))
            zones[zone] = Place(position: position, turn: try reader.varint())
        }
        return zones
    }
}
