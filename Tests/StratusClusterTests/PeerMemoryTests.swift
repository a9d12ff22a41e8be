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
        let peers = [
            "b": PeerMemory.Peer(
                data: Self.one, start: NodeStart(number: 3, incarnation: NodeIncarnation(4))),
            "c": PeerMemory.Peer(data: Self.two),
        ]
        let whole = PeerMemory.encode(peers)
        #expect(try PeerMemory.decode(whole) == peers)
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
        expected += [2, 2] as Bytes
        expected += [1, 0x62, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0] as Bytes
        expected += [7, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0] as Bytes
        expected += [1, 0x63, 1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0] as Bytes
        expected += Bytes(repeating: 0, count: 16)
        let written = PeerMemory.encode([
            "c": .init(data: Self.two),
            "b": .init(
                data: Self.one, start: NodeStart(number: 7, incarnation: NodeIncarnation(9))),
        ])
        #expect(Bytes(written.dropLast(4)) == expected)
    }

    @Test func `a file without starts is read, and takes the next that is heard`() throws {
        let world = SimulatedWorld(seed: 4)
        var old = Bytes("STRATUSM".utf8)
        old += [1, 1] as Bytes
        old += [1, 0x62, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0] as Bytes
        var crc = ByteWriter()
        crc.write(fixed: CRC32C.of(old))
        try world.files.replace(PeerMemory.path, with: old + crc.bytes)
        var memory = try PeerMemory(in: world)
        #expect(memory.meet("b", Self.two) == .other(known: Self.one, said: Self.two))
        #expect(memory.start(of: "b") == nil)
        let starts = NodeStarts(first: NodeIncarnation(5))
        #expect(memory.hear("b", starts) == .known)
        world.simulatedFiles.restart(after: .powerLossLosingAll)
        memory = try PeerMemory(in: world)
        #expect(memory.start(of: "b") == starts.latest)
        #expect(
            memory.hear("b", NodeStarts(first: NodeIncarnation(6)))
                == .older(
                    heard: starts.latest,
                    said: NodeStart(number: 1, incarnation: NodeIncarnation(6))))
    }

    @Test func `a start that the disk does not take counts at once, and is noted with the next`()
        throws
    {
        let world = SimulatedWorld(seed: 5)
        var memory = try PeerMemory(in: world)
        #expect(memory.meet("b", Self.one) == .known && memory.meet("c", Self.two) == .known)
        var starts = NodeStarts(first: NodeIncarnation(5))
        #expect(memory.hear("b", starts) == .known)
        let copy = starts
        starts.add(NodeIncarnation(6))
        world.simulatedFiles.setCapacity(ByteCount(0))
        #expect(memory.hear("b", starts) == .known)
        #expect(memory.hear("b", copy) == .older(heard: starts.latest, said: copy.latest))
        world.simulatedFiles.setCapacity(nil)
        #expect(memory.hear("c", NodeStarts(first: NodeIncarnation(1))) == .known)
        world.simulatedFiles.restart(after: .powerLossLosingAll)
        memory = try PeerMemory(in: world)
        #expect(memory.start(of: "b") == starts.latest)
    }
}
