import StratusGateway
import StratusIdentity
import StratusModel
import StratusSealing
import Testing

@Suite struct FeedTokenTests {
    static let cipher = TokenCipher(key: Bytes(repeating: 7, count: 32))
    static let place = FeedPlace(
        container: ContainerReference(container: "iCloud.a", environment: .development),
        scope: .private, owner: "_owner", zone: "Shelves")

    private func read(
        _ kind: FeedToken.Kind, _ text: String, at place: FeedPlace = place,
        with cipher: TokenCipher = cipher
    ) -> Result<FeedToken, InputRefusal> {
        Result { () throws(InputRefusal) in
            try FeedToken(kind, text: text, at: place, openedWith: cipher)
        }
    }

    @Test(arguments: FeedToken.Kind.allCases)
    func `a token comes back as it was`(kind: FeedToken.Kind) {
        let token = FeedToken(kind, era: .max, tag: 12)
        let text = token.text(at: Self.place, sealedWith: Self.cipher)
        #expect(self.read(kind, text) == .success(token))
        #expect(text.utf8.count == 48)
    }

    @Test func `equal positions have equal tokens and neighbours have nothing in common`() {
        let texts = [5, 5, 6].map {
            FeedToken(.zone, era: 1, tag: $0)
                .text(at: Self.place, sealedWith: Self.cipher)
        }
        #expect(texts[0] == texts[1])
        #expect(texts[0].suffix(40) != texts[2].suffix(40))
    }

    /// The token of one circumstance, read in another.
    @Test func `a token is good for one place, one kind and one key`() {
        let text = FeedToken(.zone, era: 1, tag: 2)
            .text(at: Self.place, sealedWith: Self.cipher)
        var places: [FeedPlace] = []
        for change in 0..<5 {
            var place = Self.place
            switch change {
            case 0: place.container.container = "iCloud.b"
            case 1: place.container.environment = .production
            case 2: place.scope = .shared
            case 3: place.owner = "_other"
            default: place.zone = "Loans"
            }
            places.append(place)
        }
        for place in places {
            #expect(self.read(.zone, text, at: place) == .failure(.unknownTokenType))
        }
        #expect(self.read(.database, text) == .failure(.unknownTokenType))
        #expect(self.read(.meta, text) == .failure(.unknownTokenType))
        let stranger = TokenCipher(key: Bytes(repeating: 8, count: 32))
        #expect(self.read(.zone, text, with: stranger) == .failure(.unknownTokenType))
    }

    @Test func `no change of one letter opens`() {
        let text = FeedToken(.zone, era: 1, tag: 2)
            .text(at: Self.place, sealedWith: Self.cipher)
        let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
        var refused = 0
        for position in 0..<text.count {
            for letter in letters {
                var forged = Array(text)
                if forged[position] == letter { continue }
                forged[position] = letter
                if case .failure = self.read(.zone, String(forged)) { refused += 1 }
            }
        }
        #expect(refused == text.count * (letters.count - 1))
    }

    @Test func `every cut of a token has the wrong format, once its kind can be read`() {
        let text = FeedToken(.zone, era: 1, tag: 2)
            .text(at: Self.place, sealedWith: Self.cipher)
        for length in 4..<text.count {
            #expect(
                self.read(.zone, String(text.prefix(length))) == .failure(.invalidTokenFormat),
                "\(length) letters")
        }
    }

    @Test(arguments: ["garbage", "null", "ÄÖÜ=", "====", "AAAA", "2", "\u{0}", "//////"])
    func `what was never a token is of unknown type`(text: String) {
        #expect(self.read(.zone, text) == .failure(.unknownTokenType))
    }
}

@Suite struct TokenCipherTests {
    @Test func `sealing is what it was when the first token was handed out`() {
        let cipher = TokenCipher(key: Bytes(0..<32))
        let token = FeedToken(.zone, era: 0x0102_0304_0506_0708, tag: 99)
        let place = FeedPlace(
            container: ContainerReference(container: "iCloud.golden", environment: .production),
            scope: .private, owner: "_golden", zone: "Zone")
        #expect(
            token.text(at: place, sealedWith: cipher)
                == "AQe+AVLSN4fpM0hJTN4lb7mSTE50jW+bkxvv9Hm3IkLYff2t")
    }

    @Test func `any content opens in its own circumstances only`() {
        let cipher = TokenCipher(key: Bytes(repeating: 1, count: 32))
        var random = SeededGenerator(seed: 11)
        for length in 0..<200 {
            let content = (0..<length).map { _ in UInt8.random(in: .min ... .max, using: &random) }
            let sealed = cipher.seal(content, for: [1, 2])
            #expect(cipher.open(sealed, for: [1, 2]) == content)
            #expect(cipher.open(sealed, for: [1]) == nil)
            #expect(cipher.open(Bytes(sealed.dropLast()), for: [1, 2]) == nil)
        }
    }
}
