package import StratusModel
import StratusPlacement
import Synchronization

/// The last findings of a node's courier: how much mail waits in the partitions led here, and which
/// mail does not get through.
package final class MailWatch: Sendable {
    /// A route that has failed for a while, and what is known of why.
    package struct Stuck: Sendable, Equatable, CustomStringConvertible {
        package var route: MailRoute
        package var duration: Duration
        /// Nil: nobody answers.
        package var trouble: MailCourier.Trouble?

        package init(route: MailRoute, duration: Duration, trouble: MailCourier.Trouble?) {
            self.route = route
            self.duration = duration
            self.trouble = trouble
        }

        package var description: String {
            func name(_ group: GroupID) -> String {
                PartitionID(group: group).map { "\($0.raw)" } ?? "system"
            }
            return "mail from partition \(name(self.route.sender)) to partition "
                + "\(name(self.route.receiver)) has waited for \(self.duration.components.seconds) "
                + "s: "
                + (self.trouble.map { "\($0)" } ?? "the receiver does not answer")
        }
    }

    /// So long a route may fail before it is worth a word: a partition finds another leader sooner.
    package static let patience = Duration.seconds(30)

    private struct State {
        var waiting: [GroupID: (count: UInt64, size: UInt64)] = [:]
        var failing: [MailRoute: MailCourier.Failing] = [:]
        /// Groups whose outbox cannot be read here: their failures are the concern of other nodes.
        var absent: Set<GroupID> = []
    }

    private let state = Mutex(State())

    package init() {}

    /// In all partitions led here, as far as they were looked at.
    package var waitingCount: UInt64 {
        self.state.withLock { $0.waiting.values.reduce(0) { $0 + $1.count } }
    }

    package var waitingSize: UInt64 {
        self.state.withLock { $0.waiting.values.reduce(0) { $0 + $1.size } }
    }

    /// In the order of the routes.
    package func stuck(at now: MonotonicTime) -> [Stuck] {
        let (failing, absent) = self.state.withLock { ($0.failing, $0.absent) }
        return failing.filter {
            now >= $0.value.since + Self.patience && !absent.contains($0.key.sender)
        }
        .sorted { $0.key < $1.key }
        .map {
            Stuck(route: $0.key, duration: now - $0.value.since, trouble: $0.value.trouble)
        }
    }

    /// - Parameter outbox: nil: it cannot be looked into here any more.
    package func saw(_ outbox: Outbox?, of group: GroupID) {
        self.state.withLock { state in
            state.waiting[group] = nil
            guard let outbox else {
                state.absent.insert(group)
                return
            }
            state.absent.remove(group)
            if outbox.waitingCount > 0 {
                state.waiting[group] = (outbox.waitingCount, outbox.waitingSize)
            }
        }
    }

    package func saw(failing: [MailRoute: MailCourier.Failing]) {
        self.state.withLock { if $0.failing != failing { $0.failing = failing } }
    }

    /// Others count what waits there.
    package func lost(_ groups: [GroupID]) {
        self.state.withLock { state in for group in groups { state.waiting[group] = nil } }
    }
}

extension MailCourier.Trouble: CustomStringConvertible {
    package var description: String {
        switch self {
        case .gap(let through, let first):
            "the receiver has mail up to \(through), and the waiting mail begins with "
                + "\(first): some is missing"
        case .refused: "the receiver cannot read it"
        }
    }
}
