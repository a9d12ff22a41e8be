/// One start of a node on its data directory.
package struct NodeStart: Sendable, Hashable {
    /// Counted from 1.
    package var number: UInt64
    package var incarnation: NodeIncarnation

    package init(number: UInt64, incarnation: NodeIncarnation) {
        self.number = number
        self.incarnation = incarnation
    }
}

/// The starts that a data directory has seen, the present one included.
///
/// They identify an older copy of a directory: it lacks the starts since it was taken, and never
/// gets them, however often it is started itself. Each of the last starts is remembered by the
/// number it drew. Of the earlier ones only the count is kept.
package struct NodeStarts: Sendable, Equatable {
    /// So many of the last starts are remembered each.
    package static let keptMax = 256

    package private(set) var count: UInt64
    /// The numbers that the last starts drew; the last is the present start's.
    package private(set) var incarnations: [NodeIncarnation]

    package init(first incarnation: NodeIncarnation) {
        self.count = 1
        self.incarnations = [incarnation]
    }

    /// - Returns: nil unless these are as many as are remembered of so many.
    package init?(count: UInt64, incarnations: [NodeIncarnation]) {
        guard count > 0, UInt64(incarnations.count) == min(count, UInt64(Self.keptMax)) else {
            return nil
        }
        self.count = count
        self.incarnations = incarnations
    }

    package mutating func add(_ incarnation: NodeIncarnation) {
        self.count += 1
        self.incarnations.append(incarnation)
        if self.incarnations.count > Self.keptMax { self.incarnations.removeFirst() }
    }

    /// The present one.
    package var latest: NodeStart {
        NodeStart(number: self.count, incarnation: self.incarnations[self.incarnations.count - 1])
    }

    /// Whether the directory has certainly not seen this start. It may have seen one that is too
    /// old to be remembered.
    package func lacks(_ start: NodeStart) -> Bool {
        guard start.number <= self.count else { return true }
        let age = self.count - start.number
        guard age < UInt64(self.incarnations.count) else { return false }
        return self.incarnations[self.incarnations.count - 1 - Int(age)] != start.incarnation
    }
}
