import StratusModel
import StratusPlacement
import Testing

/// The log line of a membership change (operator review D3).
@Suite struct ChangeWordsTests {
    @Test func `operator review D3: nodes have names, and partitions the numbers of stratusctl`()
        throws
    {
        let bench = try SystemBench(formed: 3)
        let view = try bench.view
        func words(_ command: SystemCommand) -> ChangeWords { ChangeWords(command, in: view) }
        let move = words(
            .beginMove(ReplicaMove(PartitionID(12).group, from: NodeID(1), to: NodeID(3))))
        #expect("\(move)" == "move begins partition 12 from n1 to n3")
        #expect(move.isDetail)
        let system = words(.finishMove(.system, number: 7))
        #expect("\(system)" == "move is done partition system" && !system.isDetail)
        let drain = words(.drain(NodeID(2), leavesWhenEmpty: false, acceptedReplicaCount: nil))
        #expect("\(drain)" == "drain n2")
        #expect("\(ChangeWords(.undrain(NodeID(9)), in: view))" == "undrain n9")
        #expect("\(ChangeWords(.undrain(NodeID(2)), in: nil))" == "undrain n2")
    }
}
