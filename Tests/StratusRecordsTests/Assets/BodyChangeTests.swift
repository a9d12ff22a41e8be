import StratusCoding
import StratusDoubles
import StratusModel
import StratusRows
import StratusSQLite
import StratusStorage
import Testing

@testable import StratusRecords

/// What a partition's store tells the keeper of its copies.
@Suite struct BodyChangeTests {
    private let world = SimulatedWorld(seed: 1)
    private var index: UInt64 = 0

    private func open() throws -> PartitionStore<DataState> {
        try PartitionStore(
            DataState(), group: GroupID(3), in: "partitions",
            of: FileSystem(self.world.simulatedFiles))
    }

    private mutating func apply<Operation: Submittable>(
        _ operation: Operation, to store: PartitionStore<DataState>
    ) throws {
        try self.apply(
            operation.enveloped(
                container: Bench.container, identity: RequestIdentity(high: 0, low: self.index + 1),
                deadlineMilliseconds: .max, principal: Bench.system), to: store)
    }

    private mutating func apply(_ envelope: Command, to store: PartitionStore<DataState>) throws {
        self.index += 1
        let entry = Entry(
            index: LogIndex(self.index), term: Term(1),
            time: HybridTime(milliseconds: 1_700_000_000_000 + Int64(self.index)),
            kind: .command, payload: envelope.encoded())
        var outcomes: [Outcome] = []
        try store.apply([entry][...], into: &outcomes)
        #expect(outcomes.first?.verdict == .decided)
    }

    private static func key(_ version: UInt32) -> PutKey {
        PutKey(Bench.privateDatabase) {
            $0.version = version
            $0.key = AssetGoldens.key
        }
    }

    private static func pin(_ number: UInt128, chunkCount: UInt64 = 2) -> PinAsset {
        AssetGoldens.pin(
            number, body: number + 0x100, upload: number, digest: nil, size: chunkCount * 256)
    }

    @Test mutating func `changes are told once, and outlive a close`() throws {
        let store = try self.open()
        try self.apply(Self.key(1), to: store)
        try self.apply(Self.pin(1), to: store)
        try store.close()
        let body = AssetGoldens.pin(1, body: 0x101, upload: 1, digest: nil, size: 512)
            .stored.manifest(of: 1, namedAt: LogIndex(2))
        #expect(store.takeBodyChanges() == [.named(body)])
        #expect(store.takeBodyChanges() == [])
        #expect(try store.bodies(from: BodyID(0), limit: 10) == [body])
    }

    @Test mutating func `rows that go back are to be compared anew`() throws {
        let store = try self.open()
        try self.apply(Self.key(1), to: store)
        try store.commit()
        try self.apply(Self.pin(1), to: store)
        #expect(try store.reset() == LogIndex(1))
        #expect(store.takeBodyChanges() == [.unlisted])
        self.index = 1
        try self.apply(Self.pin(1), to: store)
        #expect(store.takeBodyChanges().count == 1)
    }

    @Test mutating func `a snapshot's bodies are to be compared anew`() throws {
        let store = try self.open()
        try self.apply(Self.key(1), to: store)
        try self.apply(Self.pin(1), to: store)
        let source = try store.snapshot().whole()
        let other = try PartitionStore(
            DataState(), group: GroupID(3), in: "others",
            of: FileSystem(self.world.simulatedFiles))
        let identity = SnapshotIdentity(
            index: store.applied, term: Term(1), configuration: Configuration(voters: []),
            digest: store.digest)
        try other.install(identity, from: source).finish()
        #expect(other.takeBodyChanges() == [.unlisted])
        #expect(try other.bodies(from: BodyID(0), limit: 10).map(\.body) == [BodyID(0x101)])
    }

    @Test mutating func `bodies are listed in pages, whole`() throws {
        let store = try self.open()
        #expect(try store.bodies(from: BodyID(0), limit: 10) == [])
        try self.apply(Self.key(1), to: store)
        let large = UInt64(BodyCoding.pageChunkCount + 1)
        try self.apply(Self.pin(1), to: store)
        try self.apply(Self.pin(2, chunkCount: large), to: store)
        try self.apply(Self.pin(3, chunkCount: 0), to: store)
        #expect(try store.bodies(from: BodyID(0), limit: 0) == [])
        let all = try store.bodies(from: BodyID(0), limit: 10)
        #expect(all.map(\.body.raw) == [0x101, 0x102, 0x103])
        #expect(all.map(\.chunks.count) == [2, Int(large), 0])
        #expect(try store.bodies(from: BodyID(0), limit: 2) == Array(all.prefix(2)))
        #expect(try store.bodies(from: BodyID(0x102), limit: 1) == [all[1]])
        #expect(try store.bodies(from: BodyID(0x104), limit: 1) == [])
    }

    @Test func `a leader reads of a pin who holds the body`() {
        func holdings<Operation: Submittable>(_ operation: Operation) -> [CopyHolding]? {
            DataState().holdings(
                in: operation.enveloped(
                    container: Bench.container, identity: RequestIdentity(high: 1, low: 1),
                    deadlineMilliseconds: 1, principal: Bench.user))
        }
        #expect(holdings(Self.pin(1)) == [CopyHolding(node: NodeID(2), at: LogIndex(300))])
        // An empty file has no copies.
        #expect(holdings(Self.pin(1, chunkCount: 0)) == nil)
        #expect(holdings(RecordCommand.continueJobs(ContinueJobs())) == nil)
    }
}
