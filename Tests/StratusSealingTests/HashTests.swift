import StratusModel
import StratusSealing
import Testing

@Suite struct HashTests {
    /// FIPS 180-4's examples, and the empty text.
    static let published: [(RunningHash.Function, String, String)] = [
        (.sha1, "", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
        (.sha1, "abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
        (
            .sha1, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1"
        ),
        (.sha256, "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        (.sha256, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            .sha256, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
        ),
    ]

    @Test func `a running hash agrees with the published values`() {
        for (function, text, expected) in Self.published {
            let hash = RunningHash(function)
            hash.update(Bytes(text.utf8))
            #expect(Vectors.digits(hash.finish()) == expected, "\(function) of '\(text)'")
        }
    }

    @Test(arguments: 0..<40 as Range<UInt64>)
    func `pieces of any size give the hash of the whole`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let whole = (0..<Int.random(in: 0...5_000, using: &random)).map { _ in
            UInt8.random(in: .min ... .max, using: &random)
        }
        for function in RunningHash.Function.allCases {
            let one = RunningHash(function)
            one.update(whole)
            let other = RunningHash(function)
            var rest = whole[...]
            while !rest.isEmpty {
                let piece = rest.prefix(Int.random(in: 1...700, using: &random))
                if Bool.random(using: &random) {
                    other.update(Bytes(piece))
                } else {
                    other.update(Bytes(piece).span.bytes)
                }
                rest = rest.dropFirst(piece.count)
            }
            #expect(one.finish() == other.finish(), "\(function), seed \(seed)")
        }
        let running = RunningHash(.sha256)
        running.update(whole)
        #expect(running.finish() == SHA256.hash(whole), "seed \(seed)")
    }

    @Test func `RFC 4231 HMAC-SHA-256 agrees with the published values`() {
        let rows: [(Bytes, String, String)] = [
            (
                Bytes(repeating: 0x0B, count: 20), "Hi There",
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
            ),
            (
                Bytes("Jefe".utf8), "what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
            ),
        ]
        for (key, text, expected) in rows {
            let bytes = Bytes(text.utf8)
            #expect(Vectors.digits(KeyedHash.hmac(key: key, parts: [bytes])) == expected)
            let parts = [Bytes(bytes.prefix(3)), [], Bytes(bytes.dropFirst(3))]
            #expect(Vectors.digits(KeyedHash.hmac(key: key, parts: parts)) == expected)
        }
    }

    /// The expected value comes from another implementation (Python's cryptography).
    @Test func `argon2id hashes as another implementation does, and wipes the password`() {
        var password = Bytes("password".utf8)
        let hash = PasswordHash(
            hashing: &password, salt: Bytes("somesaltsomesalt".utf8), memoryKibibytes: 64,
            passes: 2)
        #expect(
            Vectors.digits(hash.hash)
                == "1a98fba8e6394425c9bdc333a9c750aaf811df070f5fb4a5788e1cf4db5793a1")
        #expect(password.allSatisfy { $0 == 0 })
        for (text, isRight) in [("password", true), ("Password", false), ("", false)] {
            var tried = Bytes(text.utf8)
            #expect(
                PasswordHash.verify(&tried, against: hash, memoryKibibytes: 64, passes: 2)
                    == isRight, "\(text)")
        }
        var tried = Bytes("password".utf8)
        #expect(!PasswordHash.verify(&tried, against: nil, memoryKibibytes: 64, passes: 2))
    }
}
