// modules: StratusHTTP
import StratusHTTP
import StratusModel

/// Fuzzes the reader of the field `If`.
///
/// For any text: nothing traps, and nothing grows beyond the limits. What is accepted is written
/// out and read again as the same lists.
#if LIBFUZZER
    @_cdecl("LLVMFuzzerTestOneInput")
#endif
public func fuzzIfHeader(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let text = String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    guard let header = IfHeader(text) else { return 0 }
    precondition(!header.lists.isEmpty && text.utf8.count <= IfHeader.sizeMax)
    var written = ""
    var conditions = 0
    var resource: String?
    for list in header.lists {
        if list.resource != resource, let named = list.resource { written += "<\(named)>" }
        resource = list.resource
        written += "("
        precondition(!list.conditions.isEmpty)
        for condition in list.conditions {
            conditions += 1
            if condition.isNegated { written += "Not " }
            switch condition.state {
            case .token(let token): written += "<\(token)>"
            case .tag(let tag): written += "[\(tag)]"
            }
        }
        written += ")"
    }
    precondition(conditions <= IfHeader.conditionCountMax)
    // A field of spaces may have been longer than what is written.
    guard written.utf8.count <= IfHeader.sizeMax else { return 0 }
    precondition(IfHeader(written) == header, "writing and reading changed it")
    return 0
}
