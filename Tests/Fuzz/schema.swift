// modules: StratusRecords
import StratusModel
import StratusQuery
import StratusRecords

/// Fuzzes the schema language.
///
/// For any text: nothing traps, an error names a place, and an accepted schema is written and read
/// again to the same schema.
#if LIBFUZZER
    @_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzSchema(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let text = String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    let schema: Schema
    do throws(SchemaTextError) { schema = try SchemaText.read(text) } catch {
        precondition(error.line >= 1 && error.column >= 1)
        return 0
    }
    let once = SchemaText.write(schema)
    guard let again = try? SchemaText.read(once) else {
        preconditionFailure("what was written cannot be read: \(once)")
    }
    precondition(SchemaText.write(again) == once, "reading and writing again changed it")
    return 0
}
