import StratusCoding
import StratusHTTP
import StratusModel
import StratusRecords
import StratusSealing

/// A position in the feed of a private database in buckets, as clients carry it. In place of a
/// ``FeedToken``: the same kinds, sealed in the same way for the same places.
///
/// | bytes  | what is sealed                                                      |
/// | ------ | ------------------------------------------------------------------- |
/// | 1      | version, 2                                                          |
/// | 1      | count of buckets                                                    |
/// | 1      | the bucket at which the next page begins                            |
/// | …      | for each bucket that was read from, by number: 1 number, varint     |
/// |        | turn, varint tag, bits: 1 midway, 2 a varint floor follows          |
///
/// A bucket takes 4 to 10 bytes in most tokens. Equal positions have equal tokens.
struct PartedToken: Sendable, Hashable {
    let kind: FeedToken.Kind
    let position: PartedPosition

    private static let version: UInt8 = 2
    /// Longer texts are not looked at: 64 buckets whose numbers are as long as they can be.
    private static let sizeMax = 3 + Bucket.countMax * 32

    func text(at place: FeedPlace, sealedWith cipher: TokenCipher) -> String {
        var writer = ByteWriter(reserving: 3 + 12 * self.position.parts.count)
        writer.write(Self.version)
        writer.write(UInt8(clamping: self.position.count))
        writer.write(UInt8(clamping: self.position.first))
        for part in self.position.parts {
            writer.write(UInt8(clamping: part.number))
            writer.write(varint: part.position.turn)
            writer.write(varint: part.position.tag.raw)
            let floor = part.position.floor
            writer.write((part.position.isMidway ? 1 : 0) | (floor != 0 ? 2 : 0) as UInt8)
            if floor != 0 { writer.write(varint: floor) }
        }
        let sealed = cipher.seal(writer.bytes, for: place.circumstances(self.kind))
        return Base64.encode([self.kind.rawValue] + sealed)
    }

    /// Reads what a client sent back. A token of another count, or of a whole database, answers
    /// like an expired one, and so does what does not open.
    init(
        _ kind: FeedToken.Kind, text: String, count: Int, at place: FeedPlace,
        openedWith cipher: TokenCipher
    ) throws(InputRefusal) {
        guard let head = Base64.decode(String(text.prefix(4))), head.first == kind.rawValue else {
            throw .unknownTokenType
        }
        guard let bytes = Base64.decode(text),
            (3...Self.sizeMax).contains(bytes.count - 1 - TokenCipher.overhead)
        else { throw .invalidTokenFormat }
        guard let content = cipher.open(Bytes(bytes[1...]), for: place.circumstances(kind)),
            let position = try? Self.position(content), position.count == count
        else { throw .unknownTokenType }
        self.init(kind, position)
    }

    init(_ kind: FeedToken.Kind, _ position: PartedPosition) {
        self.kind = kind
        self.position = position
    }

    private static func position(_ content: Bytes) throws(DecodingError) -> PartedPosition {
        var reader = ByteReader(content)
        let version = try reader.byte()
        guard version == Self.version else { throw DecodingError(.unknownVersion(version), at: 0) }
        let count = Int(try reader.byte())
        let first = Int(try reader.byte())
        guard Bucket.isBucket(first, of: count) else { throw DecodingError(.malformed, at: 1) }
        var position = PartedPosition(count: count, first: first)
        while reader.remaining > 0 {
            let start = reader.offset
            let number = Int(try reader.byte())
            guard number < count, number > position.parts.last?.number ?? -1 else {
                throw DecodingError(.malformed, at: start)
            }
            let turn = try reader.varint()
            let tag = ChangeTag(try reader.varint())
            let bits = try reader.byte()
            guard bits < 4 else { throw DecodingError(.malformed, at: reader.offset - 1) }
            position.parts.append(
                PartedPosition.Part(
                    number: number,
                    position: DatabasePosition(
                        turn: turn, tag: tag, isMidway: bits & 1 != 0,
                        floor: bits & 2 != 0 ? try reader.varint() : 0)))
        }
        return position
    }
}
