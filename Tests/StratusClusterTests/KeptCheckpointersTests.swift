import StratusCoding
import StratusDoubles
import StratusModel
import StratusSQLite
import StratusStorage
import Testing

@testable import StratusCluster

/// However many partitions are checkpointed, few connections stay open for it.
@Suite struct KeptCheckpointersTests {
    @Test func `only the eight used last are kept, whatever was checkpointed`() throws {
        let system = FileSystem(SimulatedWorld(seed: 1).files)
        var kept = KeptCheckpointers()
        func partition(_ number: UInt16) throws -> PartitionStore<RegisterState> {
            let store = try PartitionStore(
                RegisterState(), group: GroupID(number), in: "partitions", of: system)
            var outcomes: [Outcome] = []
            try store.apply([Self.entry][...], into: &outcomes)
            try store.commit()
            return store
        }
        let partitions = try (0..<12).map { try partition($0) }
        var made: [PartitionCheckpointer] = []
        for (number, partition) in partitions.enumerated() {
            made.append(
                try #require(try kept.checkpointer(of: GroupID(UInt16(number)), partition)))
            #expect(kept.count <= KeptCheckpointers.countMax)
        }
        #expect(kept.count == KeptCheckpointers.countMax)
        // The first of those that are left becomes the last, so the next one goes.
        #expect(try kept.checkpointer(of: GroupID(4), partitions[4]) === made[4])
        #expect(try kept.checkpointer(of: GroupID(0), partitions[0]) !== made[0])
        #expect(kept.remove(GroupID(5)) == nil && kept.remove(GroupID(4)) === made[4])
        #expect(kept.count == KeptCheckpointers.countMax - 1)
    }

    private static let entry = Entry(
        index: LogIndex(1), term: Term(1), time: HybridTime(milliseconds: 1_700_000_000_000),
        kind: .command,
        payload: Command(
            kind: .reference, identity: RequestIdentity(high: 5, low: 1),
            deadlineMilliseconds: 1_700_000_030_000,
            container: ContainerReference(container: "iCloud.test", environment: .production),
            schemaVersion: 0, principal: Principal(kind: .system),
            body: RegisterCommand.write(Bytes("r".utf8), value: [1]).encoded()
        ).encoded())
}
