import StratusCluster
import StratusCoding
import StratusDoubles
import StratusModel
import StratusStorage
import Testing

/// Which starts a data directory has seen, and how a peer tells an older copy of it by them.
@Suite struct NodeStartsTests {
    private static let name = "node-2"
    private static let data = RequestIdentity(high: 2, low: 1)

    private static func starts(_ incarnations: UInt64...) -> NodeStarts {
        var starts = NodeStarts(first: NodeIncarnation(incarnations[0]))
        for raw in incarnations.dropFirst() { starts.add(NodeIncarnation(raw)) }
        return starts
    }

    @Test
    func `S-17 a directory lacks the starts since a copy of it was taken, and never gets them`() {
        let copy = Self.starts(11, 12)
        let heard = Self.starts(11, 12, 13).latest
        #expect(copy.lacks(heard))
        #expect(Self.starts(11, 12, 24).lacks(heard), "as many starts, but not this one")
        #expect(Self.starts(11, 12, 24, 25).lacks(heard), "more starts, but not this one")
        #expect(!Self.starts(11, 12, 13).lacks(heard))
        #expect(!Self.starts(11, 12, 13, 14).lacks(heard))
        #expect(!Self.starts(11, 12, 13).lacks(copy.latest))
    }

    @Test func `S-17 who was not heard for longer than is remembered is taken for what it was`() {
        var starts = Self.starts(1)
        let first = starts.latest
        for raw in 2...UInt64(NodeStarts.keptMax) { starts.add(NodeIncarnation(raw)) }
        let other = NodeStart(number: 1, incarnation: NodeIncarnation(.max))
        #expect(!starts.lacks(first) && starts.lacks(other))
        starts.add(NodeIncarnation(1_000))
        #expect(starts.incarnations.count == NodeStarts.keptMax)
        #expect(!starts.lacks(first) && !starts.lacks(other), "nobody knows")
    }

    @Test func `the file reads and writes as ever, and no changed bit is taken`() throws {
        let starts = Self.starts(5, 6)
        var expected = Bytes("STRATUSL".utf8)
        expected += [1, 2, 0, 0, 0, 0, 0, 0, 0] as Bytes
        expected += [5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0] as Bytes
        expected += Bytes(repeating: 0, count: 254 * 8)
        let written = StartFile.encode(starts)
        #expect(Bytes(written.dropLast(4)) == expected)
        #expect(try StartFile.decode(written) == starts)
        for position in 0..<written.count * 8 {
            var damaged = written
            damaged[position / 8] ^= 1 << (position % 8)
            #expect(throws: DecodingError.self) { try StartFile.decode(damaged) }
        }
    }

    @Test func `one slot that rots or cannot be read loses no start, both do`() throws {
        for slot in 0...1 {
            let world = SimulatedWorld(seed: UInt64(slot))
            _ = try StartFile.begin(in: world, as: NodeIncarnation(1))
            _ = try StartFile.begin(in: world, as: NodeIncarnation(2))
            world.simulatedFiles.flip(bit: 3, at: slot * 4_096 + 100, of: StartFile.path)
            let starts = try StartFile.begin(in: world, as: NodeIncarnation(3))
            #expect(starts == Self.starts(1, 2, 3), "slot \(slot)")
            // It is mended by that.
            world.simulatedFiles.flip(bit: 3, at: (1 - slot) * 4_096 + 100, of: StartFile.path)
            #expect(
                try StartFile.begin(in: world, as: NodeIncarnation(4)) == Self.starts(1, 2, 3, 4))
            let offset = UInt64(slot * 4_096)
            world.simulatedFiles.plan(
                DiskFault(
                    at: world.simulatedFiles.operationCount + 1, .fail(.io), isSticky: true,
                    kinds: [.read], prefix: StartFile.path.raw, offset: offset))
            #expect(try StartFile.begin(in: world, as: NodeIncarnation(5)).count == 5)
            world.simulatedFiles.clearFaults()
            for offset in [100, 4_196] {
                world.simulatedFiles.flip(bit: 3, at: offset, of: StartFile.path)
            }
            #expect(throws: StartFile.Refusal.damaged) {
                try StartFile.begin(in: world, as: NodeIncarnation(6))
            }
        }
    }

    @Test func `a full disk keeps nobody from starting once the file is there`() throws {
        let world = SimulatedWorld(seed: 3)
        _ = try StartFile.begin(in: world, as: NodeIncarnation(1))
        world.simulatedFiles.setCapacity(ByteCount(0))
        #expect(try StartFile.begin(in: world, as: NodeIncarnation(2)) == Self.starts(1, 2))
    }

    /// The disk of the node, then that of its peer, stops at every operation and in every way. The
    /// node starts again until it is heard, then once more.
    @Test(
        arguments: [true, false], [.processCrash, .powerLoss, .powerLossLosingAll] as [DiskRestart])
    func `S-17 no end makes an honest node be refused, and an older copy always is`(
        endsNode: Bool, end: DiskRestart
    ) throws {
        for seed in 1...4 as ClosedRange<UInt64> {
            var number = 0
            while true {
                number += 1
                let pair = try Pair(seed: seed)
                let struck = endsNode ? pair.node : pair.peer
                struck.simulatedFiles.plan(DiskFault(at: number, .crash))
                let place = "seed \(seed), operation \(number)"
                for _ in 0..<3 {
                    pair.copy()
                    var tryCount = 0
                    while !pair.start(end: end, place) {
                        tryCount += 1
                        try #require(tryCount < 4, "\(place): is not heard")
                    }
                    pair.checkCopies(end: end, place)
                }
                if struck.simulatedFiles.operationCount < number { break }
            }
            #expect(number > 20)
        }
    }

    /// One stop after the other while the file is written: if one has torn a slot, the next must
    /// not find it the only one.
    @Test(arguments: 1...200 as ClosedRange<UInt64>)
    func `ends in a row lose no start that was told`(seed: UInt64) throws {
        let world = SimulatedWorld(seed: seed)
        let ends = [.processCrash, .powerLoss, .powerLossLosingAll] as [DiskRestart]
        var told = try StartFile.begin(in: world, as: NodeIncarnation(1)).latest
        for number in 2...40 as ClosedRange<UInt64> {
            let files = world.simulatedFiles
            files.plan(DiskFault(at: files.operationCount + 1 + Int(world.random() % 10), .crash))
            do throws(StartFile.Refusal) {
                let starts = try StartFile.begin(in: world, as: NodeIncarnation(number))
                #expect(!starts.lacks(told), "seed \(seed), start \(number)")
                if !files.isCrashed { told = starts.latest }
            } catch {
                #expect(error != .damaged, "seed \(seed), start \(number)")
            }
            files.clearFaults()
            files.restart(after: ends[Int(world.random() % 3)])
        }
        #expect(!(try StartFile.begin(in: world, as: NodeIncarnation(100)).lacks(told)))
    }

    /// A node and the only peer that hears it, each with its disk.
    private final class Pair {
        let node: SimulatedWorld
        let peer: SimulatedWorld
        private var copies: [Bytes] = []
        private var startCount: UInt64 = 0

        init(seed: UInt64) throws {
            self.node = SimulatedWorld(seed: seed)
            self.peer = SimulatedWorld(seed: seed + 100)
        }

        /// - Returns: whether the node was heard.
        func start(end: DiskRestart, _ place: String) -> Bool {
            self.startCount += 1
            let incarnation = NodeIncarnation(self.startCount)
            do {
                let starts = try StartFile.begin(in: self.node, as: incarnation)
                let memory = try PeerMemory(in: self.peer)
                guard memory.meet(name, data) == .known else { throw Ended() }
                let heard = memory.hear(name, starts)
                #expect(heard == .known, "\(place), start \(self.startCount)")
                // A process that ended in that told nobody.
                if self.peer.simulatedFiles.isCrashed { throw Ended() }
                return true
            } catch {
                for world in [self.node, self.peer] {
                    let hasEnded = world.simulatedFiles.isCrashed
                    world.simulatedFiles.clearFaults()
                    if hasEnded { world.simulatedFiles.restart(after: end) }
                }
                return false
            }
        }

        func copy() {
            if let bytes = self.node.simulatedFiles.contents(of: StartFile.path) {
                self.copies.append(bytes)
            }
        }

        /// Every copy taken before the last start is refused, in its own first starts as well as
        /// later.
        func checkCopies(end: DiskRestart, _ place: String) {
            self.peer.simulatedFiles.restart(after: end)
            let remembered = [PeerMemory.path, PeerMemory.heardPath].map {
                ($0, self.peer.simulatedFiles.contents(of: $0) ?? [])
            }
            for bytes in self.copies {
                // What the peer has on disk, apart from the faults that its own is still to meet.
                let world = SimulatedWorld(seed: 7)
                world.simulatedFiles.plant(bytes, at: StartFile.path)
                for (path, bytes) in remembered { world.simulatedFiles.plant(bytes, at: path) }
                for start in 0..<3 as Range<UInt64> {
                    guard
                        let starts = try? StartFile.begin(
                            in: world, as: NodeIncarnation(1_000 + start)),
                        let memory = try? PeerMemory(in: world)
                    else {
                        Issue.record("\(place): the copy does not start")
                        continue
                    }
                    guard case .older = memory.hear(name, starts) else {
                        Issue.record("\(place): an older copy is heard, in its start \(start)")
                        continue
                    }
                }
            }
        }

        private struct Ended: Error {}
        private var name: String { NodeStartsTests.name }
        private var data: RequestIdentity { NodeStartsTests.data }
    }
}
