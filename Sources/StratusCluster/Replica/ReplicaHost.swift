package import StratusConsensus
package import StratusModel
import StratusStorage

/// All replicas of one node, and what they share: the log, the watch over the other nodes, the
/// clock.
///
/// A thin shell like ``Replica``: it never waits, and asks of its owner by ``Effect``s. Owned by
/// one executor. Groups are kept in the order of their numbers, so that a run of a seed repeats.
package final class ReplicaHost {
    package enum Effect: Sendable, Equatable {
        case heartbeat(NodeHeartbeat, to: NodeID)
        case message(GroupID, ConsensusMessage, to: NodeID)
        /// Call ``ReplicaHost/wake(_:at:into:)`` at this time. Earlier requests stay.
        case wake(at: MonotonicTime)
        /// Anything but sending and waking, which the host has taken over.
        case replica(GroupID, Replica.Effect)
    }

    package let node: NodeID
    package private(set) var liveness: NodeLiveness
    private var replicas: [GroupID: Replica] = [:]
    private var groups: [GroupID] = []
    private var wakes = WakeQueue()
    private var livenessWakeAt: MonotonicTime?
    private var requestedWake: MonotonicTime?

    package init(node: NodeID, liveness: NodeLiveness) {
        self.node = node
        self.liveness = liveness
    }

    package func replica(of group: GroupID) -> Replica? { self.replicas[group] }
    package var allGroups: [GroupID] { self.groups }

    package func start(at now: MonotonicTime, into effects: inout [Effect]) {
        self.handle(.started, at: now, into: &effects)
    }

    /// Begins with `replica`. It hears first what its node knows of itself and of the others.
    package func add(_ replica: Replica, at now: MonotonicTime, into effects: inout [Effect]) {
        precondition(self.replicas[replica.group] == nil, "two replicas of \(replica.group)")
        self.replicas[replica.group] = replica
        self.groups.append(replica.group)
        self.groups.sort()
        let knowledge = self.liveness.knowledge(
            of: replica.raft.configuration.members, at: self.node)
        self.with(replica.group, at: now, into: &effects) { replica, out in
            if !replica.bugs.contains(.newReplicaNotTold) {
                for event in knowledge { replica.handle(event, at: now, into: &out) }
            }
            replica.start(at: now, into: &out)
        }
    }

    package func remove(_ group: GroupID) {
        self.replicas[group] = nil
        self.groups.removeAll { $0 == group }
        self.wakes.remove(group)
    }

    // MARK: What comes in

    package func receive(
        _ heartbeat: NodeHeartbeat, from node: NodeID, _ vitals: NodeLiveness.Vitals,
        at now: MonotonicTime, into effects: inout [Effect]
    ) {
        self.handle(.heartbeat(heartbeat, from: node, vitals), at: now, into: &effects)
    }

    package func receive(
        _ message: ConsensusMessage, of group: GroupID, from node: NodeID,
        at now: MonotonicTime, into effects: inout [Effect]
    ) {
        self.handle(.heard(from: node), at: now, into: &effects)
        self.with(group, at: now, into: &effects) { replica, out in
            replica.receive(message, from: node, at: now, into: &out)
        }
    }

    package func becameDurable(
        _ group: GroupID, through: LogIndex, term: Term, hardState: HardState?,
        at now: MonotonicTime, into effects: inout [Effect]
    ) {
        self.with(group, at: now, into: &effects) { replica, out in
            replica.becameDurable(
                through: through, term: term, hardState: hardState, at: now, into: &out)
        }
    }

    package func wake(
        _ vitals: NodeLiveness.Vitals, at now: MonotonicTime, into effects: inout [Effect]
    ) {
        self.requestedWake = nil
        if let time = self.livenessWakeAt, now >= time {
            self.livenessWakeAt = nil
            self.handle(.woke(vitals), at: now, into: &effects)
        }
        for group in self.wakes.popDue(at: now) {
            self.with(group, at: now, into: &effects) { replica, out in
                replica.wake(at: now, into: &out)
            }
        }
        self.requestWake(into: &effects)
    }

    /// Anything else for one replica: submissions, reads, membership.
    package func with(
        _ group: GroupID, at now: MonotonicTime, into effects: inout [Effect],
        _ body: (Replica, inout [Replica.Effect]) -> Void
    ) {
        guard let replica = self.replicas[group] else { return }
        var out: [Replica.Effect] = []
        body(replica, &out)
        for effect in out {
            switch effect {
            case .send(let message, let to):
                effects.append(.message(group, message, to: to))
            case .wake(let time):
                self.wakes.set(time, for: group)
            case .resigned(let term):
                var ignored: [NodeLiveness.Action] = []
                self.liveness.handle(
                    .resigned(group, term: term), at: now, into: &ignored)
                effects.append(.replica(group, effect))
            case .answered, .read, .changed, .roleChanged, .applied, .reached, .alarm, .failed,
                .stopped, .gaveUp, .snapshotLacksRoom, .differs, .diverged, .rebuilt, .rotten,
                .rowsChecked,
                .rebuildFailed, .fileRebuilt:
                effects.append(.replica(group, effect))
            }
        }
        self.requestWake(into: &effects)
    }

    /// The process of a peer has ended: see ``PeerLinks/Events/processEnded``.
    package func peerEnded(_ node: NodeID, at now: MonotonicTime, into effects: inout [Effect]) {
        self.handle(.ended(node), at: now, into: &effects)
    }

    package func setPeers(_ peers: [NodeID], at now: MonotonicTime, into effects: inout [Effect]) {
        self.handle(.peersChanged(peers), at: now, into: &effects)
    }

    // MARK: The watch

    private func handle(
        _ event: NodeLiveness.Event, at now: MonotonicTime, into effects: inout [Effect]
    ) {
        var actions: [NodeLiveness.Action] = []
        self.liveness.handle(event, at: now, into: &actions)
        for action in actions {
            switch action {
            case .send(let heartbeat, let to): effects.append(.heartbeat(heartbeat, to: to))
            case .wake(let time): self.livenessWakeAt = time
            case .suspect(let node): self.tellAll(.suspected(node), at: now, into: &effects)
            case .noteEnded(let node): self.tellAll(.ended(node), at: now, into: &effects)
            case .trust(let node): self.tellAll(.trusted(node), at: now, into: &effects)
            case .declined(let node): self.tellAll(.declined(node), at: now, into: &effects)
            case .recovered(let node): self.tellAll(.recovered(node), at: now, into: &effects)
            case .restarted(let node): self.tellAll(.restarted(node), at: now, into: &effects)
            case .inhibit(let reasons):
                self.tellAll(.inhibited(reasons), at: now, into: &effects)
            case .permit(let reasons):
                self.tellAll(.permitted(reasons), at: now, into: &effects)
            case .leaderResigned(let node, let group, let term):
                self.with(group, at: now, into: &effects) { replica, out in
                    replica.handle(.leaderResigned(node, term: term), at: now, into: &out)
                }
            }
        }
        self.requestWake(into: &effects)
    }

    private func tellAll(
        _ event: RaftGroup.Event, at now: MonotonicTime, into effects: inout [Effect]
    ) {
        for group in self.groups {
            self.with(group, at: now, into: &effects) { replica, out in
                replica.handle(event, at: now, into: &out)
            }
        }
    }

    private func requestWake(into effects: inout [Effect]) {
        var earliest = self.wakes.earliest
        if let time = self.livenessWakeAt { earliest = min(earliest ?? time, time) }
        guard let earliest, self.requestedWake.map({ earliest < $0 }) ?? true else { return }
        self.requestedWake = earliest
        effects.append(.wake(at: earliest))
    }
}

/// When which group wants to be woken: each at most once.
struct WakeQueue {
    private var times: [GroupID: MonotonicTime] = [:]
    /// A binary heap of what was ever asked for; what `times` does not confirm is stale.
    private var heap: [(time: MonotonicTime, group: GroupID)] = []

    var earliest: MonotonicTime? { self.heap.first?.time }

    mutating func set(_ time: MonotonicTime, for group: GroupID) {
        if self.times[group] == time { return }
        self.times[group] = time
        self.heap.append((time, group))
        var child = self.heap.count - 1
        while child > 0, self.isBefore(child, (child - 1) / 2) {
            self.heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
        self.dropStale()
    }

    mutating func remove(_ group: GroupID) {
        self.times[group] = nil
        self.dropStale()
    }

    /// Groups whose time has come, in the order of their times, then of their numbers.
    mutating func popDue(at now: MonotonicTime) -> [GroupID] {
        var due: [GroupID] = []
        while let first = self.heap.first, first.time <= now {
            if self.times[first.group] == first.time {
                self.times[first.group] = nil
                due.append(first.group)
            }
            self.popFirst()
        }
        self.dropStale()
        return due
    }

    private mutating func dropStale() {
        while let first = self.heap.first, self.times[first.group] != first.time { self.popFirst() }
    }

    private mutating func popFirst() {
        self.heap.swapAt(0, self.heap.count - 1)
        self.heap.removeLast()
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < self.heap.count && self.isBefore(child, least) { least = child }
            if least == parent { return }
            self.heap.swapAt(parent, least)
            parent = least
        }
    }

    private func isBefore(_ one: Int, _ other: Int) -> Bool {
        (self.heap[one].time, self.heap[one].group) < (
            self.heap[other].time, self.heap[other].group
        )
    }
}
