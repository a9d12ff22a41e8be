import StratusAssets
import StratusCoding
import StratusModel
import Synchronization
import Testing

/// Copies of another disk, on their way to three members.
@Suite struct BodyAdoptionTests {
    static let nodes: Set<NodeID> = [NodeID(1), NodeID(2), NodeID(3)]
    static let chunks: [Bytes] = (0..<3).map { Bytes(repeating: UInt8($0 + 1), count: 90) }

    final class Members: CopyCarrier {
        struct State {
            var copies: [NodeID: Set<UInt32>] = [:]
            var silent: Set<NodeID> = []
            var putCount = 0
            var ends: Set<Int64> = []
            /// Answers to the next wishes to call the body lost no more.
            var findings: [BodyAdoption.Finding] = []
            var storers: [[NodeID]] = []
            var voterSets = [BodyAdoptionTests.nodes]
        }
        let state = Mutex(State())

        func put(
            _ copy: StoredCopy, of group: GroupID, on node: NodeID, deadline: MonotonicTime
        ) async -> CopyAnswer {
            self.state.withLock { state in
                state.putCount += 1
                if state.silent.contains(node) { return .silent }
                state.ends.insert(copy.orphanAfterMilliseconds)
                state.copies[node, default: []].insert(copy.name.ordinal)
                return .stored(at: LogIndex(5))
            }
        }

        func fetch(
            _ name: CopyName, of group: GroupID, from node: NodeID, deadline: MonotonicTime
        ) async -> CopyFetch { .silent }

        func confirm(
            _ body: BodyID, chunkCount: UInt32, of group: GroupID, on node: NodeID,
            deadline: MonotonicTime
        ) async -> CopyAnswer {
            self.state.withLock { state in
                if state.silent.contains(node) { return .silent }
                return state.copies[node]?.count == Int(chunkCount)
                    ? .stored(at: LogIndex(6)) : .refused(.incomplete)
            }
        }

        func drop(_ body: BodyID, of group: GroupID, on node: NodeID) {}

        var adoption: BodyAdoption {
            BodyAdoption(
                by: self,
                in: BodyAdoption.Partition(
                    members: {
                        BodyMembers(
                            group: GroupID(4), all: BodyAdoptionTests.nodes,
                            voterSets: self.state.withLock { $0.voterSets })
                    },
                    find: { _, end, storers in
                        self.state.withLock { state in
                            state.storers.append(storers.map(\.node))
                            state.ends.insert(end)
                            return state.findings.isEmpty ? .found : state.findings.removeFirst()
                        }
                    }), now: { MonotonicTime(nanoseconds: 0) }, sleep: { _ in })
        }
    }

    static func manifest(isLost: Bool) -> BodyManifest {
        BodyManifest(
            body: BodyID(9), database: 1, namedAt: LogIndex(1), size: 3 * 73, chunkSize: 73,
            keyVersion: 1, isLost: isLost,
            chunks: Self.chunks.map { .init(storedSize: 90, crc: CRC32C.of($0)) })
    }

    private func run(
        _ members: Members, isLost: Bool, _ ordinals: [UInt32]
    ) async throws -> BodyAdoption.Result {
        let adoption = members.adoption
        var look = try #require(await adoption.look(at: Self.manifest(isLost: isLost)))
        for ordinal in ordinals {
            _ = await adoption.put(Self.chunks[Int(ordinal)], ordinal, &look, orphanAfter: 77)
        }
        return await adoption.finish(look, orphanAfter: 77)
    }

    @Test func `a copy that is not as its row says is not sound`() {
        let manifest = Self.manifest(isLost: true)
        #expect(BodyAdoption.isSound(Self.chunks[1], 1, of: manifest))
        #expect(!BodyAdoption.isSound(Self.chunks[1], 2, of: manifest))
        #expect(!BodyAdoption.isSound(Bytes(Self.chunks[1].dropLast()), 1, of: manifest))
        #expect(!BodyAdoption.isSound(Self.chunks[1] + [0], 1, of: manifest))
        #expect(!BodyAdoption.isSound(Self.chunks[1], 3, of: manifest))
    }

    @Test func `a lost body is found once a majority has all of it`() async throws {
        let members = Members()
        members.state.withLock { $0.silent = [NodeID(3)] }
        #expect(try await self.run(members, isLost: true, [0, 1, 2]) == .found)
        members.state.withLock { state in
            #expect(state.storers == [[NodeID(1), NodeID(2)]])
            #expect(state.ends == [77])
            // The one that is away is sent nothing.
            #expect(state.putCount == 6)
        }
    }

    @Test func `what one disk lacks may come from the next`() async throws {
        let members = Members()
        #expect(try await self.run(members, isLost: true, [0, 2]) == .incomplete)
        #expect(members.state.withLock { $0.storers }.isEmpty)
        #expect(try await self.run(members, isLost: true, [1]) == .found)
    }

    @Test func `both voter sets must have all of it`() async throws {
        let members = Members()
        members.state.withLock {
            $0.silent = [NodeID(3)]
            $0.voterSets = [Self.nodes, [NodeID(3)]]
        }
        #expect(try await self.run(members, isLost: true, [0, 1, 2]) == .incomplete)
        #expect(members.state.withLock { $0.storers }.isEmpty)
    }

    @Test func `who counts is asked anew while members change, and not for ever`() async throws {
        let members = Members()
        members.state.withLock { $0.findings = [.again, .again] }
        #expect(try await self.run(members, isLost: true, [0, 1, 2]) == .found)
        members.state.withLock { $0.findings = Array(repeating: .again, count: 9) }
        #expect(try await self.run(members, isLost: true, []) == .incomplete)
        #expect(members.state.withLock { $0.findings.count } == 4)
        members.state.withLock { $0.findings = [.gone] }
        #expect(try await self.run(members, isLost: true, []) == .gone)
    }

    @Test func `a body that is not lost is completed, and nobody is told`() async throws {
        let members = Members()
        members.state.withLock {
            $0.copies = [NodeID(1): [0, 1, 2], NodeID(2): [0], NodeID(3): [0, 1, 2]]
        }
        let first = try #require(await members.adoption.look(at: Self.manifest(isLost: false)))
        #expect(first.lacking == [NodeID(2)])
        #expect(try await self.run(members, isLost: false, [1]) == .incomplete)
        #expect(try await self.run(members, isLost: false, [2]) == .held)
        #expect(members.state.withLock { $0.storers }.isEmpty)
        // Those that had all of it were sent nothing.
        #expect(members.state.withLock { $0.putCount } == 2)
        let whole = try #require(await members.adoption.look(at: Self.manifest(isLost: false)))
        #expect(!whole.isWanted)
        // One that is away takes nothing, so nothing is sent for its sake.
        members.state.withLock { $0.silent = [NodeID(2)] }
        let away = try #require(await members.adoption.look(at: Self.manifest(isLost: false)))
        #expect(!away.isWanted)
        // One that goes away meanwhile is sent no more than one copy.
        members.state.withLock {
            $0.silent = []
            $0.copies[NodeID(2)] = []
            $0.putCount = 0
        }
        var look = try #require(await members.adoption.look(at: Self.manifest(isLost: false)))
        members.state.withLock { $0.silent = [NodeID(2)] }
        for ordinal in 0..<3 as Range<UInt32> {
            _ = await members.adoption.put(
                Self.chunks[Int(ordinal)], ordinal, &look, orphanAfter: 77)
        }
        #expect(members.state.withLock { $0.putCount } == 1)
        #expect(await members.adoption.finish(look, orphanAfter: 77) == .incomplete)
    }
}
