import StratusDoubles
import StratusModel
import StratusPlacement
import StratusRows
import StratusSealing
import StratusStorage
import Testing

@testable import StratusCluster

/// A node that served alone and becomes the first of a cluster: its files, and who may start on
/// them.
@Suite struct ConvertedNodeTests {
    private static let alone = ClusterFormation(
        alone: RequestIdentity(high: 0x11, low: 0x22), partitionCount: 16)
    private static let converted = ClusterFormation(converting: alone, to: "a", level: 2)
    private static let secret = Bytes("a secret of some characters".utf8)
    private static let master = ClusterMaster(
        key: Bytes(0..<32), adminToken: Bytes(String(repeating: "t", count: 40).utf8))

    private static func member(_ names: [String]) -> ClusterFormation {
        ClusterFormation(
            peers: names.map { ClusterFormation.Peer(name: $0, host: $0, port: 7400) },
            name: "a", secret: Self.secret, partitionCount: 16)
    }

    // MARK: CLUSTER

    @Test func `a converted node keeps identity, number and partitions of its data`() throws {
        let (alone, converted) = (Self.alone, Self.converted)
        #expect(converted.cluster == alone.cluster && converted.node == alone.node)
        #expect(converted.partitionCount == alone.partitionCount && converted.name == "a")
        #expect(converted.table == alone.table)
        #expect(alone.isAlone && !converted.isAlone && !Self.member(["a"]).isAlone)
        // What recovery makes of it begins at the same level.
        #expect(converted.renamed(ClusterID(high: 9, low: 9)).convertedLevel == 2)
    }

    @Test func `CLUSTER of version 3 reads and writes as ever`() throws {
        let bytes = Self.converted.encoded()
        #expect(
            Self.hexadecimal(bytes)
                == "535452415455534303110000000000000022000000000000000100000010000200"
                + "0000010100000001618a824242")
        #expect(try ClusterFormation(decoding: bytes) == Self.converted)
        for position in 0..<bytes.count * 8 {
            var damaged = bytes
            damaged[position / 8] ^= 1 << (position % 8)
            #expect(throws: (any Error).self) { try ClusterFormation(decoding: damaged) }
        }
    }

    @Test func `a directory of a lone node starts no member, and that of a member no lone node`()
        throws
    {
        let world = SimulatedWorld(seed: 1)
        #expect(try Self.alone.adopted(in: world) == Self.alone)
        let early = #expect(throws: ClusterFormation.Refusal.self) {
            try Self.member(["a"]).adopted(in: world)
        }
        #expect(early?.description.contains("stratus cluster convert") == true)
        // Cut off before CLUSTER: MASTER changes nothing for a node that serves alone.
        try ClusterMaster.keep(Self.master.sealed(under: Self.secret), in: world)
        world.simulatedFiles.restart(after: .powerLossLosingAll)
        #expect(try Self.alone.adopted(in: world) == Self.alone)

        try Self.converted.keep(in: world)
        world.simulatedFiles.restart(after: .powerLossLosingAll)
        for names in [["a"], ["a", "b", "c"]] {
            #expect(try Self.member(names).adopted(in: world) == Self.converted)
        }
        let late = #expect(throws: ClusterFormation.Refusal.self) {
            try Self.alone.adopted(in: world)
        }
        #expect(late?.description.contains("'cluster' section") == true)
        // A node of that name that was always alone is no node of that name of a cluster.
        try ClusterFormation(converting: Self.alone, to: "local", level: 2).keep(in: world)
        #expect(throws: ClusterFormation.Refusal.self) { try Self.alone.adopted(in: world) }
    }

    // MARK: MASTER

    @Test func `the master value of version 1 reads and writes as ever`() throws {
        let sealed = Self.master.sealed(under: Self.secret)
        #expect(
            Self.hexadecimal(sealed)
                == "019ee5ca901c0af159bcb523d68890a5294f21ca78a64ff21a1730428085e78f48"
                + "96eadc0c8ffd9f278db009ea4b24601c0de65984898e8a285f984ec4f8a4d1c8fe0f"
                + "64f9b0cfceb374f939156a71f294668ec322fdf429e661afbe6e375f36f9")
        #expect(try ClusterMaster(opening: sealed, with: Self.secret) == Self.master)
    }

    @Test func `it opens with its secret only, and says what is wrong`() throws {
        let sealed = Self.master.sealed(under: Self.secret)
        #expect(sealed == Self.master.sealed(under: Self.secret))
        #expect(throws: ClusterMaster.Refusal.otherSecret) {
            try ClusterMaster(opening: sealed, with: Self.secret + [0])
        }
        for position in 0..<sealed.count * 8 {
            var damaged = sealed
            damaged[position / 8] ^= 1 << (position % 8)
            #expect(throws: ClusterMaster.Refusal.self) {
                try ClusterMaster(opening: damaged, with: Self.secret)
            }
        }
        for count in 0..<sealed.count {
            #expect(throws: ClusterMaster.Refusal.self) {
                try ClusterMaster(opening: Bytes(sealed[..<count]), with: Self.secret)
            }
        }
        let content = Self.hexadecimal(sealed)
        #expect(!content.contains(Self.hexadecimal(Self.master.key)))
        #expect(!content.contains(Self.hexadecimal(Self.master.adminToken)))
        // The largest that there may be fits into a view.
        let largest = ClusterMaster(
            key: Self.master.key,
            adminToken: Bytes(
                repeating: 0x61, count: Int(ClusterMaster.adminTokenSizeMax.raw)))
        #expect(largest.sealed(under: Self.secret).count <= Formation.masterSizeMax.raw)
    }

    @Test func `a node that joins writes down what its view has, and needs the view no more`()
        throws
    {
        let world = SimulatedWorld(seed: 2)
        let sealed = Self.master.sealed(under: Self.secret)
        #expect(try ClusterMaster.found(in: world, view: nil) == nil)
        #expect(try ClusterMaster.found(in: world, view: sealed) == sealed)
        world.simulatedFiles.restart(after: .powerLossLosingAll)
        #expect(try ClusterMaster.found(in: world, view: nil) == sealed)
        let whole = try world.files.contents(of: ClusterMaster.path, limit: 1 << 16)
        for position in whole.indices {
            var damaged = whole
            damaged[position] ^= 4
            try world.files.replace(ClusterMaster.path, with: damaged)
            #expect(throws: ClusterMaster.Refusal.self) { try ClusterMaster.kept(in: world) }
        }
    }

    // MARK: The cluster's state

    @Test func `the cluster begins at the level of the node's rows, with its master value`() throws
    {
        let sealed = Self.master.sealed(under: Self.secret)
        let formation = Self.converted.formation(addresses: ["a": "a:7400"], master: sealed)
        let view = try #require(ClusterView.formed(by: formation))
        #expect(view.settings.featureLevel == 2 && view.settings.master == sealed)
        #expect(view.node(NodeID(1))?.name == "a" && view.lagging(behind: .build).isEmpty)
        #expect(view.replicas(of: .system) == [NodeID(1)])
        // A node of a release that cannot read the rows is not let in.
        var state = SystemBenchState()
        #expect(try state.run(.form(formation)) == .done(revision: 1))
        #expect(try state.run(.form(formation)) == .done(revision: 1))
        let hash = Bytes(repeating: 7, count: JoinToken.hashSize)
        _ = try state.run(.addToken(hash: hash, expiresMilliseconds: 99))
        var older = ClusterNode(id: NodeID(0), name: "b", address: "b:7400", key: [2])
        guard case .refused(let refusal) = try state.run(.join(older, tokenHash: hash)) else {
            Issue.record("a node of level 1 was let in")
            return
        }
        #expect(refusal.reason == .featureLevelTooLow)
        older.featureLevel = 2
        guard case .joined(let id, _) = try state.run(.join(older, tokenHash: hash)) else {
            Issue.record("a node of level 2 was not let in")
            return
        }
        #expect(id == NodeID(2))
        let joined = try state.view()
        #expect(try ClusterView(decoding: joined.encoded()).settings.master == sealed)
    }

    @Test func `a formation around a converted node without its master value changes nothing`()
        throws
    {
        var state = SystemBenchState()
        let outcome = try state.run(.form(Self.converted.formation(addresses: ["a": "a:1"])))
        #expect(outcome == .refused(SystemRefusal(.badRequest)))
    }

    private static func hexadecimal(_ bytes: Bytes) -> String {
        bytes.map { String(Int($0) + 0x100, radix: 16).suffix(2) }.joined()
    }
}

/// The system partition's state.
private struct SystemBenchState {
    let rows = Rows()
    var state = SystemState()
    var index: UInt64 = 0

    mutating func run(_ command: SystemCommand) throws -> SystemOutcome {
        self.index += 1
        let outcome = try self.state.apply(
            try SystemCommand(decoding: command.encoded()).enveloped(
                identity: RequestIdentity(high: 0, low: self.index),
                deadlineMilliseconds: .max, principal: Principal(kind: .system)),
            at: EntryPosition(
                index: LogIndex(self.index), time: HybridTime(milliseconds: 1)),
            over: self.rows)
        return try SystemOutcome(decoding: outcome.body)
    }

    func view() throws -> ClusterView {
        let query = Query(kind: .system, body: SystemQuery.view.encoded())
        guard
            case .view(let view?) = try SystemAnswer(
                decoding: self.state.answer(query, over: self.rows.view).body)
        else { throw SystemRefusal(.notFormed) }
        return view
    }
}
