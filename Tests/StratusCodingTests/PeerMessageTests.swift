import StratusCoding
import StratusModel
import Testing

/// Messages between nodes stay readable for ever in the form in which they were first written.
@Suite struct PeerMessageTests {
    static let point = LogPoint(index: LogIndex(300), term: Term(5))
    static let identity = SnapshotIdentity(
        index: LogIndex(300), term: Term(5), time: HybridTime(milliseconds: 1_700_000_000_000),
        configuration: Configuration(
            voters: [NodeID(1), NodeID(2), NodeID(3)], incoming: [NodeID(2), NodeID(3), NodeID(4)],
            learners: [NodeID(9)]),
        digest: StateDigest(high: 0x0102_0304_0506_0708, low: 9))

    static let messages: [(name: String, message: ConsensusMessage)] = [
        ("pre-vote request", ConsensusMessage(term: Term(6), .preVoteRequest(last: point))),
        ("pre-vote answer", ConsensusMessage(term: Term(6), .preVoteAnswer(granted: true))),
        (
            "vote request",
            ConsensusMessage(term: Term(6), .voteRequest(last: point, isTransfer: true))
        ),
        ("vote answer", ConsensusMessage(term: Term(6), .voteAnswer(granted: false))),
        (
            "append",
            ConsensusMessage(
                term: Term(6),
                .append(
                    previous: point,
                    entries: [
                        Entry(
                            index: LogIndex(301), term: Term(6),
                            time: HybridTime(milliseconds: -1, count: 7), kind: .noop, payload: []),
                        Entry(
                            index: LogIndex(302), term: Term(6),
                            time: HybridTime(milliseconds: 1_700_000_000_000), kind: .command,
                            payload: [1, 2, 3]),
                    ], commit: LogIndex(299)))
        ),
        (
            "accepted",
            ConsensusMessage(
                term: Term(6),
                .appendAccepted(
                    match: LogIndex(1), received: LogIndex(302), commit: LogIndex(0)))
        ),
        (
            "refused",
            ConsensusMessage(term: Term(6), .appendRefused(previous: LogIndex(300), hint: point))
        ),
        ("probe", ConsensusMessage(term: Term(6), .probe(round: 1_000))),
        ("probe answer", ConsensusMessage(term: Term(6), .probeAnswer(round: 1_000))),
        ("transfer", ConsensusMessage(term: Term(6), .transferNow)),
        ("resigned", ConsensusMessage(term: Term(6), .resigned)),
        (
            "chunk",
            ConsensusMessage(
                term: Term(6),
                .snapshotChunk(
                    SnapshotChunk(identity: identity, sequence: 3, isLast: true, bytes: [7, 8])))
        ),
        (
            "chunk answer",
            ConsensusMessage(
                term: Term(6), .snapshotAnswer(index: LogIndex(300), next: 4, unneeded: false))
        ),
        (
            "digest",
            ConsensusMessage(
                term: Term(6),
                .digest(
                    index: LogIndex(1_024), StateDigest(high: 0x0102_0304_0506_0708, low: 9)))
        ),
        ("held ask", ConsensusMessage(term: Term(6), .heldAsk)),
        ("held", ConsensusMessage(term: Term(6), .held(through: LogIndex(1_024)))),
        (
            "acknowledged",
            ConsensusMessage(
                term: Term(6),
                .acknowledged(through: LogPoint(index: LogIndex(1_024), term: Term(5))))
        ),
        (
            "snapshot untrue",
            ConsensusMessage(term: Term(6), .snapshotUntrue(index: LogIndex(1_024)))
        ),
    ]

    static let heartbeat = NodeHeartbeat(
        incarnation: NodeIncarnation(0xABCD), sequence: 77, unsyncedMilliseconds: 12,
        wallMilliseconds: 1_700_000_000_000, declinesLeadership: false,
        resigned: [ResignedGroup(group: GroupID(12), term: Term(6))])

    @Test func `every message reads and writes as ever`() throws {
        let written = GoldenTests.joined(
            Self.messages.map { $0.message.encoded() } + [Self.heartbeat.encoded()])
        let golden = try GoldenTests.golden("peer-messages-1", now: written)
        #expect(GoldenTests.hexadecimal(written) == GoldenTests.hexadecimal(golden))
        var reader = ByteReader(golden)
        for (name, message) in Self.messages {
            #expect(try ConsensusMessage(decoding: reader.prefixed()) == message, "\(name)")
        }
        #expect(try NodeHeartbeat(decoding: reader.prefixed()) == Self.heartbeat)
        try reader.finish()
    }

    @Test(arguments: messages.map(\.name))
    func `X-22 X-25 a message cut short or changed is refused or read, and never traps`(
        name: String
    ) throws {
        let message = try #require(Self.messages.first { $0.name == name }).message
        let bytes = message.encoded()
        for count in 0..<bytes.count {
            #expect(throws: DecodingError.self) {
                _ = try ConsensusMessage(decoding: Bytes(bytes[..<count]))
            }
        }
        var readable = 0
        for position in bytes.indices {
            for bit in 0..<8 {
                var damaged = bytes
                damaged[position] ^= 1 << bit
                if let other = try? ConsensusMessage(decoding: damaged) {
                    // The link's checksum is what tells it apart; here it must only be another one.
                    #expect(other != message, "\(name), byte \(position), bit \(bit)")
                    readable += 1
                }
            }
        }
        #expect(readable < bytes.count * 8)
    }

    @Test func `a configuration reads as it was written`() throws {
        let configuration = Self.identity.configuration
        #expect(try Configuration(decoding: configuration.encoded()) == configuration)
        #expect(
            GoldenTests.hexadecimal(configuration.encoded())
                == "010301000000020000000300000003020000000300000004000000" + "0109000000")
    }
}
