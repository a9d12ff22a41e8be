import StratusCoding
import StratusModel
import Testing

/// The registry of numbers against what this module's decoders take.
@Suite struct CodingLevelTests {
    private static func knows(
        _ body: Bytes, kindAt offset: Int, _ decode: (Bytes) throws(DecodingError) -> Void
    ) -> Bool {
        do throws(DecodingError) {
            try decode(body)
            return true
        } catch { return error != DecodingError(.malformed, at: offset) }
    }

    @Test func `every number that is decoded is registered, and the other way round`() {
        for number in UInt8.min...UInt8.max {
            #expect(
                Self.knows([1, number], kindAt: 1) { (bytes) throws(DecodingError) in
                    _ = try MailCommand(decoding: bytes)
                } == (NumberFamily.mailCommand.level(of: number) != nil), "mail \(number)")
            #expect(
                Self.knows([number], kindAt: 0) { (bytes) throws(DecodingError) in
                    _ = try PeerMessage(decoding: bytes)
                } == (NumberFamily.peerMessage.level(of: number) != nil), "peer \(number)")
            #expect(
                Self.knows([1, number, 1], kindAt: 1) { (bytes) throws(DecodingError) in
                    _ = try ConsensusMessage(decoding: bytes)
                } == (NumberFamily.consensusMessage.level(of: number) != nil), "raft \(number)")
        }
    }
}
