import StratusModel
import StratusSealing
import Testing

@testable import StratusPush

@Suite struct TokenTests {
    /// Verifies an ES256 token with OpenSSL, whose own signatures have another form.
    static func verifies(_ token: String, point: Bytes) -> Bool {
        let parts = token.split(separator: ".")
        guard parts.count == 3, let raw = Base64URL.decode(String(parts[2])), raw.count == 64,
            let key = ServerPublicKey(
                der: [
                    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01,
                    0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
                ] + point)
        else { return false }
        func integer(_ number: ArraySlice<UInt8>) -> Bytes {
            var digits = Bytes(number.drop { $0 == 0 })
            if digits.first.map({ $0 >= 0x80 }) ?? true { digits.insert(0, at: 0) }
            return [0x02, UInt8(digits.count)] + digits
        }
        let body = integer(raw[..<32]) + integer(raw[32...])
        return key.verifies(
            [0x30, UInt8(body.count)] + body,
            digest: SHA256.hash(Bytes("\(parts[0]).\(parts[1])".utf8)))
    }

    @Test func `P-05: a provider token says team, key and time, and is signed`() throws {
        let key = SigningKey.make()
        let token = ProviderToken(
            team: "DEF123GHIJ", key: "ABC123DEFG", signing: key, at: 1_709_630_200)
        let parts = token.text.split(separator: ".").map { Base64URL.decode(String($0)) ?? [] }
        #expect(parts[0] == Bytes(#"{"alg":"ES256","kid":"ABC123DEFG"}"#.utf8))
        #expect(parts[1] == Bytes(#"{"iss":"DEF123GHIJ","iat":1709630200}"#.utf8))
        // The first part is Apple's own example.
        #expect(token.text.hasPrefix("eyJhbGciOiJFUzI1NiIsImtpZCI6IkFCQzEyM0RFRkcifQ."))
        for _ in 0..<50 {
            let again = ProviderToken(team: "A", key: "B", signing: key, at: 1)
            #expect(Self.verifies(again.text, point: key.publicPoint))
        }
        #expect(!Self.verifies(token.text, point: SigningKey.make().publicPoint))
    }

    @Test func `P-05: a token is renewed at forty minutes, and replaced no sooner than at twenty`()
    {
        let token = ProviderToken(text: "t", issuedAt: 10_000)
        #expect(!token.isDue(at: 10_000 + 2_399) && token.isDue(at: 10_000 + 2_400))
        #expect(token.isDue(at: 9_000) && !token.isDue(at: 9_950))
        #expect(!token.mayBeReplaced(at: 11_199) && token.mayBeReplaced(at: 11_200))
    }

    @Test func `a key is read from PKCS 8 and written as it; others are refused`() throws {
        let key = SigningKey.make()
        let again = try #require(SigningKey(pem: key.pem))
        #expect(again.publicPoint == key.publicPoint && again.publicPoint.count == 65)
        #expect(String(decoding: key.pem, as: UTF8.self).hasPrefix("-----BEGIN PRIVATE KEY-----"))
        #expect(SigningKey(pem: Bytes("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END".utf8)) == nil)
        #expect(SigningKey(pem: []) == nil)
        #expect("\(key)" == "<private key>")
    }

    /// RFC 8292 §2.4: the token's text and its signature, and our text for the same claims.
    @Test func `P-12: the example of VAPID`() throws {
        let published =
            "eyJ0eXAiOiJKV1QiLCJhbGciOiJFUzI1NiJ9.eyJhdWQiOiJodHRwczovL3B1c2guZXhhbXBsZS5uZXQiLCJleHAiOjE0NTM1MjM3NjgsInN1YiI6Im1haWx0bzpwdXNoQGV4YW1wbGUuY29tIn0.i3CYb7t4xfxCDquptFOepC9GAu_HLGkMlMuCGSK2rpiUfnK9ojFwDXb1JrErtmysazNjjvW2L9OkSSHzvoD1oA"
        let point = try #require(
            Base64URL.decode(
                "BA1Hxzyi1RUM1b5wjxsn7nGxAszw2u61m164i3MrAIxHF6YK5h4SDYic-dRuU_RCPCfA5aq9ojSwk5Y2EmClBPs"
            ))
        #expect(Self.verifies(published, point: point))
        let key = SigningKey.make()
        let token = VAPIDToken(
            origin: "https://push.example.net", contact: "mailto:push@example.com", signing: key,
            at: 1_453_523_768 - VAPIDToken.life)
        #expect(
            token.text.split(separator: ".").dropLast()
                == published.split(separator: ".").dropLast())
        #expect(Self.verifies(token.text, point: key.publicPoint))
        #expect(token.header == "vapid t=\(token.text), k=\(Base64URL.encode(key.publicPoint))")
    }

    @Test func `P-12: a VAPID token lives no longer than a day and is renewed in time`() {
        let token = VAPIDToken(
            origin: "https://a", contact: "mailto:a", signing: SigningKey.make(), at: 0)
        #expect(token.expiration <= 86_400)
        #expect(!token.isDue(at: 0) && token.isDue(at: token.expiration - 3_600))
        #expect(token.isDue(at: -7_200))
    }

    @Test func `text in a token cannot end its string`() {
        #expect(SignedToken.quoted("a\"b\\c\u{1}") == "\"a\\\"b\\\\c\\u0001\"")
    }
}
