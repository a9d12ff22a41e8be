import Synchronization

/// The live streams of a node, counted. Shared by every gateway of a node.
final class LiveStreams: Sendable {
    private struct State {
        var count = 0
        /// By user: those that have one.
        var counts: [String: Int] = [:]
    }

    enum Refusal: Error, Sendable, Equatable {
        /// The node has as many as it may.
        case node
        /// The user has as many as one may.
        case user
    }

    private let state = Mutex(State())

    var count: Int { self.state.withLock { $0.count } }

    /// Counts one more stream until its place is let go.
    func enter(
        _ user: String, userMax: Int, nodeMax: Int
    ) throws(Refusal) -> LivePlace {
        let refusal = self.state.withLock { state -> Refusal? in
            if state.counts[user, default: 0] >= userMax { return .user }
            if state.count >= nodeMax { return .node }
            state.count += 1
            state.counts[user, default: 0] += 1
            return nil
        }
        if let refusal { throw refusal }
        return LivePlace(of: user, in: self)
    }

    fileprivate func leave(_ user: String) {
        self.state.withLock { state in
            state.count -= 1
            let left = state.counts[user, default: 1] - 1
            state.counts[user] = left > 0 ? left : nil
        }
    }
}

/// The place of one live stream among those of its node.
final class LivePlace: Sendable {
    private let user: String
    private let owner: LiveStreams

    fileprivate init(of user: String, in owner: LiveStreams) {
        self.user = user
        self.owner = owner
    }

    deinit { self.owner.leave(self.user) }
}
