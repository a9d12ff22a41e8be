import Foundation
import StratusCoding
import StratusModel
import Testing

/// Every format still reads and writes as it did. Once a release has written one, its file in
/// `Golden/` is never edited, and a new version adds another. With `STRATUS_GOLDEN=write` the files
/// are written anew.
@Suite struct GoldenTests {
    static let command = Command(
        kind: .records, identity: RequestIdentity(high: 0x0123_4567_89AB_CDEF, low: 42),
        deadlineMilliseconds: 1_700_000_030_000,
        container: ContainerReference(
            container: "iCloud.org.example.Library", environment: .production),
        schemaVersion: 7,
        principal: Principal(
            kind: .user, userRecordName: "_9c1f0e7a2b3d4c5e6f708192a3b4c5d6", roles: ["editors"]),
        body: [1, 2, 3, 0xFF])

    static let entry = Entry(
        index: LogIndex(300), term: Term(5),
        time: HybridTime(milliseconds: 1_700_000_000_000, count: 9), kind: .command,
        payload: Self.command.encoded())

    /// - Parameter now: what is written today. It becomes the file where that is asked for.
    static func golden(_ name: String, now: Bytes? = nil) throws -> Bytes {
        let url = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "Golden/\(name).hex")
        if let now, ProcessInfo.processInfo.environment["STRATUS_GOLDEN"] == "write" {
            try Data((Self.hexadecimal(now) + "\n").utf8).write(to: url)
        }
        let digits = try String(contentsOf: url, encoding: .utf8).filter(\.isHexDigit)
        return stride(from: 0, to: digits.count, by: 2).map { offset in
            let start = digits.index(digits.startIndex, offsetBy: offset)
            return UInt8(digits[start...].prefix(2), radix: 16)!
        }
    }

    /// What is written of each, each behind its length: the content of one file.
    static func joined(_ all: [Bytes]) -> Bytes {
        var writer = ByteWriter()
        for bytes in all { writer.write(prefixed: bytes) }
        return writer.bytes
    }

    static func hexadecimal(_ bytes: Bytes) -> String {
        bytes.map { String(Int($0) + 0x100, radix: 16).suffix(2) }.joined()
    }

    @Test func `a command of version 1 reads and writes as ever`() throws {
        let bytes = try Self.golden("command-1", now: Self.command.encoded())
        #expect(try Command(decoding: bytes) == Self.command)
        #expect(Self.hexadecimal(Self.command.encoded()) == Self.hexadecimal(bytes))
    }

    @Test func `an entry of version 1 reads and writes as ever`() throws {
        let bytes = try Self.golden("entry-1", now: Self.entry.encoded(in: GroupID(12)))
        let (group, entry) = try Entry.decode(bytes)
        #expect(group == GroupID(12))
        #expect(entry == Self.entry)
        #expect(Self.hexadecimal(Self.entry.encoded(in: GroupID(12))) == Self.hexadecimal(bytes))
    }

    @Test func `a shard key hashes the same bytes for ever`() throws {
        let container = ContainerReference(container: "iCloud.a", environment: .development)
        let database = DatabaseID(container: container, scope: .private, owner: "_u")
        let rows: [(ShardKey, String)] = [
            (.database(database), "010869436c6f75642e610001025f750000"),
            (.database(database, zone: "Z"), "010869436c6f75642e610001025f7501015a00"),
            (.database(database, bucket: 513), "010869436c6f75642e610001025f7500010102"),
            (.container(container), "020869436c6f75642e6100"),
            (.account("a@b"), "0303614062"),
        ]
        for (key, expected) in rows { #expect(Self.hexadecimal(key.encoded()) == expected) }
    }

    @Test func `a flipped bit never reads as the same entry`() throws {
        let bytes = Self.entry.encoded(in: GroupID(12))
        for position in 0..<bytes.count * 8 {
            var damaged = bytes
            damaged[position / 8] ^= 1 << (position % 8)
            // Header bits may decode to another entry; the frame around an entry has its own CRC.
            // What must never happen is the same entry from other bytes, or a trap.
            if let (group, entry) = try? Entry.decode(damaged) {
                #expect(group != GroupID(12) || entry != Self.entry, "bit \(position)")
            }
        }
    }

    @Test(arguments: 0..<500 as Range<UInt64>)
    func `X-22 random bytes never trap a decoder`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var bytes = Self.command.encoded()
        for _ in 0..<Int.random(in: 1...8, using: &random) {
            bytes[Int.random(in: 0..<bytes.count, using: &random)] = .random(
                in: 0...255, using: &random)
        }
        _ = try? Command(decoding: bytes)
        _ = try? Entry.decode(bytes)
        _ = try? Command(
            decoding: Bytes(bytes.prefix(Int.random(in: 0..<bytes.count, using: &random))))
    }
}
