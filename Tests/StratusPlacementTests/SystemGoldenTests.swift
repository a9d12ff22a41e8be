import StratusCoding
import StratusModel
import StratusPlacement
import Testing

/// Every version of the system partition's formats still reads as it did.
@Suite struct SystemGoldenTests {
    static let node = ClusterNode(
        id: NodeID(7), state: .draining, leavesWhenEmpty: true, name: "seven",
        address: "[fd00::7]:7400", weight: 150, rack: "b", incarnation: NodeIncarnation(0x1122),
        directory: 0x3344, featureLevel: 2, key: [0xAA, 0xBB])

    static let commands: [SystemCommand] = [
        .form(
            Formation(
                cluster: ClusterID(high: 1, low: 2), partitionCount: 16, replicaCount: 3,
                nodes: [Self.node])),
        .addToken(hash: [1, 2, 3], expiresMilliseconds: 1_700_000_000_000),
        .revokeToken(hash: [1, 2, 3]),
        .join(Self.node, tokenHash: [1, 2, 3]),
        .announce(Self.node),
        .drain(NodeID(7), leavesWhenEmpty: true, acceptedReplicaCount: 2),
        .undrain(NodeID(7)),
        .remove(NodeID(7), acceptedLossCount: 300),
        .configure(NodeID(7), weight: 50, rack: "c"),
        .beginMove(
            ReplicaMove(
                GroupID(3), from: NodeID(7), to: NodeID(8), number: 1, fence: LogIndex(9))),
        .fenceMove(GroupID(3), number: 300, at: LogIndex(10)),
        .finishMove(GroupID(3), number: 300),
        .abandonMove(GroupID(3), number: 300, at: LogIndex(11)),
        .notify(.revocation, payload: [9, 9]),
        .raiseFeatureLevel(3),
    ]

    /// Written since level 2.
    static let later: [SystemCommand] = [
        .form(
            Formation(
                cluster: ClusterID(high: 1, low: 2), nodes: [Self.node],
                converted: Formation.Converted(featureLevel: 2, master: [1])))
    ]

    @Test func `commands of version 1 read and write as ever`() throws {
        var writer = ByteWriter()
        for command in Self.commands { writer.write(prefixed: command.encoded()) }
        let golden = try Golden.bytes("system-commands-1")
        #expect(Golden.hexadecimal(writer.bytes) == Golden.hexadecimal(golden))
        var reader = ByteReader(golden)
        for command in Self.commands {
            #expect(try SystemCommand(decoding: try reader.prefixed()) == command)
        }
        try reader.finish()
    }

    @Test func `a formation around a converted node, and its view, read and write as ever`() throws
    {
        var node = SystemBench.peer(1)
        node.featureLevel = 2
        let formation = Formation(
            cluster: ClusterID(high: 1, low: 2), partitionCount: 2, replicaCount: 3, nodes: [node],
            converted: Formation.Converted(featureLevel: 2, master: Bytes(0..<90)))
        let command = SystemCommand.form(formation)
        #expect(command.level == .two && command.encoded()[1] == 17)
        let golden = try Golden.bytes("system-form-converted-1")
        #expect(Golden.hexadecimal(command.encoded()) == Golden.hexadecimal(golden))
        #expect(try SystemCommand(decoding: golden) == command)
        // Settings of version 2.
        let view = try #require(ClusterView.formed(by: formation))
        let written = try Golden.bytes("cluster-view-2")
        #expect(Golden.hexadecimal(view.encoded()) == Golden.hexadecimal(written))
        #expect(try ClusterView(decoding: written) == view)
    }

    @Test func `commands about certificates, and a view with one, read and write as ever`() throws {
        let commands: [SystemCommand] = [
            .withdrawCertificate(Bytes(0..<32)), .restoreCertificate(Bytes(0..<32)),
        ]
        var writer = ByteWriter()
        for command in commands {
            #expect(command.level == .two)
            writer.write(prefixed: command.encoded())
        }
        let golden = try Golden.bytes("system-certificates-1")
        #expect(Golden.hexadecimal(writer.bytes) == Golden.hexadecimal(golden))
        var reader = ByteReader(golden)
        for command in commands {
            #expect(try SystemCommand(decoding: try reader.prefixed()) == command)
        }
        var bench = try SystemBench(formed: 1, partitionCount: 2)
        try bench.apply(commands[0])
        let view = try bench.view
        let written = try Golden.bytes("cluster-view-3")
        #expect(Golden.hexadecimal(view.encoded()) == Golden.hexadecimal(written))
        #expect(try ClusterView(decoding: written) == view)
    }

    @Test func `a recovery of version 1 reads and writes as ever`() throws {
        let command = SystemCommand.recover(
            ClusterRecovery(
                cluster: ClusterID(high: 0x1122, low: 0x3344), node: NodeID(7),
                lost: [NodeID(300), NodeID(8)], groups: [.system, GroupID(256)]))
        let golden = try Golden.bytes("system-recover-1")
        #expect(Golden.hexadecimal(command.encoded()) == Golden.hexadecimal(golden))
        #expect(try SystemCommand(decoding: golden) == command)
    }

    @Test func `outcomes of version 1 read and write as ever`() throws {
        let outcomes: [SystemOutcome] = [
            .done(revision: 300), .joined(NodeID(4), revision: 5),
            .refused(SystemRefusal(.holdsReplicas, count: 9, limit: 300)),
        ]
        var writer = ByteWriter()
        for outcome in outcomes { writer.write(prefixed: outcome.encoded()) }
        let golden = try Golden.bytes("system-outcomes-1")
        #expect(Golden.hexadecimal(writer.bytes) == Golden.hexadecimal(golden))
        var reader = ByteReader(golden)
        for outcome in outcomes {
            #expect(try SystemOutcome(decoding: try reader.prefixed()) == outcome)
        }
    }

    /// A cluster with one of everything: all its rows, and what a node is told.
    @Test func `rows and the view of version 1 read and write as ever`() throws {
        var bench = SystemBench()
        var formation = SystemBench.formation(nodes: 3, partitionCount: 2)
        formation.nodes[0].rack = "a"
        try bench.apply(.form(formation))
        let id = try bench.join(4)
        try bench.apply(
            .beginMove(ReplicaMove(GroupID(1), from: NodeID(2), to: id, fence: LogIndex(3))))
        try bench.apply(.notify(.container, payload: [1, 2]))
        var writer = ByteWriter()
        for row in bench.rows.tables[Table.system.rawValue] ?? [] {
            writer.write(prefixed: row.key)
            writer.write(prefixed: row.row)
        }
        let rows = try Golden.bytes("system-rows-1")
        #expect(Golden.hexadecimal(writer.bytes) == Golden.hexadecimal(rows))
        let view = try Golden.bytes("cluster-view-1")
        let written = Golden.hexadecimal(try bench.view.encoded())
        #expect(written == Golden.hexadecimal(view))

        var read = SystemBench()
        var reader = ByteReader(rows)
        while !reader.isAtEnd {
            let key = try reader.prefixed()
            let row = try reader.prefixed()
            read.rows.put(.system, key.span.bytes, row.span.bytes)
        }
        #expect(try read.view == ClusterView(decoding: view))
    }

    @Test func `every refusal says what is so`() {
        for reason in SystemRefusal.Reason.allCases {
            #expect(SystemRefusal(reason, count: 2, limit: 3).explanation.count > 10)
        }
    }
}
