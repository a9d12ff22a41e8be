import Foundation
import Testing

/// Partitions are asked in one way.
@Suite struct PartitionTests {
    private let repository = Repository()

    /// Beside the router's module: what puts a node together, and routers of the simulator and of a
    /// benchmark.
    private static let makers: Set = [
        "Sources/StratusNode/Assembly/NodeCluster.swift",
        "Sources/StratusNode/Assembly/PeerReceivers.swift",
        "Sources/StratusSimulation/Membership/ClusterShells.swift",
        "Sources/StratusSimulation/Membership/PeerAsks.swift",
        "Sources/stratus-bench/IdentityBenchmark.swift",
    ]

    @Test func `only the client and what makes it name the router`() throws {
        var clients = 0
        for file in try self.repository.swiftFiles(under: "Sources")
        where file.module != "StratusCluster" {
            for (number, line) in file.code {
                if line.contains("PartitionClient") { clients += 1 }
                #expect(
                    Self.makers.contains(file.path)
                        || !(line.contains("ClusterRouter") || line.contains("PartitionRouter")
                            || line.contains("router")),
                    "\(file.path):\(number) names the router: ask by PartitionClient")
            }
        }
        #expect(clients > 10, "the client was not found")
    }

    @Test func `within the router's module only the client submits and reads by it`() throws {
        for file in try self.repository.swiftFiles(under: "Sources/StratusCluster")
        where !file.path.hasSuffix("Routing/PartitionClient.swift") {
            for (number, line) in file.code {
                #expect(
                    !line.contains("router.submit(") && !line.contains("router.read("),
                    "\(file.path):\(number) goes past PartitionClient")
            }
        }
    }
}
