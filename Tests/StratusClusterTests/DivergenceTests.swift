import StratusCluster
import StratusDoubles
import StratusModel
import StratusStorage
import Testing

/// Core audit 11: rows that differ and say nothing of it, found by the digests that replicas
/// compare.
@Suite struct DivergenceTests {
    private static let register: Bytes = [0x61]

    @Test(arguments: [false, true], [1, 2] as [UInt64])
    func `S-13 rows that differ are found, replaced and told`(ofLeader: Bool, seed: UInt64) throws {
        let stores = Shared<[NodeID: Unchecked]>([:])
        let three = try ThreeNodes(seed: seed) { setup in
            setup.tuning.digestInterval = 8
            let (open, node) = (setup.openPartition, setup.node)
            setup.openPartition = { (group) throws(StoreError) in
                let partition = try open(group)
                let store = Unchecked(partition as? PartitionStore<RegisterState>)
                stores.withLock { $0[node] = store }
                return partition
            }
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
        #expect(node.replicas.divergedReplicaCount == 1)
        let alarms = three.alarms.withLock { $0 }
        #expect(alarms.contains { $0.contains("its rows differ from those of most replicas") })
        #expect(alarms.contains { $0.contains("were replaced by a snapshot") })
        for other in three.nodes {
            let status = try #require(three.status(of: other))
            #expect(status.problem == nil)
            #expect(three.value(Self.register, at: other) == [39], "\(other.id)")
            if other.id != node.id { #expect(other.replicas.divergedReplicaCount == 0) }
        }
        // The digests agree again.
        let count = alarms.count
        for value in 40..<60 { #expect(three.write(Self.register, [UInt8(value)])) }
        three.run(for: .seconds(2))
        #expect(three.alarms.withLock { $0.count } == count)
    }

    /// `@unchecked`: all of it runs in one thread.
    private struct Unchecked: @unchecked Sendable {
        let store: PartitionStore<RegisterState>?
        init(_ store: PartitionStore<RegisterState>?) { self.store = store }
    }
}
