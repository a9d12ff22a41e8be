// modules: StratusConfiguration
// seeds: Config/stratus.example.json5
@testable import StratusConfiguration

/// Fuzzes the reader of configuration files. Whatever the text is: nothing traps, and an error
/// names a place in it.
#if LIBFUZZER
    @_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzJSON5(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let text = String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    do throws(JSON5Error) { _ = try JSON5Parser.parse(text) } catch {
        precondition(error.position.line >= 1 && error.position.column >= 1)
        precondition(error.position.line <= text.unicodeScalars.count + 1)
    }
    return 0
}
