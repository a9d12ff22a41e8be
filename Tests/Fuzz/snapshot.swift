// modules: StratusStorage
// seeds: Tests/StratusStorageTests/Golden/snapshot-1.hex Tests/StratusStorageTests/Golden/applied-1.hex
import StratusCoding
import StratusModel

@testable import StratusStorage

/// Fuzzes frames of snapshots and the position that ends them.
///
/// The bytes are read as a frame, as the body of a frame with the right checksum (the first byte is
/// its kind), and as a position. For any bytes: nothing traps, and an accepted value is written and
/// read again to the same bytes.
#if LIBFUZZER
    @_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzSnapshot(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Bytes(UnsafeBufferPointer(start: start, count: count))
    func read(_ bytes: Bytes) throws(DecodingError) -> SnapshotFrame {
        try SnapshotFrame.decode(bytes, number: 3)
    }
    check(bytes, read) { $0.encoded(number: 3) }
    check(bytes, { b throws(DecodingError) in try AppliedPosition(decoding: b) }, { $0.encoded() })
    guard let kind = bytes.first else { return 0 }
    check(SnapshotFrame.frame(kind: kind, number: 3, Bytes(bytes.dropFirst())), read) {
        $0.encoded(number: 3)
    }
    return 0
}
