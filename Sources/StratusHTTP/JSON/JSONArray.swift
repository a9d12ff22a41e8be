/// The elements of a JSON array, in order. Random access would be a walk, so there is none.
package struct JSONArray: Sequence, Sendable {
    let document: JSONDocument
    let index: Int

    /// Walks the elements.
    package var count: Int { self.reduce(0) { count, _ in count + 1 } }
    package var isEmpty: Bool { self.document.tape[self.index].extent == self.index + 1 }

    package func makeIterator() -> Iterator {
        Iterator(
            document: self.document, position: self.index + 1,
            end: self.document.tape[self.index].extent)
    }

    package struct Iterator: IteratorProtocol {
        let document: JSONDocument
        var position: Int
        let end: Int

        package mutating func next() -> JSONValue? {
            guard self.position < self.end else { return nil }
            let value = JSONValue(document: self.document, index: self.position)
            self.position = value.node.successor(of: self.position)
            return value
        }
    }
}
