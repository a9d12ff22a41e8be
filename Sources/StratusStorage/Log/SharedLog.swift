package import StratusModel

/// The log operations of one group in one pass: cut, append, remember, in that order.
package struct LogBatch: Sendable, Equatable {
    package var group: GroupID
    package var hardState: HardState?
    /// Entries from here on are replaced; they were never committed.
    package var truncateFrom: LogIndex?
    package var entries: [Entry]

    package init(
        group: GroupID, hardState: HardState? = nil, truncateFrom: LogIndex? = nil,
        entries: [Entry] = []
    ) {
        self.group = group
        self.hardState = hardState
        self.truncateFrom = truncateFrom
        self.entries = entries
    }
}

package enum LogEvent: Sendable, Equatable {
    /// Everything submitted for the group up to here is on stable storage.
    case durable(GroupID, through: LogIndex, term: Term, hardState: HardState?)
    /// Final: a sync failed, nothing later can be trusted. The node fences itself.
    case failed(LogError)
}

package struct LogError: Error, Sendable, Equatable {
    package enum Kind: Sendable, Equatable {
        case disk, corrupt, full, released
    }
    package let kind: Kind
    package let text: String
    package init(_ kind: Kind, _ text: String) {
        self.kind = kind
        self.text = text
    }
}

/// One log per node, shared by all its groups, so that one sync serves them all.
package protocol SharedLog: AnyObject {
    /// Returns at once. One ``LogEvent/durable(_:through:term:hardState:)`` per group and sync.
    func submit(_ batches: [LogBatch])
    func read(_ group: GroupID, from: LogIndex, limit: ByteCount) throws(LogError) -> [Entry]
    /// Forgets the group's entries: a snapshot replaces everything through its index.
    ///
    /// - Parameter last: of a log that has lost entries, the last one it ever held. Its entries
    ///   after the snapshot are still owed.
    func restart(
        _ group: GroupID, after snapshot: SnapshotIdentity, owing last: (LogIndex, Term)?)
    /// The state of `group` is on stable storage through `index`. Only this lets segments go.
    func release(_ group: GroupID, through index: LogIndex)
    /// The part of the log that a group holds, released entries left out: approximate bytes on
    /// disk, and entries.
    func held(of group: GroupID) -> (size: ByteCount, count: Int)
    /// Whether it may be given more: its disk has room for what waits, and not too much waits.
    var takesMore: Bool { get }
}
