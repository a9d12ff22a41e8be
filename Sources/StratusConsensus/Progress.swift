package import StratusModel

/// A leader's view of one peer's log (thesis §3.5, §10.2.1).
///
/// Entries that were sent are counted until they are on the peer's stable storage, however often
/// they are sent and whatever the peer has in memory. A peer whose disk is full or hangs therefore
/// holds no more than one leader's bound.
///
/// Invariants: `match < next`, `match <= received`, and neither `match` nor `received` of a
/// leadership ever falls, unless the peer says that its log was damaged or shows that it was set
/// back. `match` too low is true all the same, and mended by the next acknowledgement.
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
        var first: LogIndex
        var last: LogIndex
        var size: Int
    }

    package let node: NodeID
    package internal(set) var mode = Mode.probing
    /// The last entry known to be on the peer's stable storage.
    package internal(set) var match = LogIndex.zero
    /// The last entry known to be at least in the peer's memory.
    package internal(set) var received = LogIndex.zero
    package internal(set) var next: LogIndex
    /// The commit index that the peer last said it knows, and the one it was last told.
    var knownCommit = LogIndex.zero
    var toldCommit = LogIndex.zero
    /// Sent in this reign, and not known to be on the peer's stable storage: oldest first, each
    /// entry once.
    var flights: [Flight] = []
    package internal(set) var flightSize = 0
    /// The shell reads entries for it from the log: what comes next is sent when they are.
    var awaitsLog = false
    /// It has answered in this reign.
    var isHeard = false
    /// Until it has: what it may have, which is where the log began when the reign did.
    let assumed: LogIndex
    /// When it last had more on its stable storage than before, or took part of a snapshot.
    var movedAt: MonotonicTime?
    /// Something unanswered is out; sent again at this time. Nil when nothing is.
    var resendAt: MonotonicTime?
    /// It has its log and lacks its rows: a snapshot is sent beside the entries, and sent again at
    /// this time.
    var stateResendAt: MonotonicTime?
    /// Set by the pair heartbeats. Decides whether it is worth sending, never what is true.
    var isReachable = true
    /// It has asked for its rows.
    package internal(set) var lacksRows = false
    /// It has acknowledged what it is known to have in its present life.
    var isProven = true

    init(node: NodeID, next: LogIndex, assumed: LogIndex = .zero) {
        self.node = node
        self.assumed = assumed
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

    /// The last entry that was ever sent.
    var sentThrough: LogIndex { max(self.match, self.flights.last?.last ?? .zero) }

    var isSentSnapshot: Bool { self.mode == .snapshot || self.stateResendAt != nil }

    /// Counts entries as sent. Entries that were sent before are counted already. If more is sent
    /// along with them, the message stands for those that it repeats.
    mutating func sent(from first: LogIndex, through last: LogIndex, size: Int) {
        guard last > self.sentThrough else { return }
        while let flight = self.flights.last, flight.first >= first {
            self.flightSize -= flight.size
            self.flights.removeLast()
        }
        self.flights.append(Flight(first: first, last: last, size: size))
        self.flightSize += size
    }

    /// Its memory is gone, or what it had.
    mutating func forgetFlights() {
        self.flights.removeAll()
        self.flightSize = 0
    }

    mutating func probe(from next: LogIndex) {
        self.mode = .probing
        self.next = next
        self.awaitsLog = false
        self.resendAt = nil
        self.toldCommit = self.knownCommit
    }
}
