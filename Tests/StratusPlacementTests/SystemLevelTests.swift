import StratusCoding
import StratusModel
import StratusPlacement
import Testing

/// The registry of numbers against what this module's decoders take.
@Suite struct SystemLevelTests {
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
                    _ = try SystemCommand(decoding: bytes)
                } == (NumberFamily.systemCommand.level(of: number) != nil), "command \(number)")
            #expect(
                Self.knows([1, number]) { (bytes) throws(DecodingError) in
                    _ = try SystemQuery(decoding: bytes)
                } == (NumberFamily.systemQuery.level(of: number) != nil), "query \(number)")
            #expect(
                (Notice.Kind(rawValue: number) != nil)
                    == (NumberFamily.notice.level(of: number) != nil), "notice \(number)")
        }
    }

    @Test func `a command's number is the one it is encoded with`() {
        for command in SystemGoldenTests.commands {
            #expect(command.encoded()[1] == command.number)
            #expect(command.level <= .build)
        }
    }
}
