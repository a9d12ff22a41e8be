/// What members have of a body that a row names.
package struct BodyNeed: Sendable, Equatable {
    package var chunkCount: Int
    package var isLost: Bool
    package var isWanted: Bool

    package init(chunkCount: Int, isLost: Bool, isWanted: Bool) {
        self.chunkCount = chunkCount
        self.isLost = isLost
        self.isWanted = isWanted
    }
}

package struct AdoptedBody: Sendable, Equatable {
    package enum State: String, Sendable {
        /// No row names the body.
        case unknown
        /// Every member has all of it.
        case held
        /// It was lost, and is no more.
        case found
        /// A chunk is still missing, or a member is away.
        case incomplete
    }

    package var state: State
    /// Copies that a member has stored.
    package var takenCount = 0
    /// Copies that are not as the row says.
    package var unsoundCount = 0

    package init(_ state: State) { self.state = state }
}
