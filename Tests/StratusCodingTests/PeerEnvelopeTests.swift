import StratusCoding
import StratusModel
import Testing

/// The content of a link's frames reads for ever as it was first written.
@Suite struct PeerEnvelopeTests {
    static let messages: [(name: String, message: PeerMessage)] = [
        (
            "hello",
            .hello(
                PeerHello(
                    cluster: ClusterID(high: 0x0102, low: 0x0304), node: NodeID(1), name: "a",
                    incarnation: NodeIncarnation(0xABCD), receiver: NodeID(2), protocolMin: 1,
                    protocolMax: 3, featureLevel: 7))
        ),
        (
            "welcome",
            .welcome(
                PeerWelcome(
                    protocolVersion: 1, incarnation: NodeIncarnation(0xABCE), featureLevel: 7))
        ),
        ("refusal", .refusal(PeerRefusal(.otherCluster, "no"))),
        ("taken", .taken(1_000_000)),
        ("heartbeat", .heartbeat(PeerMessageTests.heartbeat)),
        (
            "consensus",
            .consensus(GroupID(12), ConsensusMessage(term: Term(6), .probe(round: 1_000)))
        ),
        (
            "command",
            .request(
                PeerRequest(
                    number: 300, group: GroupID(12), epoch: 1, remainingMilliseconds: 2_000,
                    body: .command(GoldenTests.command)))
        ),
        (
            "query",
            .request(
                PeerRequest(
                    number: 301, group: GroupID(12), epoch: 1, remainingMilliseconds: 2_000,
                    body: .query(Query(kind: .records, body: [1, 2, 3]))))
        ),
        (
            "outcome",
            .response(
                PeerResponse(
                    number: 300, answer: .outcome(Outcome(.decided, body: [1], detail: [2, 3]))))
        ),
        ("answer", .response(PeerResponse(number: 301, answer: .answer(QueryAnswer(body: [9]))))),
        ("not leader", .response(PeerResponse(number: 1, answer: .notLeader(NodeID(3))))),
        ("no leader", .response(PeerResponse(number: 1, answer: .notLeader(nil)))),
        (
            "not executed",
            .response(PeerResponse(number: 1, answer: .notExecuted(retryAfterMilliseconds: 250)))
        ),
        ("unknown", .response(PeerResponse(number: 1, answer: .outcomeUnknown))),
        ("refused", .response(PeerResponse(number: 1, answer: .refused("no")))),
    ]

    /// Since hello and welcome say which data directory their sender works on.
    static let withData: [(name: String, message: PeerMessage)] = [
        (
            "hello with data",
            .hello(
                PeerHello(
                    cluster: ClusterID(high: 0x0102, low: 0x0304), node: NodeID(1), name: "a",
                    incarnation: NodeIncarnation(0xABCD), receiver: NodeID(2), protocolMin: 1,
                    protocolMax: 3, featureLevel: 7,
                    data: RequestIdentity(high: 0x0506, low: 0x0708)))
        ),
        (
            "welcome with data",
            .welcome(
                PeerWelcome(
                    protocolVersion: 1, incarnation: NodeIncarnation(0xABCE), featureLevel: 7,
                    data: RequestIdentity(high: 0x0506, low: 0x0708)))
        ),
        ("refusal of data", .refusal(PeerRefusal(.otherData, "no"))),
    ]

    /// Since nodes join, and ask each other for the sake of the cluster.
    static let ofMembers: [(name: String, message: PeerMessage)] = [
        (
            "join",
            .join(
                PeerJoin(
                    name: "d", address: "h:7400", weight: 300, rack: "east", featureLevel: 7,
                    token: [1, 2]))
        ),
        ("admission", .admission(PeerAdmission(node: NodeID(4), view: [9, 8]))),
        (
            "question for a node",
            .request(
                PeerRequest(
                    number: 302, group: .system, epoch: 0, remainingMilliseconds: 2_000,
                    body: .node([1, 6])))
        ),
        ("not admitted", .refusal(PeerRefusal(.notAdmitted, "no"))),
    ]

    /// Since the opener of a link says which starts its data directory has seen.
    static let ofStarts: [(name: String, message: PeerMessage)] = [
        ("starts", .starts(Self.starts)),
        ("refusal of a copy", .refusal(PeerRefusal(.olderCopy, "no"))),
    ]

    /// Since nodes take copies to each other.
    static let ofCopies: [(name: String, message: PeerMessage)] =
        PeerPurpose.allCases.map { ("\($0)", .purpose($0)) }
        + AssetFormatTests.messages.map { ("\($0)", .copy($0)) }

    private static var starts: NodeStarts {
        var starts = NodeStarts(first: NodeIncarnation(0x0506))
        starts.add(NodeIncarnation(0x0708))
        return starts
    }

    @Test func `every envelope of protocol 3 reads and writes as ever`() throws {
        var writer = ByteWriter()
        for (_, message) in Self.ofCopies { writer.write(prefixed: message.encoded()) }
        let golden = try GoldenTests.golden("peer-envelopes-5")
        #expect(GoldenTests.hexadecimal(writer.bytes) == GoldenTests.hexadecimal(golden))
        var reader = ByteReader(golden)
        for (name, message) in Self.ofCopies {
            #expect(try PeerMessage(decoding: reader.prefixed()) == message, "\(name)")
        }
        try reader.finish()
    }

    @Test func `every envelope of protocol 2 reads and writes as ever`() throws {
        var writer = ByteWriter()
        for (_, message) in Self.ofStarts { writer.write(prefixed: message.encoded()) }
        let golden = try GoldenTests.golden("peer-envelopes-4")
        #expect(GoldenTests.hexadecimal(writer.bytes) == GoldenTests.hexadecimal(golden))
        var reader = ByteReader(golden)
        for (name, message) in Self.ofStarts {
            #expect(try PeerMessage(decoding: reader.prefixed()) == message, "\(name)")
        }
        try reader.finish()
    }

    @Test func `every envelope of membership reads and writes as ever`() throws {
        var writer = ByteWriter()
        for (_, message) in Self.ofMembers { writer.write(prefixed: message.encoded()) }
        let golden = try GoldenTests.golden("peer-envelopes-3")
        #expect(GoldenTests.hexadecimal(writer.bytes) == GoldenTests.hexadecimal(golden))
        var reader = ByteReader(golden)
        for (name, message) in Self.ofMembers {
            #expect(try PeerMessage(decoding: reader.prefixed()) == message, "\(name)")
        }
        try reader.finish()
    }

    @Test func `every envelope with an identity of the data reads and writes as ever`() throws {
        var writer = ByteWriter()
        for (_, message) in Self.withData { writer.write(prefixed: message.encoded()) }
        let golden = try GoldenTests.golden("peer-envelopes-2")
        #expect(GoldenTests.hexadecimal(writer.bytes) == GoldenTests.hexadecimal(golden))
        var reader = ByteReader(golden)
        for (name, message) in Self.withData {
            #expect(try PeerMessage(decoding: reader.prefixed()) == message, "\(name)")
        }
        try reader.finish()
    }

    @Test func `every envelope of protocol 1 reads and writes as ever`() throws {
        var writer = ByteWriter()
        for (_, message) in Self.messages { writer.write(prefixed: message.encoded()) }
        let golden = try GoldenTests.golden("peer-envelopes-1")
        #expect(GoldenTests.hexadecimal(writer.bytes) == GoldenTests.hexadecimal(golden))
        var reader = ByteReader(golden)
        for (name, message) in Self.messages {
            #expect(try PeerMessage(decoding: reader.prefixed()) == message, "\(name)")
        }
        try reader.finish()
    }

    @Test(arguments: (messages + withData + ofMembers + ofStarts).map(\.name))
    func `X-22 X-25 an envelope cut short or changed is refused or another, and never traps`(
        name: String
    ) throws {
        let all = Self.messages + Self.withData + Self.ofMembers + Self.ofStarts
        let message = try #require(all.first { $0.name == name }).message
        let bytes = message.encoded()
        for count in 0..<bytes.count {
            #expect(throws: DecodingError.self) {
                _ = try PeerMessage(decoding: Bytes(bytes[..<count]))
            }
        }
        for position in 0..<bytes.count * 8 {
            var damaged = bytes
            damaged[position / 8] ^= 1 << (position % 8)
            if let other = try? PeerMessage(decoding: damaged) { #expect(other != message) }
        }
    }

    @Test func `what is urgent says so`() {
        let chunk = ConsensusMessage(
            term: Term(1),
            .snapshotChunk(
                SnapshotChunk(
                    identity: PeerMessageTests.identity, sequence: 0, isLast: true, bytes: [])))
        #expect(PeerMessage.heartbeat(PeerMessageTests.heartbeat).priority == .vital)
        #expect(PeerMessage.consensus(GroupID(1), chunk).priority == .snapshot)
        #expect(
            PeerMessage.consensus(GroupID(1), ConsensusMessage(term: Term(1), .resigned)).priority
                == .consensus)
    }
}
