import StratusModel
import StratusSealing
import Testing

@testable import StratusPush

@Suite struct WebPushMessageTests {
    private static func bytes(_ text: String) throws -> Bytes {
        try #require(Base64URL.decode(text))
    }

    /// RFC 8291 §5 and Appendix A, byte for byte.
    @Test func `P-12: the example of RFC 8291`() throws {
        let ephemeral = try #require(
            SigningKey(
                scalar: try Self.bytes("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"),
                point: try Self.bytes(
                    "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8"
                )))
        let body = try WebPushMessage.encrypt(
            Bytes("When I grow up, I want to be a watermelon".utf8),
            publicKey: try Self.bytes(
                "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
            ), secret: try Self.bytes("BTBZMqHH6r4Tts7J_aSIgg"), ephemeral: ephemeral,
            salt: try Self.bytes("DGv6ra1nlYgDCS1FRnbzlw"))
        #expect(
            Base64URL.encode(body)
                == "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
        )
    }

    /// Another pair of keys, computed by another program.
    @Test func `P-12: a second vector`() throws {
        let ephemeral = try #require(
            SigningKey(
                scalar: SHA256.hash(Bytes("as".utf8)),
                point: try Self.bytes(
                    "BL-ON82DLidiLhuWEDKE75DpcUsjucj-9Plvf8EDFHJ-W7_dRz1foq-rWtgmv_c6mlbtYxkcNydu-5fmccQyIsU"
                )))
        let body = try WebPushMessage.encrypt(
            Bytes(#"{"ck":{"nid":"n-1"}}"#.utf8),
            publicKey: try Self.bytes(
                "BAVLS_kBA4l6vKvFtMOlKNErrHhKspkLt8mSaTxxVw4c7izc4GVR3GmIjklKHk-H_zc5NYHSVDJZUP4DNq3F1Sw"
            ), secret: Bytes(SHA256.hash(Bytes("auth".utf8)).prefix(16)), ephemeral: ephemeral,
            salt: Bytes(SHA256.hash(Bytes("salt".utf8)).prefix(16)))
        #expect(
            Base64URL.encode(body)
                == "Y0ea1poJCyWCd-yPum-ZQQAAEABBBL-ON82DLidiLhuWEDKE75DpcUsjucj-9Plvf8EDFHJ-W7_dRz1foq-rWtgmv_c6mlbtYxkcNydu-5fmccQyIsVcWvvYwZUUF1kFAIHOWwij96gAEq1rjWRDO6XjPtyb9pNF_6C8"
        )
    }

    @Test func `what no browser gave is refused, and the largest message fits`() throws {
        let browser = SigningKey.make().publicPoint
        let secret = Bytes(repeating: 1, count: 16)
        func encrypt(_ plain: Bytes, _ key: Bytes, _ secret: Bytes) -> WebPushMessage.Problem? {
            do throws(WebPushMessage.Problem) {
                let body = try WebPushMessage.encrypt(
                    plain, publicKey: key, secret: secret, ephemeral: SigningKey.make(),
                    salt: Bytes(repeating: 2, count: 16))
                #expect(body.count <= 4_096)
                return nil
            } catch { return error }
        }
        #expect(encrypt(Bytes(repeating: 3, count: 3_993), browser, secret) == nil)
        #expect(encrypt(Bytes(repeating: 3, count: 3_994), browser, secret) == .tooLarge)
        #expect(encrypt([], browser, secret) == nil)
        #expect(encrypt([], browser, [1]) == .secret)
        #expect(encrypt([], [], secret) == .publicKey)
        var off = browser
        off[64] ^= 1
        #expect(encrypt([], off, secret) == .publicKey)
        #expect(encrypt([], Bytes(repeating: 0, count: 65), secret) == .publicKey)
        #expect(encrypt([], [2] + browser[1..<33], secret) == .publicKey)
    }

    @Test func `base64url both ways`() {
        #expect(Base64URL.encode([0xFB, 0xFF]) == "-_8")
        #expect(
            Base64URL.decode("-_8") == [0xFB, 0xFF] && Base64URL.decode("-_8=") == [0xFB, 0xFF])
        #expect(Base64URL.decode("+/8") == nil && Base64URL.decode("a b") == nil)
    }
}
