import StratusDoubles
import StratusModel
import Testing

@testable import StratusStorage

@Suite struct MasterKeyFileTests {
    @Test func `A-13 another key under a known number is refused`() throws {
        let files = SimulatedFiles(seed: 1)
        let (one, two) = (Bytes(repeating: 1, count: 8), Bytes(repeating: 2, count: 8))
        try MasterKeyFile.check(0, is: one, in: files)
        try MasterKeyFile.check(0, is: one, in: files)
        try MasterKeyFile.check(5, is: two, in: files)
        #expect(throws: MasterKeyFile.Refusal.otherKey(version: 0)) {
            try MasterKeyFile.check(0, is: two, in: files)
        }
        try MasterKeyFile.check(0, is: one, in: files)
    }

    @Test func `A-13 a key that was used before is missed unless it is retired`() throws {
        let files = SimulatedFiles(seed: 1)
        try MasterKeyFile.require([0], retired: [], in: files)
        for version in [0, 3, 5] as [UInt32] {
            try MasterKeyFile.check(version, is: Bytes(repeating: 1, count: 8), in: files)
        }
        try MasterKeyFile.require([0, 3, 5, 9], retired: [], in: files)
        #expect(throws: MasterKeyFile.Refusal.missing(version: 3)) {
            try MasterKeyFile.require([0, 5], retired: [], in: files)
        }
        try MasterKeyFile.require([0, 5], retired: [3], in: files)
        #expect(throws: MasterKeyFile.Refusal.missing(version: 0)) {
            try MasterKeyFile.require([3, 5], retired: [], in: files)
        }
    }

    @Test
    func `a forgotten version may come back as another key, and one that is compared is not noted`()
        throws
    {
        let files = SimulatedFiles(seed: 1)
        let (one, two) = (Bytes(repeating: 1, count: 8), Bytes(repeating: 2, count: 8))
        try MasterKeyFile.compare(4, with: one, in: files)
        try MasterKeyFile.compare(4, with: two, in: files)
        try MasterKeyFile.check(4, is: one, in: files)
        try MasterKeyFile.check(6, is: one, in: files)
        #expect(throws: MasterKeyFile.Refusal.otherKey(version: 4)) {
            try MasterKeyFile.compare(4, with: two, in: files)
        }
        try MasterKeyFile.forget([4, 9], in: files)
        try MasterKeyFile.check(4, is: two, in: files)
        #expect(throws: MasterKeyFile.Refusal.otherKey(version: 6)) {
            try MasterKeyFile.compare(6, with: two, in: files)
        }
    }

    @Test func `the file of version 1 is written as ever`() throws {
        let bytes = MasterKeyFile.encode([
            7: Bytes(repeating: 2, count: 8), 0: Bytes(repeating: 1, count: 8),
        ])
        let text = bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        #expect(
            text
                == "535452415455534b01020000000001010101010101010700000002020202"
                + "0202020296aff8a2")
        #expect(try MasterKeyFile.decode(bytes).count == 2)
        for position in bytes.indices {
            var damaged = bytes
            damaged[position] ^= 4
            #expect(throws: (any Error).self) { try MasterKeyFile.decode(damaged) }
        }
    }
}
