package import StratusModel

/// One JSON text, checked whole, with a tape beside it that says where each value stands.
///
/// Parsing copies nothing: the document owns the bytes it was given, and a ``JSONValue`` points
/// into them. Strings are made when they are asked for, and only then.
package final class JSONDocument: Sendable {
    /// The text as received.
    package let bytes: Bytes
    let tape: [JSONNode]

    /// - Throws: the first thing that is wrong. There is no lenient mode.
    package init(parsing bytes: Bytes, limits: JSONLimits = JSONLimits()) throws(JSONError) {
        var builder = JSONTapeBuilder(limits: limits)
        try builder.build(bytes.span)
        self.bytes = bytes
        self.tape = builder.tape
    }

    package var root: JSONValue { JSONValue(document: self, index: 0, node: self.tape[0]) }
}
