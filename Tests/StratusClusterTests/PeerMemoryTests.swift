import StratusCluster
import StratusCoding
import StratusDoubles
import StratusModel
import StratusRuntime
import StratusStorage
import Testing

/// A node remembers the peers it met, and their data.
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

    private static let heard = [
        "b": PeerMemory.Peer(
            data: Self.one, start: NodeStart(number: 7, incarnation: NodeIncarnation(9))),
        "c": PeerMemory.Peer(data: Self.two),
    ]

    @Test(arguments: [PeerMemory.path, PeerMemory.heardPath])
    func `a damaged file is refused by name, whichever bit it is`(path: DiskPath) throws {
        let world = SimulatedWorld(seed: 2)
        let isHeard = path == PeerMemory.heardPath
        let whole =
            isHeard ? PeerMemory.encodeHeard(Self.heard) : PeerMemory.encode(Self.heard)
        func decode(_ bytes: Bytes) throws(DecodingError) -> [String: PeerMemory.Peer] {
            isHeard ? try PeerMemory.decodeHeard(bytes) : try PeerMemory.decode(bytes)
        }
        #expect(
            try decode(whole)
                == (isHeard
                    ? ["b": try #require(Self.heard["b"])]
                    : ["b": .init(data: Self.one), "c": .init(data: Self.two)]))
        for position in 0..<whole.count * 8 {
            var damaged = whole
            damaged[position / 8] ^= 1 << (position % 8)
            #expect(throws: DecodingError.self) { try decode(damaged) }
        }
        for count in 0..<whole.count {
            #expect(throws: DecodingError.self) { try decode(Bytes(whole[..<count])) }
        }
        try world.files.replace(path, with: Bytes(whole.dropLast()))
        let refusal = #expect(throws: PeerMemory.Refusal.self) { try PeerMemory(in: world) }
        #expect(refusal?.description.contains("\(path)") == true)
    }

    @Test func `the files read and write as ever`() {
        let b = [1, 0x62, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0] as Bytes
        let c = [1, 0x63, 1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0] as Bytes
        #expect(
            Bytes(PeerMemory.encode(Self.heard).dropLast(4))
                == Bytes("STRATUSM".utf8) + [1, 2] + b + c)
        #expect(
            Bytes(PeerMemory.encodeHeard(Self.heard).dropLast(4))
                == Bytes("STRATUSH".utf8) + [1, 1] + b
                + [7, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0])
    }

    @Test func `a directory of before there were starts takes the next that is heard`() throws {
        let world = SimulatedWorld(seed: 4)
        try world.files.replace(
            PeerMemory.path, with: PeerMemory.encode(["b": .init(data: Self.one)]))
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

    /// A build that does not know of starts writes the one file and leaves the other.
    @Test func `what was heard counts only of the data that is known`() throws {
        let world = SimulatedWorld(seed: 6)
        var memory = try PeerMemory(in: world)
        #expect(memory.meet("b", Self.one) == .known && memory.meet("c", Self.one) == .known)
        let starts = NodeStarts(first: NodeIncarnation(5))
        #expect(memory.hear("b", starts) == .known && memory.hear("c", starts) == .known)
        try world.files.replace(
            PeerMemory.path,
            with: PeerMemory.encode(["b": .init(data: Self.two), "c": .init(data: Self.one)]))
        memory = try PeerMemory(in: world)
        #expect(memory.start(of: "b") == nil)
        #expect(memory.start(of: "c") == starts.latest)
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
