import Foundation
import StratusCoding
import StratusModel
import StratusPlacement
import Testing

/// Keys to partitions, partitions to nodes, and the bytes of both.
@Suite struct PlacementTableTests {
    static let container = ContainerReference(
        container: "iCloud.org.example.Library", environment: .production)

    /// The hashes are of another implementation, checked against the vectors of SipHash's authors.
    static let keys: [(name: String, key: ShardKey, hash: UInt64, of256: UInt16)] = [
        (
            "a private database",
            .database(
                DatabaseID(
                    container: container, scope: .private,
                    owner: "_9c1f0e7a2b3d4c5e6f708192a3b4c5d6")), 0xD4CF_7FD6_7C2D_192A, 212
        ),
        (
            "the public database",
            .database(DatabaseID(container: container, scope: .public, owner: "")),
            0x9544_AB60_16CA_45C2, 149
        ),
        (
            "a bucket of it",
            .database(DatabaseID(container: container, scope: .public, owner: ""), bucket: 3),
            0x05D9_BE9E_C2EE_964A, 5
        ),
        ("the container's home", .container(container), 0xB43D_234F_542D_54F9, 180),
        (
            "an account's home", .account("0f0e0d0c0b0a09080706050403020100"),
            0x370E_4022_FD7F_233F, 55
        ),
    ]

    @Test(arguments: Self.keys.indices) func `a key stays in its partition for ever`(row: Int) {
        let (name, key, hash, partition) = Self.keys[row]
        #expect(
            PlacementTable.hash(of: key) == hash,
            "\(name): \(String(PlacementTable.hash(of: key), radix: 16))")
        #expect(PlacementTable(partitionCount: 256).partition(of: key).raw == partition, "\(name)")
    }

    @Test func `with twice the partitions each key goes to one of its partition's halves`() {
        for number in 0..<500 {
            let key = ShardKey.account("account-\(number)")
            var last = PlacementTable(partitionCount: 1).partition(of: key)
            #expect(last.raw == 0)
            var count = 2
            while count <= PlacementTable.partitionCountMax {
                let next = PlacementTable(partitionCount: count).partition(of: key)
                #expect(next.raw >> 1 == last.raw)
                last = next
                count *= 2
            }
        }
    }

    @Test func `keys spread evenly over partitions`() {
        let table = PlacementTable(partitionCount: 64)
        var counts = Array(repeating: 0, count: 64)
        for number in 0..<12_800 {
            counts[Int(table.partition(of: .account("account-\(number)")).raw)] += 1
        }
        // 200 expected, standard deviation 14: five of them either way.
        #expect(counts.allSatisfy { $0 > 130 && $0 < 270 }, "\(counts)")
    }

    @Test func `partition p is replicated by group p + 1, and group 0 is no partition`() {
        #expect(PartitionID(0).group == GroupID(1))
        #expect(PartitionID(4_095).group == GroupID(4_096))
        #expect(PartitionID(group: GroupID(1)) == PartitionID(0))
        #expect(PartitionID(group: .system) == nil)
    }

    static var small: PlacementTable {
        var table = PlacementTable(partitionCount: 4)
        table.epoch = 0x0102_0304
        table.setReplicas([NodeID(3), NodeID(1), NodeID(2)], of: PartitionID(0))
        table.setReplicas([NodeID(70_000)], of: PartitionID(3))
        return table
    }

    @Test func `a table of version 1 reads and writes as ever`() throws {
        let bytes = try Golden.bytes("placement-table-1", now: Self.small.encoded())
        #expect(Golden.hexadecimal(Self.small.encoded()) == Golden.hexadecimal(bytes))
        #expect(try PlacementTable(decoding: bytes) == Self.small)
        #expect(
            Self.small.replicas(of: PartitionID(0)) == [NodeID(1), NodeID(2), NodeID(3)])
    }

    @Test func `damaged tables are refused, none traps`() throws {
        let bytes = Self.small.encoded()
        for length in bytes.indices {
            #expect(throws: DecodingError.self) {
                try PlacementTable(decoding: Bytes(bytes[..<length]))
            }
        }
        #expect(throws: DecodingError.self) { try PlacementTable(decoding: bytes + [0]) }
        var random = SeededGenerator(seed: 11)
        for _ in 0..<2_000 {
            var damaged = bytes
            damaged[Int.random(in: damaged.indices, using: &random)] = UInt8.random(
                in: 0...255, using: &random)
            // Either refused or another table: what counts is that reading it is safe.
            if let table = try? PlacementTable(decoding: damaged) {
                #expect(table.encoded() == damaged)
            }
        }
    }

    @Test func `a first table is the same on every node, whatever order it learnt its peers in`() {
        let nodes = [NodeID(11), NodeID(5), NodeID(900), NodeID(7)]
        let table = PlacementTable.initial(nodes: nodes, partitionCount: 256, replicaCount: 3)
        #expect(table.epoch == 1)
        #expect(
            table
                == .initial(
                    nodes: Array(nodes.reversed()), partitionCount: 256, replicaCount: 3))
        for node in nodes { #expect(table.partitions(on: node).count == 192) }
        let alone = PlacementTable.initial(
            nodes: [NodeID(1)], partitionCount: 16, replicaCount: 3)
        #expect(alone.partitions.allSatisfy { alone.replicas(of: $0) == [NodeID(1)] })
    }
}
