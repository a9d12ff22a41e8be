import StratusCoding
import StratusDoubles
import StratusModel
import StratusPlacement
import StratusRows
import Testing

/// Every format of the system partition still reads and writes as it did.
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
        .raiseFeatureLevel(3),
        .form(Self.converted),
        .recover(
            ClusterRecovery(
                cluster: ClusterID(high: 0x1122, low: 0x3344), node: NodeID(7),
                lost: [NodeID(300), NodeID(8)], groups: [.system, GroupID(256)])),
        .withdrawCertificate(Bytes(0..<32)), .restoreCertificate(Bytes(0..<32)),
    ]

    /// Around a node that served alone before.
    static let converted: Formation = {
        var node = SystemBench.peer(1)
        node.featureLevel = 1
        return Formation(
            cluster: ClusterID(high: 1, low: 2), partitionCount: 2, replicaCount: 3, nodes: [node],
            converted: Formation.Converted(featureLevel: 1, master: Bytes(0..<90)))
    }()

    @Test func `commands read and write as ever`() throws {
        var writer = ByteWriter()
        for command in Self.commands { writer.write(prefixed: command.encoded()) }
        let golden = try Golden.bytes("system-commands-1", now: writer.bytes)
        #expect(Golden.hexadecimal(writer.bytes) == Golden.hexadecimal(golden))
        var reader = ByteReader(golden)
        for command in Self.commands {
            #expect(try SystemCommand(decoding: try reader.prefixed()) == command)
        }
        try reader.finish()
        #expect(
            Set(Self.commands.map(\.number))
                == Set(NumberFamily.systemCommand.entries.map(\.number)))
    }

    /// The flag of the settings, and that of the view.
    @Test func `views with a master value, and with a withdrawn certificate, read as ever`() throws
    {
        var bench = try SystemBench(formed: 1, partitionCount: 2)
        try bench.apply(.withdrawCertificate(Bytes(0..<32)))
        let views = [
            "cluster-view-2": try #require(ClusterView.formed(by: Self.converted)),
            "cluster-view-3": try bench.view,
        ]
        for (name, view) in views {
            let written = try Golden.bytes(name, now: view.encoded())
            #expect(Golden.hexadecimal(view.encoded()) == Golden.hexadecimal(written), "\(name)")
            #expect(try ClusterView(decoding: written) == view, "\(name)")
        }
    }

    @Test func `outcomes read and write as ever`() throws {
        let outcomes: [SystemOutcome] = [
            .done(revision: 300), .joined(NodeID(4), revision: 5),
            .refused(SystemRefusal(.holdsReplicas, count: 9, limit: 300)),
        ]
        var writer = ByteWriter()
        for outcome in outcomes { writer.write(prefixed: outcome.encoded()) }
        let golden = try Golden.bytes("system-outcomes-1", now: writer.bytes)
        #expect(Golden.hexadecimal(writer.bytes) == Golden.hexadecimal(golden))
        var reader = ByteReader(golden)
        for outcome in outcomes {
            #expect(try SystemOutcome(decoding: try reader.prefixed()) == outcome)
        }
    }

    /// A cluster with one of everything: all its rows, and what a node is told.
    @Test func `rows and the view read and write as ever`() throws {
        var bench = SystemBench()
        var formation = SystemBench.formation(nodes: 3, partitionCount: 2)
        formation.nodes[0].rack = "a"
        try bench.apply(.form(formation))
        let id = try bench.join(4)
        try bench.apply(
            .beginMove(ReplicaMove(GroupID(1), from: NodeID(2), to: id, fence: LogIndex(3))))
        var writer = ByteWriter()
        for row in bench.rows.contents(of: .system) {
            writer.write(prefixed: row.key)
            writer.write(prefixed: row.row)
        }
        let rows = try Golden.bytes("system-rows-1", now: writer.bytes)
        #expect(Golden.hexadecimal(writer.bytes) == Golden.hexadecimal(rows))
        let view = try Golden.bytes("cluster-view-1", now: try bench.view.encoded())
        let written = Golden.hexadecimal(try bench.view.encoded())
        #expect(written == Golden.hexadecimal(view))

        let read = SystemBench()
        var reader = ByteReader(rows)
        while !reader.isAtEnd {
            let key = try reader.prefixed()
            let row = try reader.prefixed()
            try read.rows.put(.system, key.span.bytes, row.span.bytes)
        }
        #expect(try read.view == ClusterView(decoding: view))
    }

    @Test func `every refusal says what is so`() {
        for reason in SystemRefusal.Reason.allCases {
            #expect(SystemRefusal(reason, count: 2, limit: 3).explanation.count > 10)
        }
    }
}
