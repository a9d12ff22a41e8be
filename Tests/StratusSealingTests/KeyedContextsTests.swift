import StratusModel
import StratusSealing
import Testing

/// Contexts that keep their key are lent from thread to thread.
@Suite struct KeyedContextsTests {
    private static let key = Bytes(repeating: 7, count: 32)

    /// Made by Python's hmac and the openssl program, from the table at ``TokenCipher``.
    @Test func `a sealed text has the bytes that the format says`() throws {
        let sealed = TokenCipher(key: Self.key).seal(
            Bytes("content".utf8), for: Bytes("place".utf8))
        #expect(
            sealed == [
                0x58, 0x74, 0x50, 0x31, 0x12, 0x9d, 0x0b, 0x4c, 0xcf, 0xb7, 0xe8, 0x90, 0x9d, 0xe8,
                0xeb, 0x0a, 0xbe, 0x25, 0x13, 0x6c, 0xb8, 0x00, 0x29,
            ])
        #expect(
            TokenCipher(key: Self.key).open(sealed, for: Bytes("place".utf8))
                == Bytes("content".utf8))
        #expect(TokenCipher(key: Self.key).open(sealed, for: Bytes("other".utf8)) == nil)
    }

    @Test func `every change of a sealed text is refused, of any length`() {
        let cipher = TokenCipher(key: Self.key)
        for length in [0, 1, 15, 16, 17, 64, 300] {
            let content = Bytes((0..<length).map { UInt8(truncatingIfNeeded: $0) })
            let sealed = cipher.seal(content, for: [1])
            #expect(sealed.count == length + TokenCipher.overhead)
            #expect(cipher.open(sealed, for: [1]) == content)
            for position in sealed.indices {
                var changed = sealed
                changed[position] ^= 0x40
                #expect(cipher.open(changed, for: [1]) == nil, "\(length), \(position)")
            }
            #expect(cipher.open(Bytes(sealed.dropLast()), for: [1]) == nil)
        }
    }

    @Test func `many at once seal and open as one does`() async {
        let cipher = TokenCipher(key: Self.key)
        let alone = (0..<64).map { cipher.seal(Bytes("text \($0)".utf8), for: [UInt8($0)]) }
        await withTaskGroup(of: Bool.self) { tasks in
            for number in 0..<64 {
                tasks.addTask {
                    for _ in 0..<50 {
                        let content = Bytes("text \(number)".utf8)
                        let sealed = cipher.seal(content, for: [UInt8(number)])
                        guard sealed == alone[number],
                            cipher.open(sealed, for: [UInt8(number)]) == content
                        else { return false }
                    }
                    return true
                }
            }
            for await isSame in tasks { #expect(isSame) }
        }
    }
}
