// modules: StratusRecords
// seeds: Tests/StratusCodingTests/Golden/command-*.hex Tests/StratusRecordsTests/Golden/*.hex
import StratusCoding
import StratusModel
import StratusPlacement
import StratusRows

@testable import StratusQuery
@testable import StratusRecords

/// Fuzzes everything that gateways and peers send to a partition, and everything a partition keeps:
/// commands, queries, answers, outcomes, mail and rows.
///
/// For any bytes: nothing traps, and an accepted value is written and read again to the same bytes.
#if LIBFUZZER
    @_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzCommand(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Bytes(UnsafeBufferPointer(start: start, count: count))
    let container = ContainerReference(container: "iCloud.c", environment: .development)
    check(bytes, { b throws(DecodingError) in try Command(decoding: b) }, { $0.encoded() })
    check(
        bytes, { b throws(DecodingError) in try RecordCommand(decoding: b, container: container) },
        { $0.encoded() })
    check(bytes, { b throws(DecodingError) in try RecordQuery(decoding: b) }, { $0.encoded() })
    for row in RecordState.operations.rows { fuzz(row.type, bytes, container) }
    for row in RecordState.questions.rows { fuzz(row.type, bytes) }
    if bytes.count > 1, let operation = RecordCommand.Kind(rawValue: bytes[1]) {
        check(
            bytes, { b throws(DecodingError) in try RecordOutcome(decoding: b) },
            { $0.encoded(of: operation) })
    }
    check(bytes, { b throws(DecodingError) in try MailCommand(decoding: b) }, { $0.encoded() })
    check(bytes, { b throws(DecodingError) in try ZoneRow(decoding: b) }, { $0.encoded() })
    check(bytes, { b throws(DecodingError) in try DatabaseRow(decoding: b) }, { $0.encoded() })
    _ = try? RecordAnswer(decoding: bytes)
    _ = try? QueryPosition(decoding: bytes, for: 0)
    return 0
}

private func fuzz<Operation: PartitionOperation>(
    _ type: Operation.Type, _ bytes: Bytes, _ container: ContainerReference
) {
    check(
        bytes, { b throws(DecodingError) in try Operation(decoding: b, container: container) },
        { $0.encoded() })
    check(
        bytes, { b throws(DecodingError) in try Operation.result(decoding: b) },
        { Operation.encoded($0) })
}

private func fuzz<Question: PartitionQuestion>(_ type: Question.Type, _ bytes: Bytes) {
    let asker = Principal(kind: .system)
    check(
        bytes,
        { b throws(DecodingError) in
            let question = try Question(decoding: b)
            guard question.namedDatabase?.container.container != "" else {
                throw DecodingError(.malformed, at: 0)
            }
            return question
        }, { $0.encoded(as: asker) })
    check(
        bytes, { b throws(DecodingError) in try Question.result(decoding: b) },
        { Question.encoded($0) })
}
