import StratusCluster
import StratusCoding
import StratusModel
import Testing

/// The registry of numbers against what this module's decoders take.
@Suite struct QuestionLevelTests {
    private static func knows(_ body: Bytes, _ decode: (Bytes) throws(DecodingError) -> Void)
        -> Bool
    {
        do throws(DecodingError) {
            try decode(body)
            return true
        } catch { return error != DecodingError(.malformed, at: 1) }
    }

    @Test func `every number that is decoded is registered, and the other way round`() {
        for number in UInt8.min...UInt8.max {
            #expect(
                Self.knows([1, number]) { (bytes) throws(DecodingError) in
                    _ = try NodeQuestion(decoding: bytes)
                } == (NumberFamily.nodeQuestion.level(of: number) != nil), "question \(number)")
            #expect(
                Self.knows([1, number]) { (bytes) throws(DecodingError) in
                    _ = try NodeReply(decoding: bytes)
                } == (NumberFamily.nodeReply.level(of: number) != nil), "reply \(number)")
        }
    }

    @Test func `a question's number is the one it is encoded with`() {
        let questions: [NodeQuestion] = [
            .view(newerThan: 1), .observe(waking: []),
            .configure(.system, at: .zero, voters: [], learners: []),
            .transfer(.system, to: NodeID(1)), .changed(revision: 2), .health, .support,
            .remains,
        ]
        for question in questions { #expect(question.encoded()[1] == question.number) }
        for reply: NodeReply in [
            .view(revision: 1, nil), .observed([]), .done(true), .health(NodeHealth()),
            .support([]), .remains(NodeRemains()),
        ] {
            #expect(reply.encoded()[1] == reply.number)
        }
    }

    @Test func `what is left of erasures reads and writes as ever`() throws {
        var remains = NodeRemains()
        remains.isComplete = true
        remains.isInLog = true
        remains.partitionCount = 3
        remains.sinceMilliseconds = 1_700_000_000_000
        remains.clearedMilliseconds = 5
        remains.positions = [.init(group: GroupID(513), applied: LogIndex(300))]
        let reply = NodeReply.remains(remains)
        #expect(try NodeReply(decoding: reply.encoded()) == reply)
        let bytes: Bytes =
            [1, 6, 3, 3] + [0x00, 0x68, 0xE5, 0xCF, 0x8B, 0x01, 0, 0] + [5, 0, 0, 0, 0, 0, 0, 0]
            + [1] + [0x01, 0x02] + [0xAC, 0x02]
        #expect(reply.encoded() == bytes)
        #expect(!remains.isCleared(through: [:]))
        remains.isInLog = false
        remains.partitionCount = 0
        #expect(remains.isCleared(through: [GroupID(513): LogIndex(300)]))
        #expect(!remains.isCleared(through: [GroupID(513): LogIndex(301)]))
    }

    @Test func `the files of a support answer come back as they were`() throws {
        let reply = NodeReply.support([
            SupportFile(name: "log.txt", contents: Bytes("a line\n".utf8)),
            SupportFile(name: "metrics.txt", contents: []),
        ])
        #expect(try NodeReply(decoding: reply.encoded()) == reply)
    }
}
