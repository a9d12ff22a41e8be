/// The elements of a JSON array, in order. Random access would be a walk, so there is none.
package struct JSONArray: Sequence, Sendable {
    let document: JSONDocument
    /// The elements' nodes on the tape.
    let start: Int
    let end: Int

    package var isEmpty: Bool { self.start == self.end }

    /// Walks the elements.
    package var count: Int { self.reduce(0) { count, _ in count + 1 } }

    package func makeIterator() -> Iterator {
        Iterator(document: self.document, position: self.start, end: self.end)
    }

    package struct Iterator: IteratorProtocol {
        let document: JSONDocument
        var position: Int
        let end: Int

        package mutating func next() -> JSONValue? {
            guard self.position < self.end else { return nil }
            let index = self.position
            let node = self.document.tape[index]
            self.position = node.successor(of: index)
            return JSONValue(document: self.document, index: index, node: node)
        }
    }
}
