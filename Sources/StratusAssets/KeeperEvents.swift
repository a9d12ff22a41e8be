package import StratusModel
import Synchronization

/// What the rows of one partition say about bodies, in the order in which entries were applied.
package enum RowsEvent: Sendable {
    /// The replica is open. Its rows are durable as they are.
    case opened(applied: LogIndex, milliseconds: Int64)
    /// Entries were applied: what they did to bodies.
    case applied([BodyChange], through: LogIndex, milliseconds: Int64)
    /// The rows are durable through an entry, which has this time.
    case durable(through: LogIndex, milliseconds: Int64)
    /// An answer to ``CopyKeeper/Setup/askRows``: the bodies that the rows name from a name on.
    case page(from: CopyName, end: CopyName?, bodies: [BodyManifest])
    /// A leader wants to know through which entry this replica has every copy.
    case wantsHeld
    /// The replica is gone from this node, with its rows and its log: its copies go too.
    case removed
}

/// The queue of events between the storage thread and the keeper, in order.
///
/// Each event stands for something that one entry or one page of rows brought, and the storage
/// thread asks ``hasRoom`` before it takes more from a partition. What comes without asking
/// replaces its like: a partition has at most one such event behind the last of the others. So the
/// queue is bounded.
package final class KeeperInbox: Sendable {
    package static let countMax = 4_096

    private struct State {
        var events: [(GroupID, RowsEvent)] = []
        /// Events taken so far, and the number of each partition's last event.
        var takenCount = 0
        var last: [GroupID: Int] = [:]
        var isScheduled = false
        var drain: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    package init() {}

    package var hasRoom: Bool { self.state.withLock { $0.events.count < Self.countMax } }

    package func post(_ event: RowsEvent, of group: GroupID) {
        let drain = self.state.withLock { state -> (@Sendable () -> Void)? in
            Self.add(event, of: group, to: &state)
            return Self.claim(&state)
        }
        drain?()
    }

    /// Calls `drain` from now on when an event arrives: once, until ``take()`` has found nothing.
    func start(_ drain: @escaping @Sendable () -> Void) {
        let first = self.state.withLock { state -> (@Sendable () -> Void)? in
            state.drain = drain
            return state.events.isEmpty ? nil : Self.claim(&state)
        }
        first?()
    }

    /// Up to 64 events. Empty: the next event calls `drain` again.
    package func take() -> [(GroupID, RowsEvent)] {
        self.state.withLock { state in
            let events = Array(state.events.prefix(64))
            state.events.removeFirst(events.count)
            state.takenCount += events.count
            if state.events.isEmpty { state.last = [:] }
            if events.isEmpty { state.isScheduled = false }
            return events
        }
    }

    private static func add(_ event: RowsEvent, of group: GroupID, to state: inout State) {
        if let number = state.last[group], number >= state.takenCount {
            let place = number - state.takenCount
            switch (state.events[place].1, event) {
            case (.durable, .durable):
                state.events[place].1 = event
                return
            case (.wantsHeld, .wantsHeld): return
            default: break
            }
        }
        state.last[group] = state.takenCount + state.events.count
        state.events.append((group, event))
    }

    private static func claim(_ state: inout State) -> (@Sendable () -> Void)? {
        guard !state.isScheduled, let drain = state.drain else { return nil }
        state.isScheduled = true
        return drain
    }
}
