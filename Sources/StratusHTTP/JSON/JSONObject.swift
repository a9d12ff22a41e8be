/// The members of a JSON object, in the order written.
///
/// A key that is repeated counts once, with its last value, in look-ups and when iterating.
package struct JSONObject: Sequence, Sendable {
    package struct Member: Sendable {
        let document: JSONDocument
        /// The key's; the value's is the next.
        let index: Int
        let keyNode: JSONNode
        let valueNode: JSONNode

        /// A string value, so that it can be compared without being made into a `String`.
        package var key: JSONValue {
            JSONValue(document: self.document, index: self.index, node: self.keyNode)
        }

        package var value: JSONValue {
            JSONValue(document: self.document, index: self.index + 1, node: self.valueNode)
        }

        package var name: String {
            let bytes = self.document.bytes
            return JSONText.string(bytes.span, self.keyNode)
        }
    }

    let document: JSONDocument
    /// The members' nodes on the tape: key, value, key, value …
    let start: Int
    let end: Int

    package var isEmpty: Bool { self.start == self.end }

    package subscript(_ key: StaticString) -> JSONValue? {
        // A literal's own bytes, which are never freed.
        self.find(unsafe Span(_unsafeStart: key.utf8Start, count: key.utf8CodeUnitCount))
    }

    @_disfavoredOverload
    package subscript(_ key: String) -> JSONValue? { self.find(key.utf8Span.span) }

    private func find(_ wanted: Span<UInt8>) -> JSONValue? {
        let nodes = self.document.tape
        let bytes = self.document.bytes
        let tape = nodes.span
        let source = bytes.span
        var found: Int?
        var at = self.start
        while at < self.end {
            if JSONText.isEqual(source, tape[at], wanted) { found = at + 1 }
            at = tape[at + 1].successor(of: at + 1)
        }
        guard let found else { return nil }
        return JSONValue(document: self.document, index: found, node: tape[found])
    }

    package func makeIterator() -> Iterator {
        Iterator(
            document: self.document, position: self.start, end: self.end,
            repetition: JSONRepetition(self))
    }

    package struct Iterator: IteratorProtocol {
        let document: JSONDocument
        var position: Int
        let end: Int
        let repetition: JSONRepetition

        package mutating func next() -> Member? {
            while self.position < self.end {
                let key = self.position
                let value = self.document.tape[key + 1]
                self.position = value.successor(of: key + 1)
                if self.repetition.isOverruled(key, self) { continue }
                return Member(
                    document: self.document, index: key, keyNode: self.document.tape[key],
                    valueNode: value)
            }
            return nil
        }
    }
}
