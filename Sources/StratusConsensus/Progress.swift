package import StratusModel

/// What a leader knows of one peer's log (thesis §3.5, §10.2.1).
///
/// Invariants: `match < next`, `match <= received`, and neither `match` nor `received` of a
/// leadership ever falls, unless the peer says that its log was damaged or shows that it was set back.
/// `match` too low is true all the same, and mended by the next acknowledgement.
package struct Progress: Sendable, Equatable {
    package enum Mode: Sendable, Equatable {
        /// One message at a time, until the logs are known to agree.
        case probing
        /// Messages follow each other without waiting, within the bounds of flight.
        case streaming
        /// The log does not reach back far enough: a snapshot travels.
        case snapshot
    }

    struct Flight: Sendable, Equatable {
        var last: LogIndex
        var size: Int
    }

    package let node: NodeID
    package internal(set) var mode = Mode.probing
    /// On the peer's stable storage.
    package internal(set) var match = LogIndex.zero
    /// At least in the peer's memory.
    package internal(set) var received = LogIndex.zero
    package internal(set) var next: LogIndex
    /// What the peer last said it knows to be committed, and what it was last told.
    var knownCommit = LogIndex.zero
    var toldCommit = LogIndex.zero
    var flights: [Flight] = []
    var flightSize = 0
    /// Something unanswered is out; sent again at this time. Nil when nothing is.
    var resendAt: MonotonicTime?
    /// By the pair heartbeats. Decides whether it is worth sending, never what is true.
    var isReachable = true
    var snapshotNext: UInt32 = 0
    /// It has acknowledged what it is known to have in its present life.
    var isProven = true

    init(node: NodeID, next: LogIndex) {
        self.node = node
        self.next = next
    }

    mutating func landed(through index: LogIndex) {
        var count = 0
        while count < self.flights.count, self.flights[count].last <= index {
            self.flightSize -= self.flights[count].size
            count += 1
        }
        self.flights.removeFirst(count)
    }

    mutating func probe(from next: LogIndex) {
        self.mode = .probing
        self.next = next
        self.flights.removeAll()
        self.flightSize = 0
        self.resendAt = nil
        self.toldCommit = self.knownCommit
    }
}
