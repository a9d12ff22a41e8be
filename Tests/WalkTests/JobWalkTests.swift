import StratusDoubles
import StratusModel
import StratusNode
import StratusRecords
import Testing

/// The work that a command leaves behind is done afterwards, slice by slice, however often the
/// process ends.
@Suite struct JobWalkTests {
    /// Slices carried out until nothing waits; nil when that does not come to an end.
    static func drain(_ node: SimulatedNode, limit: Int = 200) -> Int? {
        for count in 0..<limit where !node.stepJobs() { return count }
        return nil
    }

    static func fill(_ node: SimulatedNode, records: Int) {
        let zone =
            #"{"operations":[{"operationType":"create","zone":{"zoneID":{"zoneName":"Z"}}}]}"#
        #expect(node.post([("zones/modify", zone)])[0]?.status == 200)
        for start in stride(from: 0, to: records, by: 200) {
            let operations = (start..<min(start + 200, records)).map {
                #"{"operationType":"create","record":{"recordType":"Walk","recordName":"n\#($0)","#
                    + #""fields":{"text":{"value":"t\#($0)"}}}}"#
            }
            let body =
                #"{"zoneID":{"zoneName":"Z"},"operations":[\#(operations.joined(separator: ","))]}"#
            let answer = node.post([("records/modify", body)])[0]
            #expect(SimulatedNode.isSaved(answer), "\(answer?.body.prefix(300) ?? "")")
        }
    }

    static let deletion =
        #"{"operations":[{"operationType":"delete","zone":{"zoneID":{"zoneName":"Z"}}}]}"#

    @Test func `a deleted zone is purged in bounded slices`() throws {
        let world = SimulatedWorld(seed: 1)
        let node = try SimulatedNode(over: world, seed: 1)
        Self.fill(node, records: 800)
        _ = Self.drain(node)
        #expect(node.post([("zones/modify", Self.deletion)])[0]?.status == 200)
        let slices = try #require(Self.drain(node))
        #expect(slices > 3, "800 records with their feed and index rows in \(slices) slices")
        #expect(Self.drain(node) == 0)
    }

    @Test func `a purge goes on where the process ended`() throws {
        let world = SimulatedWorld(seed: 2)
        do {
            let node = try SimulatedNode(over: world, seed: 2)
            Self.fill(node, records: 800)
            _ = Self.drain(node)
            #expect(node.post([("zones/modify", Self.deletion)])[0]?.status == 200)
            #expect(node.stepJobs())
            world.simulatedFiles.crash()
        }
        world.simulatedFiles.restart(after: .powerLossLosingAll)
        let node = try SimulatedNode(over: world, seed: 3)
        let slices = try #require(Self.drain(node))
        #expect(slices > 1)
        // The name is free, and the new zone is not the old one.
        Self.fill(node, records: 1)
        let feed = node.post([("changes/zone", #"{"zones":[{"zoneID":{"zoneName":"Z"}}]}"#)])[0]
        #expect(feed?.body.contains(#""n0""#) == true)
        #expect(feed?.body.contains(#""n1""#) == false)
    }
}
