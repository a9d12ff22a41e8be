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
                    protocolMax: 3, featureLevel: 7,
                    data: RequestIdentity(high: 0x0506, low: 0x0708)))
        ),
        (
            "welcome",
            .welcome(
                PeerWelcome(
                    protocolVersion: 1, incarnation: NodeIncarnation(0xABCE), featureLevel: 7,
                    data: RequestIdentity(high: 0x0506, low: 0x0708)))
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
        ("refusal of data", .refusal(PeerRefusal(.otherData, "no"))),
        ("starts", .starts(Self.starts)),
        ("refusal of a copy", .refusal(PeerRefusal(.olderCopy, "no"))),
    ]

    /// What nodes say about copies of bodies.
    static let ofCopies: [(name: String, message: PeerMessage)] =
        PeerPurpose.allCases.map { ("\($0)", .purpose($0)) }
        + AssetFormatTests.messages.map { ("\($0)", .copy($0)) }

    private static var starts: NodeStarts {
        var starts = NodeStarts(first: NodeIncarnation(0x0506))
        starts.add(NodeIncarnation(0x0708))
        return starts
    }

    @Test func `every envelope reads and writes as ever`() throws {
        let all = Self.messages + Self.ofCopies
        let written = GoldenTests.joined(all.map { $0.message.encoded() })
        let golden = try GoldenTests.golden("peer-envelopes-1", now: written)
        #expect(GoldenTests.hexadecimal(written) == GoldenTests.hexadecimal(golden))
        var reader = ByteReader(golden)
        for (name, message) in all {
            #expect(try PeerMessage(decoding: reader.prefixed()) == message, "\(name)")
        }
        try reader.finish()
    }

    @Test(arguments: messages.map(\.name))
    func `X-22 X-25 an envelope cut short or changed is refused or another, and never traps`(
        name: String
    ) throws {
        let message = try #require(Self.messages.first { $0.name == name }).message
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
