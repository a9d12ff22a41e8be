import StratusModel
import StratusSealing
import Testing

@Suite struct KeyDerivationTests {
    /// RFC 5869, appendices A.1 to A.3.
    @Test func `RFC 5869 the published derivations`() {
        let rows: [(Bytes, Bytes, Bytes, String)] = [
            (
                Bytes(repeating: 0x0B, count: 22), Bytes(0x00...0x0C), Bytes(0xF0...0xF9),
                "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"
            ),
            (
                Bytes(0x00...0x4F), Bytes(0x60...0xAF), Bytes(0xB0...0xFF),
                """
                b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e59\
                0e09da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87
                """
            ),
            (
                Bytes(repeating: 0x0B, count: 22), [], [],
                "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"
            ),
        ]
        for (key, salt, info, expected) in rows {
            let derived = KeyDerivation.hkdf(
                key, salt: salt, info: info, count: expected.utf8.count / 2)
            #expect(Vectors.digits(derived) == expected)
            let secret = KeyDerivation.derive(
                from: SecretBytes(copying: key), salt: salt, info: info,
                count: expected.utf8.count / 2)
            #expect(secret.withBytes { Bytes($0) } == derived)
        }
    }

    @Test func `every derivation that Wycheproof has is right`() throws {
        let lines = try Vectors.lines("hkdf-sha256.txt")
        #expect(lines.count >= 70)
        for line in lines where line[0] != "-" {
            let derived = KeyDerivation.hkdf(
                Vectors.bytes(line[0]), salt: Vectors.bytes(line[1]),
                info: Vectors.bytes(line[2]), count: Int(line[3])!)
            #expect(Vectors.digits(derived) == line[4])
        }
    }

    @Test func `X-29 a secret prints as nothing and gives back what it was given`() {
        var bytes = Bytes("a key that nobody may see".utf8)
        let secret = SecretBytes(taking: &bytes)
        #expect(bytes.allSatisfy { $0 == 0 }, "the caller's copy is wiped")
        #expect("\(secret)" == "<secret>" && String(reflecting: secret) == "<secret>")
        #expect(Mirror(reflecting: secret).children.isEmpty)
        #expect(secret.withBytes { Bytes($0) } == Bytes("a key that nobody may see".utf8))
        #expect(secret.isEqual(to: SecretBytes(copying: Bytes("a key that nobody may see".utf8))))
        #expect(!secret.isEqual(to: SecretBytes(copying: Bytes("a key that nobody may sea".utf8))))
        #expect(!secret.isEqual(to: SecretBytes(copying: [1])))
    }

    @Test func `more secrets than the locked pool holds are kept all the same`() {
        let count = SecretBytes.poolSize.raw / 64 + 100
        let secrets = (0..<count).map { number in
            SecretBytes(copying: withUnsafeBytes(of: number) { Bytes($0) } + Bytes(1...56))
        }
        for (number, secret) in secrets.enumerated() {
            let isSame = secret.withBytes { $0.loadUnaligned(as: Int.self) == number }
            #expect(isSame)
        }
    }
}
