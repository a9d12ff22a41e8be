import StratusCoding
import StratusHTTP
import StratusModel
import StratusRecords
import StratusSealing

/// What a live stream has told of notifications, as its clients carry it: the last one of each
/// database. A client that shows it has taken all of them.
///
/// | bytes | what is sealed                                                                |
/// | ----- | ----------------------------------------------------------------------------- |
/// | 1     | version, 1                                                                    |
/// | …     | count, then for each database: 8 its name, varint number, text subscription   |
/// | …     | flag: 8 name of a database, text subscription that fires once and has fired   |
struct TakenNews: Sendable, Equatable {
    struct Spent: Sendable, Equatable {
        var database: UInt64
        var subscription: String
    }

    /// By the names that nodes have for databases.
    var positions: [UInt64: NewsPosition] = [:]
    /// The last one told was of a subscription that fires once. It is deleted when the client
    /// shows this.
    var spent: Spent?

    static let purpose: UInt8 = 0x23
    /// Parts of a private database and of the public one.
    private static let countMax = 2 * Bucket.countMax + 1

    func text(at place: FeedPlace, of token: Bytes, sealedWith cipher: TokenCipher) -> String {
        var writer = ByteWriter()
        writer.write(1 as UInt8)
        writer.write(count: self.positions.count)
        for (name, position) in self.positions.sorted(by: { $0.key < $1.key }) {
            writer.write(fixed: name)
            writer.write(varint: position.number)
            writer.write(text: position.subscription)
        }
        writer.write(flag: self.spent != nil)
        if let spent {
            writer.write(fixed: spent.database)
            writer.write(text: spent.subscription)
        }
        return Base64.encode(
            cipher.seal(writer.bytes, for: place.circumstances(Self.purpose, token)))
    }

    init() {}

    /// - Parameter token: the poll token that the notifications are of.
    init(
        text: String, at place: FeedPlace, of token: Bytes, openedWith cipher: TokenCipher
    ) throws(InputRefusal) {
        guard let sealed = Base64.decode(text),
            let content = cipher.open(
                Bytes(sealed), for: place.circumstances(Self.purpose, token)),
            let taken = try? Self(content)
        else { throw .unknownTokenType }
        self = taken
    }

    private init(_ content: Bytes) throws(DecodingError) {
        var reader = ByteReader(content)
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        for _ in 0..<min(try reader.count(minimumSize: 10), Self.countMax) {
            let name = try reader.fixed64()
            self.positions[name] = NewsPosition(
                number: try reader.varint(), subscription: try reader.text())
        }
        if try reader.flag() {
            self.spent = Spent(
                database: try reader.fixed64(), subscription: try reader.text())
        }
        try reader.finish()
    }
}
