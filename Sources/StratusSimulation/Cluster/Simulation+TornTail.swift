import StratusCluster
import StratusConsensus
import StratusDoubles
import StratusModel
import StratusStorage

/// The end of one member's log rots while its process is down, and its start takes that for a tear
/// (S-09).
struct TornTail {
    let group: GroupID
    let leader: NodeID
    /// The life of the leader that has what the member loses.
    let leaderLife: UInt64
    /// It has what only the leader has too, and loses it.
    let member: NodeID
    /// It is cut off meanwhile, so it lacks the same.
    let other: NodeID
    /// What the member had on disk, and no longer has.
    var lost: ClosedRange<UInt64>?
    /// The leader has told the member what it owes.
    var isTold = false
}

// The worst that a rotten tail can do: the leader ends before it has filled the member's log again,
// and the member could help somebody to lead who lacks the same entries.
extension Simulation {
    /// The cuts of this scenario have this number; ``cutCount`` begins behind it.
    private static let cutNumber = 0

    func beginTornTail() {
        guard let group = self.groups.first,
            let leader = self.nodes.first(where: {
                $0.host?.replica(of: group)?.raft.role == .leader
            })
        else { return self.later() }
        let others = self.nodes.filter { $0.id != leader.id }
        guard others.count == 2, others.allSatisfy(\.isUp) else { return self.later() }
        let torn = TornTail(
            group: group, leader: leader.id, leaderLife: leader.incarnation,
            member: others[0].id, other: others[1].id)
        self.tornTail = torn
        for id in [torn.leader, torn.member] {
            self.cuts.append((number: Self.cutNumber, from: id, to: torn.other))
            self.cuts.append((number: Self.cutNumber, from: torn.other, to: id))
        }
        self.note("\(group): \(torn.other) is cut off")
        self.queue.add(.check(.tearTail(attempt: 0)), at: self.now + self.drawTime(20...100))
    }

    private func later() {
        self.queue.add(.check(.tearTail(attempt: -1)), at: self.now + 20_000_000)
    }

    /// - Parameter attempt: below zero: nothing has begun. The member is struck at a moment at
    ///   which all of its log is on disk.
    func tearTail(attempt: Int) {
        guard self.phase == .steady else { return }
        if attempt < 0 { return self.beginTornTail() }
        guard var torn = self.tornTail, torn.lost == nil else { return }
        let node = self.node(torn.member)
        guard attempt < 2_000, let log = node.log, node.isUp,
            self.node(torn.leader).host?.replica(of: torn.group)?.raft.role == .leader
        else { return self.giveUpTornTail() }
        let last = log.last(of: torn.group).index
        guard log.durable(of: torn.group) == last,
            let rows = node.partitions[torn.group]?.durable,
            let place = self.placeOfTear(in: node, torn.group), rows <= place.last
        else {
            self.queue.add(.check(.tearTail(attempt: attempt + 1)), at: self.now + 1_000_000)
            return
        }
        // With the power: the rows go back to what is durable, and lack what the log loses, and
        // nothing closes the log.
        self.crash(node, losesPower: true, backAfter: self.drawTime(5...30))
        node.end = .powerLossLosingAll
        node.files.flip(bit: place.bit, at: place.offset, of: place.path)
        node.isStruck = true
        self.takeAway(behind: place.last, of: torn.group, from: node)
        torn.lost = (place.last.raw + 1)...last.raw
        self.tornTail = torn
        self.note("\(torn.group) \(node.id) loses \(torn.lost!) as if they were torn")
    }

    /// The node promised these entries, and cannot keep what it promised.
    private func takeAway(behind last: LogIndex, of group: GroupID, from node: SimulatedNode) {
        guard let promised = node.promised[group] else { return }
        let kept = Int(last.raw - min(last.raw, promised.start.raw))
        var index = max(last, promised.start)
        for term in promised.terms.dropFirst(kept) {
            index = index.next
            node.tornAway[group, default: [:]][index] = term
        }
        node.promised[group]?.terms.removeLast(promised.terms.count - kept)
    }

    /// A bit whose flip makes the next start cut acknowledged entries off.
    private func placeOfTear(in node: SimulatedNode, _ group: GroupID)
        -> (path: DiskPath, offset: Int, bit: Int, last: LogIndex)?
    {
        guard let path = Self.newestSegment(of: node),
            let end = (node.files.contents(of: path, onlySynced: true) ?? [])
                .lastIndex(where: { $0 != 0 }),
            let before = self.tryLog(of: node, onlySynced: true, { _ in })
        else { return nil }
        let offset = end - Int(self.drawTime(0...Int64(min(end, 1_024))) / 1_000_000)
        let bit = Int(self.drawTime(0...7) / 1_000_000)
        let after = self.tryLog(of: node, onlySynced: true) {
            $0.flip(bit: bit, at: offset, of: path)
        }
        guard let after, after.damage.isNone, before.damage.isNone,
            after.damage.suspectTail.contains(where: { $0.group == group }),
            after.last(of: group).index < before.last(of: group).index,
            after.last(of: group).index >= after.start(of: group).index,
            before.groupIDs.allSatisfy({
                after.hardState(of: $0) == before.hardState(of: $0)
                    && ($0 == group || after.last(of: $0).index == before.last(of: $0).index)
            })
        else { return nil }
        return (path, offset, bit, after.last(of: group).index)
    }

    /// Whether a message is lost here: what would fill the log before the member was told, and
    /// everything of that leader afterwards.
    func tornTailLoses(_ message: ConsensusMessage, from: NodeID, to node: SimulatedNode) -> Bool {
        guard let torn = self.tornTail, torn.lost != nil, node.id == torn.member,
            from == torn.leader
        else { return false }
        if self.node(from).incarnation != torn.leaderLife { return false }
        if torn.isTold { return true }
        guard case .append(let previous, _, _) = message.body,
            let last = node.host?.replica(of: torn.group)?.raft.log.last
        else { return false }
        return previous.index <= last
    }

    /// The member knows what it owes: now the only other holder ends, and the third one is back.
    func tornTailIsOwed(by node: SimulatedNode) {
        guard let torn = self.tornTail, torn.member == node.id, !torn.isTold, torn.lost != nil
        else { return }
        self.tornTail?.isTold = true
        self.note("\(torn.group) \(node.id) owes what it lost; \(torn.leader) ends")
        self.cuts.removeAll { $0.number == Self.cutNumber }
        self.queue.add(.check(.endTornLeader), at: self.now)
    }

    /// It is back after some elections could have taken place without it.
    func endTornLeader() {
        guard let torn = self.tornTail, self.node(torn.leader).incarnation == torn.leaderLife
        else { return }
        self.crash(
            self.node(torn.leader), losesPower: false, backAfter: self.drawTime(2_000...4_000))
    }

    /// Load goes on until the leader that ended is back.
    var tornTailProblem: String? {
        guard let torn = self.tornTail,
            self.node(torn.leader).incarnation == torn.leaderLife
        else { return nil }
        return "\(torn.group): \(torn.leader) has not told \(torn.member) what it owes"
    }

    private func giveUpTornTail() {
        self.note("no tail was torn")
        self.cuts.removeAll { $0.number == Self.cutNumber }
        self.tornTail = nil
    }
}
