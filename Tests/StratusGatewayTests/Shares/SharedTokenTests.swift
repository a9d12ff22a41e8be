import StratusHTTP
import StratusModel
import StratusRecords
import StratusRuntime
import StratusSealing
import Testing

@testable import StratusGateway

@Suite struct SharedTokenTests {
    private static let cipher = TokenCipher(key: Bytes(repeating: 7, count: 32))
    private static let place = FeedPlace(
        container: ContainerReference(container: "iCloud.a", environment: .development),
        scope: .shared, owner: "_reader", reader: "_reader")

    private static func token(zones: Int) -> SharedToken {
        var token = SharedToken(.database)
        for number in 0..<zones {
            let digits = String(number, radix: 16)
            let owner = "_" + String(repeating: "0", count: 32 - digits.count) + digits
            token[ZoneID(name: "Shelves", owner: owner)] = SharedToken.Place(
                position: FeedPosition(
                    incarnation: ZoneIncarnation(UInt64(number) << 50),
                    tag: ChangeTag(UInt64(number))),
                turn: UInt64(number) << 9)
        }
        return token
    }

    private static func read(
        _ text: String, _ kind: FeedToken.Kind = .database, at place: FeedPlace = place
    ) throws -> SharedToken {
        try SharedToken(kind, text: text, at: place, openedWith: Self.cipher)
    }

    @Test(arguments: [0, 1, 2, 60])
    func `a token comes back as it was`(zones: Int) throws {
        let token = Self.token(zones: zones)
        let text = token.text(at: Self.place, sealedWith: Self.cipher)
        #expect(try Self.read(text) == token)
        #expect(token.text(at: Self.place, sealedWith: Self.cipher) == text)
    }

    @Test func `a token is good for one reader, one kind and one database`() throws {
        let text = Self.token(zones: 3).text(at: Self.place, sealedWith: Self.cipher)
        #expect(throws: InputRefusal.unknownTokenType) { try Self.read(text, .meta) }
        for change in [
            { (place: inout FeedPlace) in place.reader = "_other" },
            { (place: inout FeedPlace) in place.owner = "_other" },
            { (place: inout FeedPlace) in place.scope = .private },
            { (place: inout FeedPlace) in place.container.container = "iCloud.b" },
        ] {
            var place = Self.place
            change(&place)
            #expect(throws: InputRefusal.unknownTokenType) { try Self.read(text, at: place) }
        }
        // That of a whole private database is none, and this one is none of those.
        #expect(throws: InputRefusal.self) {
            try FeedToken(.database, text: text, at: Self.place, openedWith: Self.cipher)
        }
    }

    @Test func `what was cut or altered is refused`() throws {
        let text = Self.token(zones: 2).text(at: Self.place, sealedWith: Self.cipher)
        for length in stride(from: 0, to: text.utf8.count, by: 4) {
            #expect(throws: InputRefusal.self) { try Self.read(String(text.prefix(length))) }
        }
        let bytes = try #require(Base64.decode(text))
        for place in bytes.indices {
            var altered = bytes
            altered[place] ^= 1
            #expect(throws: InputRefusal.self) { try Self.read(Base64.encode(altered)) }
        }
    }

    @Test func `what has no room is left out, and the rest is read`() throws {
        let many = Self.token(zones: 1_000)
        let text = many.text(at: Self.place, sealedWith: Self.cipher)
        #expect(text.utf8.count < 2 * SharedToken.sizeMax)
        let read = try Self.read(text)
        #expect(read.zones.count > 150 && read.zones.count < 1_000)
        for (zone, place) in read.zones { #expect(many[zone] == place) }
        #expect(!many.hasRoom && read.hasRoom)
    }
}
