import StratusCluster
import StratusDoubles
import StratusModel
import StratusStorage
import Testing

/// Core audit 11: rows that differ and say nothing of it, found by the digests that replicas
/// compare.
@Suite struct DivergenceTests {
    private static let register: Bytes = [0x61]

    /// Lets a test reach the rows of each node.
    private static func keepStores(
        of setup: inout NodeReplicas.Setup, in stores: Shared<[NodeID: Unchecked]>
    ) {
        let (open, node) = (setup.openPartition, setup.node)
        setup.openPartition = { (group) throws(StoreError) in
            let partition = try open(group)
            let store = Unchecked(partition as? PartitionStore<RegisterState>)
            stores.withLock { $0[node] = store }
            return partition
        }
    }

    @Test(arguments: [false, true], [1, 2] as [UInt64])
    func `S-13 rows that differ are found, replaced and told`(ofLeader: Bool, seed: UInt64) throws {
        let stores = Shared<[NodeID: Unchecked]>([:])
        let three = try ThreeNodes(seed: seed) { setup in
            setup.tuning.digestInterval = 8
            Self.keepStores(of: &setup, in: stores)
        }
        for value in 0..<20 { #expect(three.write(Self.register, [UInt8(value)])) }
        three.run(for: .seconds(1))
        #expect(three.alarms.withLock { $0 } == [])
        let leader = try #require(three.leader())
        let node = ofLeader ? leader : try #require(three.nodes.first { $0.id != leader.id })
        let store = try #require(stores.withLock { $0[node.id] }?.store)
        try store.rot(.record, Self.register, to: [0xDE])
        for value in 20..<40 {
            // The one that led may have just found it.
            if !three.write(Self.register, [UInt8(value)]) {
                three.run(for: .seconds(2))
                #expect(three.write(Self.register, [UInt8(value)]))
            }
        }
        three.run(for: .seconds(20))
        // Two of three may be in dispute before the third has told its digest. Then each adds up its
        // own rows, and that may come first.
        #expect(
            UInt64(node.replicas.divergedReplicaCount) + node.replicas.scrubFigures.damageCount == 1
        )
        let alarms = three.alarms.withLock { $0 }
        #expect(
            alarms.contains {
                $0.contains("its rows differ from those of most replicas")
                    || $0.contains("its rows are not what was applied to them")
            })
        #expect(alarms.contains { $0.contains("were replaced by a snapshot") })
        for other in three.nodes {
            let status = try #require(three.status(of: other))
            #expect(status.problem == nil)
            #expect(three.value(Self.register, at: other) == [39], "\(other.id)")
            guard other.id != node.id else { continue }
            #expect(other.replicas.divergedReplicaCount == 0)
            #expect(other.replicas.scrubFigures.damageCount == 0)
        }
        // The digests agree again.
        let count = alarms.count
        for value in 40..<60 { #expect(three.write(Self.register, [UInt8(value)])) }
        three.run(for: .seconds(2))
        #expect(three.alarms.withLock { $0.count } == count)
    }

    /// Three nodes with a filled partition, and their stores.
    private func filled(_ seed: UInt64) throws -> (ThreeNodes, Shared<[NodeID: Unchecked]>) {
        let stores = Shared<[NodeID: Unchecked]>([:])
        let three = try ThreeNodes(seed: seed) { setup in
            // Digests that are carried forward say nothing of a page that is old.
            setup.tuning.digestInterval = 0
            // The log begins behind what rows that are lost would need.
            setup.tuning.trailingEntryCount = 0
            setup.checkpointSize = .kibibytes(1)
            Self.keepStores(of: &setup, in: stores)
        }
        for value in 0..<20 { try #require(three.write(Self.register, [UInt8(value)])) }
        three.run(for: .seconds(1))
        return (three, stores)
    }

    @Test(arguments: [false, true], [1, 2, 3] as [UInt64])
    func `S-13 rows of a quiet partition that are not what was applied are found by their sum`(
        ofLeader: Bool, seed: UInt64
    ) throws {
        let (three, stores) = try self.filled(seed)
        let leader = try #require(three.leader())
        let node = ofLeader ? leader : try #require(three.nodes.first { $0.id != leader.id })
        for node in three.nodes { three.scrub(node) }
        #expect(three.alarms.withLock { $0 } == [])
        #expect(node.replicas.scrubFigures.provenCount > 0)
        let store = try #require(stores.withLock { $0[node.id] }?.store)
        try store.rot(.record, Self.register, to: [0xDE])
        #expect(three.value(Self.register, at: node) != [19], "nothing else shows it")
        three.scrub(node)
        three.run(for: .seconds(20))
        let alarms = three.alarms.withLock { $0 }
        #expect(alarms.contains { $0.contains("its rows are not what was applied to them") })
        #expect(alarms.contains { $0.contains("were replaced by a snapshot") })
        if ofLeader { #expect(try #require(three.leader()).id != node.id) }
        for other in three.nodes {
            #expect(try #require(three.status(of: other)).problem == nil)
            #expect(three.value(Self.register, at: other) == [19], "\(other.id)")
        }
        #expect(try store.verify() == [])
        #expect(three.write(Self.register, [20]))
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `S-13 a leader with wrong rows sends them to nobody, and who needs a snapshot gets one`(
        seed: UInt64
    ) throws {
        let (three, stores) = try self.filled(seed)
        let leader = try #require(three.leader())
        let needy = try #require(three.nodes.first { $0.id != leader.id })
        for node in three.nodes { three.scrub(node) }
        let store = try #require(stores.withLock { $0[leader.id] }?.store)
        try store.rot(.record, Self.register, to: [0xDE])
        // Its rows are set aside, and it asks the leader for others.
        let path = try #require(
            needy.files.allFiles.first { $0.raw.contains("rows-") && $0.raw.hasSuffix(".db") })
        needy.files.flip(bit: 3, at: 5_000, of: path)
        three.scrub(needy)
        three.run(for: .seconds(30))
        #expect(needy.replicas.scrubFigures.repairCount == 1)
        #expect(leader.replicas.scrubFigures.damageCount == 1)
        for other in three.nodes {
            #expect(try #require(three.status(of: other)).problem == nil)
            #expect(three.value(Self.register, at: other) == [19], "\(other.id)")
        }
    }

    @Test func `S-13 two in dispute add up their own rows, and the wrong one is replaced`() throws {
        let stores = Shared<[NodeID: Unchecked]>([:])
        let three = try ThreeNodes(seed: 5) { setup in
            Self.keepStores(of: &setup, in: stores)
        }
        for value in 0..<20 { try #require(three.write(Self.register, [UInt8(value)])) }
        three.run(for: .seconds(70))
        let leader = try #require(three.leader())
        let others = three.nodes.filter { $0.id != leader.id }
        let (wrong, away) = (others[0], others[1])
        three.hang(away)
        three.run(for: .seconds(5))
        let store = try #require(stores.withLock { $0[wrong.id] }?.store)
        try store.rot(.record, Self.register, to: [0xDE])
        // The old row is taken out of the digest as it is: from here on the digests differ.
        #expect(three.write(Self.register, [99]))
        // No multiple of 1,024 comes: they are compared because so much time has passed.
        three.run(for: .seconds(90))
        #expect(wrong.replicas.scrubFigures.damageCount == 1)
        #expect(leader.replicas.scrubFigures.damageCount == 0)
        #expect(three.value(Self.register, at: wrong) == [99])
        #expect(try #require(three.status(of: wrong)).problem == nil)
        three.hearAgain()
        three.run(for: .seconds(5))
        #expect(three.value(Self.register, at: away) == [99])
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func `S-43 where the rows of all are wrong the last go on, and say so`(seed: UInt64) throws {
        let (three, stores) = try self.filled(seed)
        for node in three.nodes {
            let store = try #require(stores.withLock { $0[node.id] }?.store)
            try store.rot(.record, Self.register, to: [0xDE])
        }
        for node in three.nodes { three.scrub(node) }
        three.run(for: .seconds(30))
        let leader = try #require(three.leader())
        let problem = try #require(three.status(of: leader)).problem
        #expect(problem?.contains("no other voter has any") == true, "\(problem ?? "none")")
        #expect(three.write(Self.register, [20]))
        #expect(three.value(Self.register, at: leader) == [20])
        // That is how it stays: it is not found again and again.
        let alarms = three.alarms.withLock { $0 }
        for node in three.nodes { three.scrub(node) }
        three.run(for: .seconds(60))
        #expect(try #require(three.leader()).id == leader.id)
        #expect(three.value(Self.register, at: leader) == [20])
        #expect(three.alarms.withLock { $0 } == alarms)
    }

    /// `@unchecked`: all of it runs in one thread.
    private struct Unchecked: @unchecked Sendable {
        let store: PartitionStore<RegisterState>?
        init(_ store: PartitionStore<RegisterState>?) { self.store = store }
    }
}
