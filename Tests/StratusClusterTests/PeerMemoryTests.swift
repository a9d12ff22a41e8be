import StratusCluster
import StratusCoding
import StratusModel
import StratusRuntime
import StratusSimulation
import StratusStorage
import Testing

/// Whom a node met, and with which data.
@Suite struct PeerMemoryTests {
    static let one = RequestIdentity(high: 1, low: 2)
    static let two = RequestIdentity(high: 1, low: 3)

    @Test func `the first identity stays, over restarts and power failures`() throws {
        let world = SimulatedWorld(seed: 1)
        var memory = try PeerMemory(in: world)
        #expect(memory.meet("b", Self.one) == .known)
        #expect(memory.meet("b", Self.one) == .known)
        #expect(memory.meet("b", Self.two) == .other(known: Self.one, said: Self.two))
        #expect(memory.meet("c", Self.two) == .known)
        world.simulatedFiles.restart(after: .powerLossLosingAll)
        memory = try PeerMemory(in: world)
        #expect(memory.meet("b", Self.two) == .other(known: Self.one, said: Self.two))
        #expect(memory.meet("b", Self.one) == .known)
        #expect(memory.meet("c", Self.one) == .other(known: Self.two, said: Self.one))
    }

    @Test func `who cannot be noted on disk is not known`() throws {
        let world = SimulatedWorld(seed: 3)
        let memory = try PeerMemory(in: world)
        world.simulatedFiles.setCapacity(ByteCount(0))
        guard case .notKept = memory.meet("b", Self.one) else {
            Issue.record("known, and nowhere on disk")
            return
        }
        world.simulatedFiles.setCapacity(nil)
        #expect(memory.meet("b", Self.two) == .known)
    }

    @Test func `a damaged file is refused by name, whichever bit it is`() throws {
        let world = SimulatedWorld(seed: 2)
        let whole = PeerMemory.encode(["b": Self.one])
        #expect(try PeerMemory.decode(whole) == ["b": Self.one])
        for position in 0..<whole.count * 8 {
            var damaged = whole
            damaged[position / 8] ^= 1 << (position % 8)
            #expect(throws: DecodingError.self) { try PeerMemory.decode(damaged) }
        }
        for count in 0..<whole.count {
            #expect(throws: DecodingError.self) { try PeerMemory.decode(Bytes(whole[..<count])) }
        }
        try world.files.replace(PeerMemory.path, with: Bytes(whole.dropLast()))
        let refusal = #expect(throws: PeerMemory.Refusal.self) { try PeerMemory(in: world) }
        #expect(refusal?.description.contains("PEERS") == true)
    }

    @Test func `the file reads and writes as ever`() {
        var expected = Bytes("STRATUSM".utf8)
        expected += [1, 2] as Bytes
        expected += [1, 0x62, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0] as Bytes
        expected += [1, 0x63, 1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0] as Bytes
        let written = PeerMemory.encode(["c": Self.two, "b": Self.one])
        #expect(Bytes(written.dropLast(4)) == expected)
    }
}
