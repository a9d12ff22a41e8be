// modules: StratusHTTP
import StratusHTTP
import StratusModel

/// Fuzzes the XML reader and writer.
///
/// For any bytes: nothing traps, and nothing grows beyond the limits. What is accepted is written
/// out and read again as the same elements.
#if LIBFUZZER
    @_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzXML(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Bytes(UnsafeBufferPointer(start: start, count: count))
    var limits = XMLLimits()
    limits.depthMax = 8
    limits.elementCountMax = 100
    limits.attributeCountMax = 8
    let root: XMLElement
    do throws(XMLError) {
        root = try XMLReader.read(bytes, limits: limits)
    } catch {
        precondition(error.offset >= 0 && error.offset <= bytes.count)
        return 0
    }
    precondition(elementCount(of: root) <= limits.elementCountMax)
    let written = XMLWriter.write(root)
    guard let again = try? XMLReader.read(written) else {
        preconditionFailure("what was written cannot be read")
    }
    precondition(again == root, "writing and reading changed it")
    return 0
}

private func elementCount(of element: XMLElement) -> Int {
    element.elements.reduce(1) { $0 + elementCount(of: $1) }
}
