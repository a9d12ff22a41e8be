// modules: StratusHTTP
import StratusHTTP
import StratusModel

/// Fuzzes the JSON reader and writer.
///
/// For any bytes: nothing traps; an accepted document can be walked whole; written out and read
/// again it is the same document; and a value's own text is a document of its own.
#if LIBFUZZER
    @_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzJSON(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Bytes(UnsafeBufferPointer(start: start, count: count))
    let limits = JSONLimits(depthMax: 24, sizeMax: 65_536, valueCountMax: 2_000)
    let document: JSONDocument
    do throws(JSONError) {
        document = try JSONDocument(parsing: bytes, limits: limits)
    } catch {
        precondition(error.offset >= 0 && error.offset <= bytes.count)
        return 0
    }
    let once = written(document.root)
    guard let again = try? JSONDocument(parsing: once) else {
        preconditionFailure("what was written cannot be read")
    }
    precondition(written(again.root) == once, "reading and writing again changed it")
    precondition(String(validating: once, as: UTF8.self) != nil)
    checkSources(document.root)
    return 0
}

private func written(_ value: JSONValue) -> Bytes {
    var writer = JSONWriter()
    write(value, to: &writer)
    return writer.finish()
}

private func write(_ value: JSONValue, to writer: inout JSONWriter) {
    switch value.kind {
    case .null: writer.writeNull()
    case .bool: writer.write(value.bool!)
    case .string:
        let text = value.string!
        precondition(value.isString(text))
        precondition(value.utf8! == Bytes(text.utf8))
        if let bytes = value.base64 { precondition(Base64.encode(bytes) == text) }
        writer.write(text)
    case .number:
        let double = value.double!
        precondition(double.isFinite)
        precondition(Double(value.numberText!) == double)
        switch value.numberForm! {
        case .integer:
            precondition(value.wholeInt64 == value.int64)
            writer.write(value.int64!)
        case .largeInteger, .fraction: writer.write(double)
        }
    case .array:
        writer.beginArray()
        for element in value.array! { write(element, to: &writer) }
        writer.endArray()
    case .object:
        writer.beginObject()
        for member in value.object! {
            precondition(value[member.name]?.offset == member.value.offset)
            writer.key(member.name)
            write(member.value, to: &writer)
        }
        writer.endObject()
    }
}

private func checkSources(_ value: JSONValue) {
    guard let own = try? JSONDocument(parsing: Bytes(value.source)) else {
        preconditionFailure("a value's text is no document")
    }
    precondition(written(own.root) == written(value))
    if let array = value.array { for element in array { checkSources(element) } }
    if let object = value.object { for member in object { checkSources(member.value) } }
}
