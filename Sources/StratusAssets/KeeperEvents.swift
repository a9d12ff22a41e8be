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
/// thread asks ``hasRoom`` before it takes more from a partition. So the queue is bounded.
package final class KeeperInbox: Sendable {
    package static let countMax = 4_096

    private struct State {
        var events: [(GroupID, RowsEvent)] = []
        var isScheduled = false
        var drain: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    package init() {}

    package var hasRoom: Bool { self.state.withLock { $0.events.count < Self.countMax } }

    package func post(_ event: RowsEvent, of group: GroupID) {
        let drain = self.state.withLock { state -> (@Sendable () -> Void)? in
            state.events.append((group, event))
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
    func take() -> [(GroupID, RowsEvent)] {
        self.state.withLock { state in
            let events = Array(state.events.prefix(64))
            state.events.removeFirst(events.count)
            if events.isEmpty { state.isScheduled = false }
            return events
        }
    }

    private static func claim(_ state: inout State) -> (@Sendable () -> Void)? {
        guard !state.isScheduled, let drain = state.drain else { return nil }
        state.isScheduled = true
        return drain
    }
}
