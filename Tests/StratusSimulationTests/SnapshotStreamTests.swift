import StratusCoding
import StratusCompression
import StratusDoubles
import StratusModel
import StratusSQLite
import StratusSimulation
import StratusStorage
import Testing

@testable import StratusCluster

/// Snapshots on their way from one replica to another.
@Suite struct SnapshotStreamTests {
    private final class Frames: SnapshotSource {
        var frames: [Bytes]
        init(_ frames: [Bytes]) { self.frames = frames }
        func next() -> Bytes? { self.frames.isEmpty ? nil : self.frames.removeFirst() }
    }

    static let frames: [Bytes] = (0..<5).map { Bytes(repeating: UInt8($0), count: 2_000) }
    static let peer = NodeID(2)

    static func identity(_ index: UInt64, digest: UInt64 = 1) -> SnapshotIdentity {
        SnapshotIdentity(
            index: LogIndex(index), term: Term(3),
            configuration: Configuration(voters: [NodeID(1)]),
            digest: StateDigest(high: digest, low: 0))
    }

    static func state(_ world: SimulatedWorld) throws -> PartitionStore<RegisterState> {
        try PartitionStore(
            RegisterState(), group: GroupID(1), in: "partitions", of: FileSystem(world.files))
    }

    /// Sends all of a stream, each chunk `copies` times, and returns what the receiver then holds.
    private func carry(
        _ sender: inout SnapshotStreams, _ receiver: inout SnapshotStreams,
        to state: any PartitionState, _ identity: SnapshotIdentity, copies: Int = 1
    ) throws -> [Bytes]? {
        while let chunk = try sender.chunk(for: Self.peer) {
            var next: UInt32 = 0
            for _ in 0..<copies {
                next = try receiver.receive(chunk, in: Term(3), of: state, mixes: false)
            }
            guard sender.acknowledged(by: Self.peer, index: identity.index, next: next),
                !chunk.isLast
            else { break }
        }
        guard let source = try receiver.takeComplete(identity) else { return nil }
        var received: [Bytes] = []
        while let frame = try source.next() { received.append(frame) }
        return received
    }

    @Test(arguments: [1, 3])
    func `a stream arrives as it was, compressed on its way, repeated or not`(copies: Int) throws {
        let world = SimulatedWorld(seed: 1)
        var (sender, receiver) = (SnapshotStreams(), SnapshotStreams())
        let identity = Self.identity(10)
        try sender.open(to: Self.peer, identity, from: Frames(Self.frames))
        let first = try #require(try sender.chunk(for: Self.peer))
        #expect(first.bytes.count < 100, "two thousand equal bytes")
        #expect(first.bytes.first == 1)
        let received = try self.carry(
            &sender, &receiver, to: Self.state(world), identity, copies: copies)
        #expect(received == Self.frames)
    }

    @Test func `what arrives lies in a file without a name, not in memory`() throws {
        let world = SimulatedWorld(seed: 1)
        let spool = try Self.state(world).makeSpool()
        let before = world.simulatedFiles.operationCount
        for frame in Self.frames { try spool.append(frame) }
        #expect(world.simulatedFiles.operationCount == before + Self.frames.count)
        #expect(world.simulatedFiles.allFiles.isEmpty, "a restart finds nothing")
        let source = try spool.source()
        for frame in Self.frames { #expect(try source.next() == frame) }
        #expect(try source.next() == nil)
    }

    @Test func `a stream opened again goes on where its receiver stands`() throws {
        let state = try Self.state(SimulatedWorld(seed: 1))
        var (sender, receiver) = (SnapshotStreams(), SnapshotStreams())
        let identity = Self.identity(10)
        try sender.open(to: Self.peer, identity, from: Frames(Self.frames))
        for _ in 0..<3 {
            let chunk = try #require(try sender.chunk(for: Self.peer))
            let next = try receiver.receive(chunk, in: Term(3), of: state, mixes: false)
            let isNews1 = sender.acknowledged(by: Self.peer, index: identity.index, next: next)
            #expect(isNews1)
        }
        // The sender lost track of it and begins again.
        sender.stop(to: Self.peer)
        try sender.open(to: Self.peer, identity, from: Frames(Self.frames))
        let first = try #require(try sender.chunk(for: Self.peer))
        #expect(first.sequence == 0)
        let next = try receiver.receive(first, in: Term(3), of: state, mixes: false)
        #expect(next == 3, "the receiver has three already")
        let isNews2 = sender.acknowledged(by: Self.peer, index: identity.index, next: next)
        #expect(isNews2)
        #expect(try sender.chunk(for: Self.peer)?.sequence == 3)
        #expect(try self.carry(&sender, &receiver, to: state, identity) == Self.frames)
    }

    // Found by the simulation, seed 757.
    @Test func `a late answer that sends a stream too far ahead does not end it`() throws {
        let state = try Self.state(SimulatedWorld(seed: 1))
        var (sender, receiver) = (SnapshotStreams(), SnapshotStreams())
        let identity = Self.identity(10)
        try sender.open(to: Self.peer, identity, from: Frames(Self.frames))
        let first = try #require(try sender.chunk(for: Self.peer))
        let next = try receiver.receive(first, in: Term(3), of: state, mixes: false)
        // From an earlier stream, which the receiver gave up.
        let isNews = sender.acknowledged(by: Self.peer, index: identity.index, next: 4)
        #expect(isNews)
        #expect(try sender.chunk(for: Self.peer)?.sequence == 4)
        var answers: [Bool] = []
        for _ in 0..<3 {
            answers.append(sender.acknowledged(by: Self.peer, index: identity.index, next: next))
        }
        #expect(answers == [false, false, true], "repeated answers alone send nothing")
        #expect(!sender.isSending(to: Self.peer), "it is opened again")
        try sender.open(to: Self.peer, identity, from: Frames(Self.frames))
        #expect(try self.carry(&sender, &receiver, to: state, identity) == Self.frames)
    }

    @Test(arguments: ["another term", "another digest", "another index"])
    func `C-30 pieces of two streams never join`(what: String) throws {
        let state = try Self.state(SimulatedWorld(seed: 1))
        var (sender, receiver) = (SnapshotStreams(), SnapshotStreams())
        try sender.open(to: Self.peer, Self.identity(10), from: Frames(Self.frames))
        let first = try #require(try sender.chunk(for: Self.peer))
        #expect(try receiver.receive(first, in: Term(3), of: state, mixes: false) == 1)
        let isNews3 = sender.acknowledged(by: Self.peer, index: LogIndex(10), next: 1)
        #expect(isNews3)
        var second = try #require(try sender.chunk(for: Self.peer))
        var term = Term(3)
        switch what {
        case "another term": term = Term(4)
        case "another digest": second.identity = Self.identity(10, digest: 2)
        default: second.identity = Self.identity(11)
        }
        #expect(try receiver.receive(second, in: term, of: state, mixes: false) == 0)
        #expect(!receiver.isComplete)
    }

    @Test func `C-28 of two snapshots in quick succession the later one wins whole`() throws {
        let state = try Self.state(SimulatedWorld(seed: 1))
        var (sender, receiver) = (SnapshotStreams(), SnapshotStreams())
        try sender.open(to: Self.peer, Self.identity(10), from: Frames(Self.frames))
        _ = try receiver.receive(
            try #require(try sender.chunk(for: Self.peer)), in: Term(3), of: state, mixes: false)
        sender.stop(to: Self.peer)
        let later = Array(Self.frames.reversed())
        try sender.open(to: Self.peer, Self.identity(20), from: Frames(later))
        #expect(
            try self.carry(&sender, &receiver, to: state, Self.identity(20)) == later)
        #expect(try receiver.takeComplete(Self.identity(10)) == nil)
    }

    @Test func `C-28 two streams of one state that has moved on in between do not mix`() throws {
        let world = SimulatedWorld(seed: 1)
        let state = try Self.state(world)
        var outcomes: [Outcome] = []
        try state.apply([Self.write(1)][...], into: &outcomes)
        try state.commit()
        let one = try state.snapshot().whole()
        let oneIdentity = Self.identity(of: state)
        try state.apply([Self.write(2)][...], into: &outcomes)
        try state.commit()
        let other = try state.snapshot().whole()
        for (source, identity) in [(one, oneIdentity), (other, Self.identity(of: state))] {
            let receiver = try Self.state(SimulatedWorld(seed: 2))
            try receiver.install(identity, from: source).finish()
            #expect(receiver.digest == identity.digest)
        }
    }

    static func write(_ index: UInt64) -> Entry {
        let command = Command(
            kind: .reference, identity: RequestIdentity(high: 1, low: index),
            deadlineMilliseconds: .max,
            container: ContainerReference(container: "test", environment: .development),
            schemaVersion: 0, principal: Principal(kind: .system),
            body: RegisterCommand.write(Bytes("r\(index)".utf8), value: [1]).encoded())
        return Entry(
            index: LogIndex(index), term: Term(1),
            time: HybridTime(milliseconds: Int64(index), count: 0), kind: .command,
            payload: command.encoded())
    }

    static func identity(of state: PartitionStore<RegisterState>) -> SnapshotIdentity {
        SnapshotIdentity(
            index: state.applied, term: Term(1), configuration: Configuration(voters: []),
            digest: state.digest)
    }

    @Test func `C-40 a chunk that was garbled, or is of a later version, is refused`() throws {
        let garbled: [(Bytes, StoreError.Kind)] = [
            ([1, 2, 3], .corrupt), ([2] + Zstd.compress([5]), .unreadable), ([], .unreadable),
            ([1] + Zstd.compress([5]).dropLast(), .corrupt),
        ]
        for (bytes, kind) in garbled {
            let state = try Self.state(SimulatedWorld(seed: 1))
            var receiver = SnapshotStreams()
            let chunk = SnapshotChunk(
                identity: Self.identity(10), sequence: 0, isLast: true, bytes: bytes)
            _ = try receiver.receive(chunk, in: Term(3), of: state, mixes: false)
            let source = try #require(try receiver.takeComplete(Self.identity(10)))
            do throws(StoreError) {
                _ = try source.next()
                Issue.record("\(bytes) was taken")
            } catch { #expect(error.kind == kind) }
        }
    }

    @Test func `a full disk ends the stream, which begins again when there is room`() throws {
        let world = SimulatedWorld(seed: 1)
        let state = try Self.state(world)
        var (sender, receiver) = (SnapshotStreams(), SnapshotStreams())
        try sender.open(to: Self.peer, Self.identity(10), from: Frames(Self.frames))
        let chunk = try #require(try sender.chunk(for: Self.peer))
        world.simulatedFiles.setCapacity(0)
        #expect(throws: StoreError.self) {
            try receiver.receive(chunk, in: Term(3), of: state, mixes: false)
        }
        world.simulatedFiles.setCapacity(nil)
        #expect(
            try self.carry(&sender, &receiver, to: state, Self.identity(10)) == Self.frames)
    }
}
