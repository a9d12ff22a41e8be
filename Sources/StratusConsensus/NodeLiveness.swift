package import StratusModel

/// Tells which nodes are well, from one heartbeat per pair of nodes however many groups they share.
///
/// Feeds election timers and nothing else: no group takes a heartbeat for an acknowledgement. What
/// a leader wants to know it asks by group and term (`probe`).
///
/// Rules, with the times of ``Tuning``:
/// - A node not heard for `silenceMax` is suspected until it is heard again. Any frame counts.
/// - A node whose process has ended is suspected at once. Its links know that, since its system
///   refuses connections; a link that merely breaks says nothing.
/// - A node whose oldest log write has waited longer than `unsyncedSuspicion` for its sync, or that
///   says so itself, declines leadership: its followers may campaign, but it is still sent entries.
/// - A node whose own writes wait longer than `unsyncedMax`, or whose wall clock is further than
///   `clockSkewMax` from the median of the cluster, inhibits all its groups.
/// - What a heartbeat says of the peer's clock is old by the time the heartbeat took. Delay only
///   makes a peer look behind, so the largest offset of the last second counts.
/// - A new incarnation of a node's process leads nothing, whatever its predecessor led.
package struct NodeLiveness: Sendable, Equatable {
    package struct Tuning: Sendable, Equatable {
        package var interval: Duration = .milliseconds(100)
        package var silenceMax: Duration = .milliseconds(500)
        package var unsyncedSuspicionMilliseconds: UInt32 = 500
        package var unsyncedMaxMilliseconds: UInt32 = 1_000
        package var clockSkewMaxMilliseconds: Int64 = 500
        /// Offsets older than this are forgotten. A pause between two heartbeats counts as two
        /// intervals at most: what comes in first after it has waited longest.
        package var clockWindow: Duration = .seconds(1)
        package var clockSampleCountMax = 16
        /// How long a resignation is repeated, and how many are carried at most.
        package var resignationLife: Duration = .seconds(2)
        package var resignationCountMax = 1_024
        package init() {}
    }

    package enum Event: Sendable, Equatable {
        case started
        case woke(Vitals)
        case heard(from: NodeID)
        /// The node's process has ended: its connections are closed, and it refuses new ones.
        case ended(NodeID)
        case heartbeat(NodeHeartbeat, from: NodeID, Vitals)
        /// A group of this node leads no more.
        case resigned(GroupID, term: Term)
        case peersChanged([NodeID])
    }

    /// The state of the own node at the moment of an event, as the shell reports it.
    package struct Vitals: Sendable, Equatable {
        package var wallMilliseconds: Int64
        /// How long the oldest submitted log write waits; zero when none does.
        package var unsyncedMilliseconds: UInt32
        package init(wallMilliseconds: Int64, unsyncedMilliseconds: UInt32) {
            self.wallMilliseconds = wallMilliseconds
            self.unsyncedMilliseconds = unsyncedMilliseconds
        }
    }

    package enum Action: Sendable, Equatable {
        case send(NodeHeartbeat, to: NodeID)
        case wake(at: MonotonicTime)
        /// Goes to every group of this node.
        case suspect(NodeID)
        /// Like ``suspect(_:)``, but at once: the node's process has ended.
        case noteEnded(NodeID)
        case trust(NodeID)
        case declined(NodeID)
        case recovered(NodeID)
        case restarted(NodeID)
        case inhibit(Inhibition)
        case permit(Inhibition)
        /// Goes to that group.
        case leaderResigned(NodeID, GroupID, term: Term)
    }

    private struct Peer: Sendable, Equatable {
        let node: NodeID
        var incarnation: NodeIncarnation?
        var previousIncarnation: NodeIncarnation?
        var heardAt: MonotonicTime
        var isSuspect = false
        var declines = false
        /// What heartbeats said of its wall clock lately, oldest first. Each is smaller than the
        /// one before it: a smaller one followed by a larger one says nothing.
        var clock: [ClockSample] = []
        /// How long heartbeats came, without pauses, and when the last one did.
        var beatTime: Duration = .zero
        var beatAt: MonotonicTime?
    }

    private struct ClockSample: Sendable, Equatable {
        /// By the peer's `beatTime`.
        var at: Duration
        /// The peer's wall clock minus this node's monotonic clock. A jump of the own wall clock
        /// changes nothing in it.
        var difference: Int64
    }

    private struct Resignation: Sendable, Equatable {
        var group: ResignedGroup
        var until: MonotonicTime
    }

    private let incarnation: NodeIncarnation
    private let tuning: Tuning
    /// Sorted by node, so that heartbeats leave in the same order on every run of a seed.
    private var peers: [Peer] = []
    private var resignations: [Resignation] = []
    private var sequence: UInt64 = 0
    private var nextBeat: MonotonicTime
    private var vitals = Vitals(wallMilliseconds: 0, unsyncedMilliseconds: 0)
    /// The own wall clock minus the monotonic one.
    private var ownDifference: Int64 = 0
    /// Whether the own writes wait too long for their sync.
    package private(set) var isStalled = false
    /// Why this node leads nothing; empty when it may lead.
    package private(set) var inhibition: Inhibition = []
    package var isInhibited: Bool { !self.inhibition.isEmpty }

    package init(
        incarnation: NodeIncarnation, peers: [NodeID], tuning: Tuning = Tuning(),
        at now: MonotonicTime
    ) {
        self.incarnation = incarnation
        self.tuning = tuning
        self.nextBeat = now
        self.setPeers(peers, at: now)
    }

    package mutating func handle(
        _ event: Event, at now: MonotonicTime, into actions: inout [Action]
    ) {
        switch event {
        case .started:
            actions.append(.wake(at: self.nextBeat))
        case .woke(let vitals):
            self.note(vitals, at: now)
            self.judgeSelf(into: &actions)
            self.judgeSilence(at: now, into: &actions)
            if now >= self.nextBeat { self.beat(at: now, into: &actions) }
            actions.append(.wake(at: self.nextBeat))
        case .heard(let node):
            self.heard(node, at: now, into: &actions)
        case .ended(let node):
            guard let position = self.peers.firstIndex(where: { $0.node == node }),
                !self.peers[position].isSuspect
            else { return }
            self.peers[position].isSuspect = true
            actions.append(.noteEnded(node))
        case .heartbeat(let heartbeat, let node, let vitals):
            self.note(vitals, at: now)
            self.take(heartbeat, from: node, at: now, into: &actions)
        case .resigned(let group, let term):
            let resigned = ResignedGroup(group: group, term: term)
            self.resignations.removeAll { $0.group.group == group }
            if self.resignations.count >= self.tuning.resignationCountMax {
                self.resignations.removeFirst()
            }
            self.resignations.append(
                Resignation(group: resigned, until: now + self.tuning.resignationLife))
        case .peersChanged(let nodes):
            // Nobody listens to who is no peer any more: a group that it leads must not wait for
            // it.
            let gone = self.peers.filter { !nodes.contains($0.node) && !$0.isSuspect }
            let known = self.peers.map(\.node)
            self.setPeers(nodes, at: now)
            for peer in gone { actions.append(.suspect(peer.node)) }
            // Groups may have heard before that a node is nobody's peer.
            for peer in self.peers where !known.contains(peer.node) {
                actions.append(.trust(peer.node))
            }
        }
    }

    /// When each peer was last heard, sorted by peer; those from whom no heartbeat has come yet are
    /// not among them.
    package var lastHeard: [(node: NodeID, at: MonotonicTime)] {
        self.peers.filter { $0.incarnation != nil }.map { ($0.node, $0.heardAt) }
    }

    /// Peers that are not suspected, sorted.
    package var heardPeers: [NodeID] {
        self.peers.filter { !$0.isSuspect }.map(\.node).sorted()
    }

    /// The events that tell a newly opened replica what the others were told when it happened.
    ///
    /// - Parameter members: of its group. One that is nobody's peer is not heard, so it counts as
    ///   silent.
    package func knowledge(of members: [NodeID], at node: NodeID) -> [RaftGroup.Event] {
        var events: [RaftGroup.Event] = []
        if self.isInhibited { events.append(.inhibited(self.inhibition)) }
        for peer in self.peers {
            if peer.isSuspect { events.append(.suspected(peer.node)) }
            if peer.declines { events.append(.declined(peer.node)) }
        }
        for member in members.sorted()
        where member != node && !self.peers.contains(where: { $0.node == member }) {
            events.append(.suspected(member))
        }
        return events
    }

    package func isSuspect(_ node: NodeID) -> Bool {
        self.peers.contains { $0.node == node && $0.isSuspect }
    }

    // MARK: Own side

    private mutating func beat(at now: MonotonicTime, into actions: inout [Action]) {
        self.sequence += 1
        self.nextBeat = now + self.tuning.interval
        self.resignations.removeAll { $0.until <= now }
        let heartbeat = NodeHeartbeat(
            incarnation: self.incarnation, sequence: self.sequence,
            unsyncedMilliseconds: self.vitals.unsyncedMilliseconds,
            wallMilliseconds: self.vitals.wallMilliseconds,
            declinesLeadership: self.isInhibited, resigned: self.resignations.map(\.group))
        for peer in self.peers { actions.append(.send(heartbeat, to: peer.node)) }
    }

    private mutating func judgeSelf(into actions: inout [Action]) {
        let unsynced = self.vitals.unsyncedMilliseconds
        if unsynced > self.tuning.unsyncedMaxMilliseconds { self.isStalled = true }
        if unsynced < self.tuning.unsyncedSuspicionMilliseconds { self.isStalled = false }
        var reasons: Inhibition = []
        if self.isStalled { reasons.insert(.log) }
        if self.isClockOff { reasons.insert(.clock) }
        let begun = reasons.subtracting(self.inhibition)
        let ended = self.inhibition.subtracting(reasons)
        self.inhibition = reasons
        if !begun.isEmpty { actions.append(.inhibit(begun)) }
        if !ended.isEmpty { actions.append(.permit(ended)) }
    }

    /// Whether the own wall clock is too far from the others'.
    package var isClockOff: Bool {
        self.clockLeadMilliseconds.magnitude > UInt64(self.tuning.clockSkewMaxMilliseconds)
    }

    private mutating func note(_ vitals: Vitals, at now: MonotonicTime) {
        self.vitals = vitals
        self.ownDifference = Self.difference(vitals.wallMilliseconds, now)
    }

    /// Wrapping: a hostile clock must not trap.
    private static func difference(_ wall: Int64, _ now: MonotonicTime) -> Int64 {
        wall &- now.nanoseconds / 1_000_000
    }

    /// How far the own wall clock is ahead of the median of all clocks heard now and the own. Of
    /// two in the middle the one nearer to ours counts, so that a pair of nodes that disagree can
    /// still work.
    package var clockLeadMilliseconds: Int64 {
        var offsets = self.peers.filter { !$0.isSuspect }.compactMap { peer in
            peer.clock.first.map { $0.difference &- self.ownDifference }
        }
        offsets.append(0)
        offsets.sort()
        let upper = offsets[offsets.count / 2]
        let lower = offsets[(offsets.count - 1) / 2]
        return 0 &- (upper.magnitude < lower.magnitude ? upper : lower)
    }

    // MARK: The peers

    private mutating func setPeers(_ nodes: [NodeID], at now: MonotonicTime) {
        let known = self.peers
        self.peers = nodes.sorted().map { node in
            known.first { $0.node == node } ?? Peer(node: node, heardAt: now)
        }
    }

    private mutating func heard(
        _ node: NodeID, at now: MonotonicTime, into actions: inout [Action]
    ) {
        guard let position = self.peers.firstIndex(where: { $0.node == node }) else { return }
        self.peers[position].heardAt = now
        guard self.peers[position].isSuspect else { return }
        self.peers[position].isSuspect = false
        actions.append(.trust(node))
    }

    private mutating func judgeSilence(at now: MonotonicTime, into actions: inout [Action]) {
        for position in self.peers.indices where !self.peers[position].isSuspect {
            guard now - self.peers[position].heardAt > self.tuning.silenceMax else { continue }
            self.peers[position].isSuspect = true
            actions.append(.suspect(self.peers[position].node))
        }
    }

    private mutating func noteClock(of position: Int, _ wall: Int64, at now: MonotonicTime) {
        let pause = self.peers[position].beatAt.map { now - $0 } ?? .zero
        self.peers[position].beatAt = now
        self.peers[position].beatTime += min(pause, self.tuning.interval * 2)
        let time = self.peers[position].beatTime
        let sample = ClockSample(at: time, difference: Self.difference(wall, now))
        var clock = self.peers[position].clock
        clock.removeAll { $0.difference <= sample.difference }
        if clock.count >= self.tuning.clockSampleCountMax { clock.removeLast() }
        clock.append(sample)
        while let first = clock.first, time - first.at > self.tuning.clockWindow {
            clock.removeFirst()
        }
        self.peers[position].clock = clock
    }

    private mutating func take(
        _ heartbeat: NodeHeartbeat, from node: NodeID, at now: MonotonicTime,
        into actions: inout [Action]
    ) {
        guard let position = self.peers.firstIndex(where: { $0.node == node }),
            // A message from a process that is gone, overtaken by its successor's.
            heartbeat.incarnation != self.peers[position].previousIncarnation
        else { return }
        if let known = self.peers[position].incarnation, known != heartbeat.incarnation {
            self.peers[position].previousIncarnation = known
            actions.append(.restarted(node))
        }
        self.peers[position].incarnation = heartbeat.incarnation
        self.noteClock(of: position, heartbeat.wallMilliseconds, at: now)
        self.heard(node, at: now, into: &actions)
        let declines =
            heartbeat.declinesLeadership
            || heartbeat.unsyncedMilliseconds > self.tuning.unsyncedSuspicionMilliseconds
        if declines != self.peers[position].declines {
            self.peers[position].declines = declines
            actions.append(declines ? .declined(node) : .recovered(node))
        }
        for resigned in heartbeat.resigned {
            actions.append(.leaderResigned(node, resigned.group, term: resigned.term))
        }
    }
}
