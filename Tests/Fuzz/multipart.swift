// modules: StratusHTTP
import StratusHTTP
import StratusModel

/// Fuzzes the reader of multipart bodies. The first byte says how the rest is cut.
///
/// Whatever the bytes are: nothing traps, and cutting the input does not change what comes of it.
#if LIBFUZZER
    @_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzMultipart(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    guard count > 1 else { return 0 }
    let bytes = Bytes(UnsafeBufferPointer(start: start + 1, count: count - 1))
    let cut = Int(start[0] & 0x3F) + 1
    let whole = outcome(bytes, cut: bytes.count)
    precondition(whole == outcome(bytes, cut: cut), "cuts of \(cut) changed the outcome")
    if let text = String(validating: bytes, as: UTF8.self) {
        _ = MultipartReader.boundary(of: text)
        _ = MultipartReader.boundary(of: "multipart/form-data; boundary=" + text)
    }
    return 0
}

/// The file if there is a whole one, else why not.
private func outcome(_ bytes: Bytes, cut: Int) -> String {
    var reader = MultipartReader(boundary: "B")
    var file = Bytes()
    var rest = bytes[...]
    do throws(MultipartReader.Refusal) {
        while !rest.isEmpty {
            file += try reader.read(rest.prefix(cut))
            rest = rest.dropFirst(cut)
        }
        try reader.finish()
        return "\(file)"
    } catch { return "\(error)" }
}
