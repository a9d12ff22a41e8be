import StratusCluster
import StratusDoubles
import StratusModel
import StratusStorage
import Synchronization
import Testing

/// A replica that moved away is deleted, and one that comes back begins anew.
@Suite struct ReplicaRemovalTests {
    private static let group = GroupID(1)

    private func write(_ node: OneNode, _ number: UInt64) {
        let done = Shared(false)
        Task(executorPreference: node.executor) {
            let result = await node.submit(
                .write([1], value: [UInt8(number)]), RequestIdentity(high: 9, low: number))
            if case .success = result {
                done.withLock { $0 = true }
            }
        }
        node.settle()
        #expect(done.withLock { $0 })
    }

    private func delete(_ node: OneNode) {
        let done = Shared(false)
        Task(executorPreference: node.executor) {
            let retired = await node.replicas.retire { _ in false }
            #expect(retired == [Self.group])
            do throws(StoreError) {
                try await node.replicas.discard(retired)
                done.withLock { $0 = true }
            } catch { Issue.record("\(error)") }
        }
        node.settle()
        #expect(done.withLock { $0 })
    }

    @Test func `a deleted replica leaves no rows and no entries, over a power failure`() throws {
        let node = try OneNode(seed: 1)
        for number in 1...5 { self.write(node, UInt64(number)) }
        #expect(node.log.last(of: Self.group).index > .zero)
        self.delete(node)
        #expect(node.log.last(of: Self.group).index == .zero)
        #expect(try node.world.files.list("partitions/00001").isEmpty)
        node.world.simulatedFiles.restart(after: .powerLossLosingAll)
        let again = try OneNode(seed: 2, world: node.world)
        #expect(again.log.last(of: Self.group).index == .zero)
        #expect(again.log.damage.isNone)
        // It begins with nothing, and works.
        #expect(try again.readNow([1]).get() == nil)
        self.write(again, 100)
        again.world.simulatedFiles.restart(after: .powerLossLosingAll)
        let third = try OneNode(seed: 3, world: again.world)
        #expect(try third.readNow([1]).get() == [100])
    }

    @Test func `what a crash left of a deletion is deleted at the next start`() throws {
        let node = try OneNode(seed: 4)
        for number in 1...3 { self.write(node, UInt64(number)) }
        // The log is forgotten, the process ends before the files go.
        Task(executorPreference: node.executor) { _ = await node.replicas.retire { _ in false } }
        node.settle()
        node.world.simulatedFiles.restart(after: .processCrash)
        let files = node.world.files
        try PartitionRemoval.remove([Self.group], in: "partitions", from: files)
        try PartitionRemoval.remove([Self.group], in: "partitions", from: files)
        let again = try OneNode(seed: 5, world: node.world)
        #expect(try again.readNow([1]).get() == nil)
    }
}
