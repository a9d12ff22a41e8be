package import StratusModel

/// One value of a ``JSONDocument``: a reference and an index, cheap to pass on.
///
/// A typed accessor gives nil where the value is of another type; nothing is converted silently.
package struct JSONValue: Sendable {
    package enum Kind: Sendable, Equatable { case null, bool, number, string, array, object }

    /// How a number was written.
    package enum NumberForm: Sendable, Equatable {
        /// Without point or exponent, within Int64.
        case integer
        /// Without point or exponent, beyond Int64: as a Double it may not be exact.
        case largeInteger
        /// With a point or an exponent.
        case fraction
    }

    let document: JSONDocument
    /// The index of ``node`` on the tape.
    let index: Int
    /// Kept here, so that the tape is not asked again for every accessor.
    let node: JSONNode

    @inline(__always)
    init(document: JSONDocument, index: Int, node: JSONNode) {
        self.document = document
        self.index = index
        self.node = node
    }

    package var kind: Kind {
        switch self.node.kind {
        case .null: .null
        case .no, .yes: .bool
        case .number: .number
        case .string: .string
        case .array: .array
        case .object: .object
        }
    }

    /// The offset where the value starts in the document, for error messages.
    package var offset: Int { self.node.kind == .string ? self.node.offset - 1 : self.node.offset }

    // MARK: Scalars

    package var isNull: Bool { self.node.kind == .null }

    package var bool: Bool? {
        switch self.node.kind {
        case .yes: true
        case .no: false
        case .null, .number, .string, .array, .object: nil
        }
    }

    package var numberForm: NumberForm? {
        guard self.node.kind == .number else { return nil }
        return switch JSONNode.NumberForm(rawValue: self.node.flag) {
        case .integer: .integer
        case .largeInteger: .largeInteger
        case .fraction, nil: .fraction
        }
    }

    /// A number written as an integer that fits. `1.0` and `1e3` are not: see ``wholeInt64``.
    package var int64: Int64? {
        let node = self.node
        guard node.kind == .number, node.flag == JSONNode.NumberForm.integer.rawValue else {
            return nil
        }
        let bytes = self.document.bytes
        return JSONNumber.int64(bytes.span.extracting(node.offset..<node.end))
    }

    /// A number that is whole however it was written, where that is certain: `1e3` is 1000. Beyond
    /// 2^53 a fraction's text no longer says which integer was meant, so only plain integers count.
    package var wholeInt64: Int64? {
        if let integer = self.int64 { return integer }
        guard self.numberForm == .fraction, let double = self.double,
            double.magnitude <= 9_007_199_254_740_992
        else { return nil }
        return Int64(exactly: double)
    }

    /// The Double nearest to the number; nil where none can hold it, never infinite.
    package var double: Double? {
        let node = self.node
        guard node.kind == .number else { return nil }
        let bytes = self.document.bytes
        guard let double = JSONNumber.double(bytes.span.extracting(node.offset..<node.end)),
            double.isFinite
        else { return nil }
        return double
    }

    /// A number exactly as written.
    package var numberText: String? {
        let node = self.node
        guard node.kind == .number else { return nil }
        return String(decoding: self.document.bytes[node.offset..<node.end], as: UTF8.self)
    }

    /// A string's text; nil where half of a surrogate pair was kept.
    package var string: String? {
        let node = self.node
        guard node.kind == .string, node.flag & JSONNode.isUnreadable == 0 else { return nil }
        let bytes = self.document.bytes
        return JSONText.string(bytes.span, node)
    }

    /// The UTF-8 of a string, escapes resolved.
    package var utf8: Bytes? {
        let node = self.node
        guard node.kind == .string, node.flag & JSONNode.isUnreadable == 0 else { return nil }
        let bytes = self.document.bytes
        return JSONText.utf8(bytes.span, node)
    }

    /// Whether this is that string; makes none to find out.
    package func isString(_ text: StaticString) -> Bool {
        // A literal's own bytes, which are never freed.
        let wanted = unsafe Span(_unsafeStart: text.utf8Start, count: text.utf8CodeUnitCount)
        let bytes = self.document.bytes
        return self.node.kind == .string && JSONText.isEqual(bytes.span, self.node, wanted)
    }

    @_disfavoredOverload
    package func isString(_ text: String) -> Bool {
        let node = self.node
        let bytes = self.document.bytes
        return node.kind == .string
            && JSONText.isEqual(bytes.span, node, text.utf8Span.span)
    }

    /// A string read as canonical, padded base64.
    package var base64: Bytes? {
        let node = self.node
        guard node.kind == .string, node.flag & JSONNode.isUnreadable == 0 else { return nil }
        let bytes = self.document.bytes
        let source = bytes.span
        // `\/` is a legal way to write a slash, and some serialisers do.
        if node.flag != 0 { return Base64.decode(JSONText.utf8(source, node).span) }
        return Base64.decode(source.extracting(node.offset..<node.end))
    }

    /// The value's own text, as received.
    package var source: ArraySlice<UInt8> {
        let node = self.node
        switch node.kind {
        case .null, .no, .yes, .number: return self.document.bytes[node.offset..<node.end]
        case .string: return self.document.bytes[(node.offset - 1)...node.end]
        case .array, .object:
            // The tape does not hold a container's end: it stands after its last value's text,
            // behind nothing but white space and the brackets of what is nested last.
            var depth = 1
            var at = node.offset + 1
            if node.extent > self.index + 1 {
                var last = self.index + 1
                while true {
                    let inner = self.document.tape[last]
                    let next = inner.successor(of: last)
                    if next < node.extent {
                        last = next
                    } else if inner.isContainer {
                        depth += 1
                        at = inner.offset + 1
                        if inner.extent == last + 1 { break }
                        last += 1
                    } else {
                        at = inner.kind == .string ? inner.end + 1 : inner.end
                        break
                    }
                }
            }
            while depth > 0 {
                if self.document.bytes[at] == 0x7D || self.document.bytes[at] == 0x5D { depth -= 1 }
                at += 1
            }
            return self.document.bytes[node.offset..<at]
        }
    }

    // MARK: Containers

    /// The member of an object by that key; the last one where it is repeated.
    package subscript(_ key: StaticString) -> JSONValue? {
        self.object?[key]
    }

    @_disfavoredOverload
    package subscript(_ key: String) -> JSONValue? { self.object?[key] }

    package var array: JSONArray? {
        self.node.kind == .array
            ? JSONArray(document: self.document, start: self.index + 1, end: self.node.extent) : nil
    }

    package var object: JSONObject? {
        self.node.kind == .object
            ? JSONObject(document: self.document, start: self.index + 1, end: self.node.extent)
            : nil
    }
}
