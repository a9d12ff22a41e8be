// modules: StratusIdentity
import StratusCoding
import StratusModel

@testable import StratusIdentity
@testable import StratusRecords

/// Fuzzes identity: its commands, outcomes, questions and answers, and the bodies of its rows.
///
/// For any bytes: nothing traps, and an accepted value is written and read again to the same bytes.
#if LIBFUZZER
    @_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzIdentity(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Bytes(UnsafeBufferPointer(start: start, count: count))
    check(bytes, { b throws(DecodingError) in try IdentityCommand(decoding: b) }, { $0.encoded() })
    check(bytes, { b throws(DecodingError) in try IdentityOutcome(decoding: b) }, { $0.encoded() })
    check(bytes, { b throws(DecodingError) in try IdentityQuery(decoding: b) }, { $0.encoded() })
    check(bytes, { b throws(DecodingError) in try IdentityAnswer(decoding: b) }, { $0.encoded() })
    check(bytes, { b throws(DecodingError) in try IdentityRow(decoding: b) }, { $0.encoded() })
    check(bytes, { b throws(DecodingError) in try Account(decoding: b) }, { $0.encoded() })
    check(bytes, { b throws(DecodingError) in try Session(decoding: b) }, { $0.encoded() })
    check(bytes, { b throws(DecodingError) in try APIToken(decoding: b) }, { $0.encoded() })
    check(bytes, { b throws(DecodingError) in try ServerKey(decoding: b) }, { $0.encoded() })
    check(bytes, { b throws(DecodingError) in try ContainerUser(decoding: b) }, { $0.encoded() })
    check(
        bytes, { b throws(DecodingError) in try ContainerDescriptor(decoding: b) },
        { $0.encoded() })
    check(bytes, { b throws(DecodingError) in try Device(decoding: b) }, { $0.encoded() })
    return 0
}
