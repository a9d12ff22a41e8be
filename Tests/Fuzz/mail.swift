// modules: StratusRecords
// seeds: Tests/StratusRecordsTests/Golden/mail-*.hex Tests/StratusRecordsTests/Golden/rows-buckets-1.hex
import StratusCoding
import StratusModel

@testable import StratusRecords

/// Fuzzes mail between partitions: its commands, outcomes and answers, its rows at both ends, and
/// the letters of buckets.
///
/// For any bytes: nothing traps, and an accepted value is written and read again to the same bytes.
#if LIBFUZZER
    @_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzMail(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Bytes(UnsafeBufferPointer(start: start, count: count))
    check(bytes, { b throws(DecodingError) in try MailCommand(decoding: b) }, { $0.encoded() })
    check(bytes, { b throws(DecodingError) in try MailOutcome(decoding: b) }, { $0.encoded() })
    check(bytes, { b throws(DecodingError) in try OutboxAsk(decoding: b) }, { $0.encoded() })
    check(bytes, { b throws(DecodingError) in try Outbox(decoding: b) }, { $0.encoded() })
    check(bytes, { b throws(DecodingError) in try OfficeRow(decoding: b) }, { $0.encoded() })
    check(bytes, { b throws(DecodingError) in try RouteRow(decoding: b) }, { $0.encoded() })
    check(
        bytes, { b throws(DecodingError) in try Mail(sequence: 5, row: b) }, { $0.encodedRow() })
    check(bytes, { b throws(DecodingError) in try BucketMail(decoding: b) }, { $0.encoded() })
    check(bytes, { b throws(DecodingError) in try InboundLink(decoding: b) }, { $0.encoded() })
    return 0
}
