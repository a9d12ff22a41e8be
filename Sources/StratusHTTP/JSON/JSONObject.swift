/// The members of a JSON object, in the order written.
///
/// A key that is repeated counts once, with its last value, in look-ups and when iterating.
package struct JSONObject: Sequence, Sendable {
    package struct Member: Sendable {
        /// A string value, so that it can be compared without being made into a `String`.
        package let key: JSONValue
        package let value: JSONValue

        package var name: String { self.key.string ?? "" }
    }

    /// Up to this many members, repeated keys are found by looking at all that follow.
    private static let fewMembers = 24

    let document: JSONDocument
    let index: Int

    package var isEmpty: Bool { self.document.tape[self.index].extent == self.index + 1 }

    package subscript(_ key: String) -> JSONValue? {
        let nodes = self.document.tape
        let bytes = self.document.bytes
        let tape = nodes.span
        let source = bytes.span
        let wanted = key.utf8Span.span
        let end = tape[self.index].extent
        var found: Int?
        var at = self.index + 1
        while at < end {
            if JSONText.isEqual(source, tape[at], wanted) { found = at + 1 }
            at = tape[at + 1].successor(of: at + 1)
        }
        return found.map { JSONValue(document: self.document, index: $0) }
    }

    package func makeIterator() -> Iterator {
        var count = 0
        var at = self.index + 1
        let end = self.document.tape[self.index].extent
        while at < end, count <= Self.fewMembers {
            count += 1
            at = self.successor(at)
        }
        guard count > Self.fewMembers else {
            return Iterator(object: self, position: self.index + 1, end: end, lastByKey: nil)
        }
        // Only looked up in, never iterated.
        var lastByKey: [[UInt8]: Int] = [:]
        at = self.index + 1
        let bytes = self.document.bytes
        while at < end {
            lastByKey[JSONText.utf8(bytes.span, self.document.tape[at])] = at
            at = self.successor(at)
        }
        return Iterator(object: self, position: self.index + 1, end: end, lastByKey: lastByKey)
    }

    private func successor(_ key: Int) -> Int {
        self.document.tape[key + 1].successor(of: key + 1)
    }

    package struct Iterator: IteratorProtocol {
        let object: JSONObject
        var position: Int
        let end: Int
        let lastByKey: [[UInt8]: Int]?

        package mutating func next() -> Member? {
            while self.position < self.end {
                let key = self.position
                self.position = self.object.successor(key)
                guard self.isLast(key) else { continue }
                return Member(
                    key: JSONValue(document: self.object.document, index: key),
                    value: JSONValue(document: self.object.document, index: key + 1))
            }
            return nil
        }

        /// Whether no later member has the same key.
        private func isLast(_ key: Int) -> Bool {
            let document = self.object.document
            let bytes = document.bytes
            let source = bytes.span
            let node = document.tape[key]
            if let lastByKey {
                return lastByKey[JSONText.utf8(source, node)] == key
            }
            var other = self.position
            while other < self.end {
                let rival = document.tape[other]
                if node.flag == 0 {
                    // Different lengths settle it, unless the rival's escapes hide its own.
                    if rival.flag != 0 || rival.extent == node.extent,
                        JSONText.isEqual(source, rival, source.extracting(node.offset..<node.end))
                    {
                        return false
                    }
                } else if JSONText.isEqual(source, rival, JSONText.utf8(source, node).span) {
                    return false
                }
                other = self.object.successor(other)
            }
            return true
        }
    }
}
