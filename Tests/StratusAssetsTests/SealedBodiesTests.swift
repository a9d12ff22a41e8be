import StratusAssets
import StratusModel
import StratusRuntime
import StratusSealing
import Synchronization
import Testing

/// Bodies from a client's bytes to the copies of three members and back.
@Suite struct SealedBodiesTests {
    /// Copies in memory. Some nodes lose answers, lack copies, or refuse.
    final class MemoryCarrier: CopyCarrier {
        struct State {
            var copies: [NodeID: [CopyName: Bytes]] = [:]
            var refusing: Set<NodeID> = []
            var silent: Set<NodeID> = []
            var lossCount = 0
            var undone = 0
            var undoneMax = 0
        }
        let state = Mutex(State())

        func put(
            _ copy: StoredCopy, of group: GroupID, on node: NodeID, deadline: MonotonicTime
        ) async -> CopyAnswer {
            self.state.withLock {
                $0.undone += copy.bytes.count
                $0.undoneMax = max($0.undoneMax, $0.undone)
            }
            await Task.yield()
            return self.state.withLock { state in
                state.undone -= copy.bytes.count
                if state.refusing.contains(node) { return .refused(.nearlyFull) }
                if state.lossCount > 0 {
                    state.lossCount -= 1
                    return .silent
                }
                state.copies[node, default: [:]][copy.name] = copy.bytes
                return .stored(at: LogIndex(UInt64(node.raw)))
            }
        }

        func fetch(
            _ name: CopyName, of group: GroupID, from node: NodeID, deadline: MonotonicTime
        ) async -> CopyFetch {
            self.state.withLock { state in
                if state.silent.contains(node) { return .silent }
                return state.copies[node]?[name].map { .found($0) } ?? .absent
            }
        }

        func confirm(
            _ body: BodyID, chunkCount: UInt32, of group: GroupID, on node: NodeID,
            deadline: MonotonicTime
        ) async -> CopyAnswer { .silent }

        func drop(_ body: BodyID, of group: GroupID, on node: NodeID) {
            self.state.withLock { state in
                state.copies[node] = state.copies[node]?.filter { $0.key.body != body }
            }
        }
    }

    /// A body in pieces of any size, which may end too early.
    final class Pieces: RequestBody {
        private let pieces: Mutex<[Bytes]>
        private let isCut: Bool
        init(_ bytes: Bytes, seed: UInt64, isCut: Bool = false) {
            var random = SeededGenerator(seed: seed)
            var pieces: [Bytes] = []
            var rest = bytes[...]
            while !rest.isEmpty {
                let piece = rest.prefix(Int.random(in: 1...70_000, using: &random))
                pieces.append(Bytes(piece))
                rest = rest.dropFirst(piece.count)
            }
            self.pieces = Mutex(pieces)
            self.isCut = isCut
        }
        func next() async throws(RequestBodyError) -> Bytes? {
            let piece = self.pieces.withLock { $0.isEmpty ? nil : $0.removeFirst() }
            if piece == nil, self.isCut { throw .cutShort }
            return piece
        }
    }

    static let nodes = (1...3).map { NodeID($0) }
    static let members = BodyMembers(
        group: GroupID(1), all: Set(nodes), voterSets: [Set(nodes)])
    static let database = DatabaseID(
        container: ContainerReference(container: "iCloud.a", environment: .development),
        scope: .private, owner: "_a")

    private func plan(sizeMax: UInt64 = 1 << 30) -> BodyPlan {
        BodyPlan(
            members: Self.members, body: BodyID(5), orphanAfterMilliseconds: 9,
            sealer: Self.sealer, keyVersion: 1, sizeMax: sizeMax, checksumPrefix: [1],
            deadline: RealClock.now + .seconds(60))
    }

    static let sealer = BodySealer(
        databaseKey: SecretBytes(copying: Bytes(repeating: 4, count: 32)), version: 1,
        database: database, body: BodyID(5))

    private func bodies(_ carrier: MemoryCarrier, _ workers: SealingWorkers) -> SealedBodies {
        SealedBodies(
            carrier, as: NodeID(1), workers: workers, now: { RealClock.now },
            sleep: { try? await Task.sleep(for: $0) })
    }

    private func content(_ size: Int, seed: UInt64) -> Bytes {
        var random = SeededGenerator(seed: seed)
        return (0..<size).map { $0 % 7 == 0 ? UInt8.random(in: 0...9, using: &random) : 65 }
    }

    @Test(arguments: [0, 1, 262_143, 262_144, 262_145, 3_000_000])
    func `a body comes back as it was, whole and in parts, from members that have it`(size: Int)
        async throws
    {
        let workers = SealingWorkers(count: 2)
        defer { workers.stop() }
        let carrier = MemoryCarrier()
        carrier.state.withLock { $0.lossCount = 2 }
        let bodies = self.bodies(carrier, workers)
        let bytes = self.content(size, seed: UInt64(size))
        let written = try await bodies.write(Pieces(bytes, seed: 3), self.plan())
        #expect(written.sums.size == UInt64(size))
        #expect(written.storers.count >= 2)
        let manifest = BodyManifest(
            body: written.body, database: 1, namedAt: LogIndex(1), size: written.sums.size,
            chunkSize: written.chunkSize, keyVersion: 1, chunks: written.chunks)
        #expect(manifest.isConsistent)
        // The plan's four chunks on their way to each of three members.
        #expect(carrier.state.withLock { $0.undoneMax } <= 4 * 3 * 262_161)
        let gone = NodeID(1)
        carrier.state.withLock { $0.copies[gone] = nil }
        for range in [0..<UInt64(size), UInt64(size / 3)..<UInt64(size / 2)] {
            let reading = bodies.read(
                BodyReadPlan(
                    manifest: manifest, members: Self.members, range: range,
                    sealer: Self.sealer, deadline: RealClock.now + .seconds(60)))
            var read = Bytes()
            while let more = try await reading.next() { read += more }
            #expect(read == Bytes(bytes[Int(range.lowerBound)..<Int(range.upperBound)]))
        }
    }

    @Test func `a body that is cut off, too large, or stored by no majority leaves no copy`()
        async throws
    {
        let workers = SealingWorkers(count: 1)
        defer { workers.stop() }
        let bytes = self.content(2_000_000, seed: 5)
        let cases: [(failure: BodyFailure, isCut: Bool, sizeMax: UInt64, refusing: Set<NodeID>)] = [
            (.cutShort, true, 1 << 30, []), (.tooLarge, false, 1_000_000, []),
            (.noMajority, false, 1 << 30, [NodeID(2), NodeID(3)]),
        ]
        for (failure, isCut, sizeMax, refusing) in cases {
            let carrier = MemoryCarrier()
            carrier.state.withLock { $0.refusing = refusing }
            let bodies = self.bodies(carrier, workers)
            await #expect(throws: failure) {
                try await bodies.write(
                    Pieces(bytes, seed: 1, isCut: isCut), self.plan(sizeMax: sizeMax))
            }
            // What was on its way when the body was dropped is an orphan: at most four chunks.
            let left = carrier.state.withLock { $0.copies.values.map(\.count).max() ?? 0 }
            #expect(left <= 4)
        }
    }

    @Test func `a body that nobody has fails before its first byte`() async throws {
        let workers = SealingWorkers(count: 1)
        defer { workers.stop() }
        let carrier = MemoryCarrier()
        let bodies = self.bodies(carrier, workers)
        let written = try await bodies.write(
            Pieces(self.content(300_000, seed: 1), seed: 1), self.plan())
        let manifest = BodyManifest(
            body: written.body, database: 1, namedAt: LogIndex(1), size: written.sums.size,
            chunkSize: written.chunkSize, keyVersion: 1, chunks: written.chunks)
        let plan = BodyReadPlan(
            manifest: manifest, members: Self.members, range: 0..<300_000, sealer: Self.sealer,
            deadline: RealClock.now + .seconds(60))
        guard case .ready = await bodies.begin(plan) else {
            Issue.record("all of it is there")
            return
        }
        carrier.state.withLock { $0.copies = [:] }
        guard case .failed(.absent) = await bodies.begin(plan) else {
            Issue.record("nobody has it")
            return
        }
        // One that does not answer may have it.
        carrier.state.withLock { $0.silent = [NodeID(2)] }
        guard case .failed(.unreachable) = await bodies.begin(plan) else {
            Issue.record("a silent node was taken for one that lacks the copy")
            return
        }
    }

    @Test func `A-33 memory for transfers is bounded, for each user and for all`() async {
        let buffers = TransferBuffers(.mebibytes(64))
        var shares: [TransferBuffers.Share] = []
        func fill(_ container: String, _ user: String) -> Int {
            let holder = PlaceHolder(
                ContainerReference(container: container, environment: .production), user)
            let before = shares.count
            while let share = buffers.share(TransferBuffers.uploadSize, for: holder) {
                shares.append(share)
            }
            return shares.count - before
        }
        #expect(fill("one", "a") == 5)
        for user in 0..<100 { _ = fill("one", "\(user)") }
        // A quarter is kept for another container.
        #expect(buffers.size <= 48 << 20 && buffers.size > 46 << 20)
        #expect(fill("one", "b") == 0)
        #expect((0..<100).map { fill("two", "t\($0)") }.reduce(0, +) == 10)
        #expect(buffers.size <= 64 << 20 && buffers.size > 62 << 20)
        #expect(fill("three", "c") == 0)
        shares = []
        #expect(buffers.size == 0)
        #expect(fill("three", "c") == 5)
    }
}
