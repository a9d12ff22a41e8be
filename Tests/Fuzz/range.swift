// modules: StratusHTTP
import StratusHTTP
import StratusModel

/// Fuzzes ranges and the names of files that are offered. The first byte is the size of the file.
///
/// Whatever the bytes are: nothing traps, a part lies within its file and is not empty, and a name
/// never leaves its quotes or its line.
#if LIBFUZZER
    @_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzRange(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    guard count > 0 else { return 0 }
    let bytes = Bytes(UnsafeBufferPointer(start: start + 1, count: count - 1))
    let text = String(decoding: bytes, as: UTF8.self)
    let size = UInt64(start[0])
    for field in [text, "bytes=" + text] {
        guard case .part(let part) = ByteRange(field, size: size) else { continue }
        precondition(!part.isEmpty && part.upperBound <= size)
    }
    let field = ContentDisposition(name: text).field
    precondition(field.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F })
    precondition([0, 2].contains(field.utf8.count { $0 == 0x22 }))
    return 0
}
