package import StratusModel

/// Compares what the replicas of one group have made of the same entries.
///
/// Each replica says the digest of its rows at every so many entries. Replicas that have applied
/// the same entries have equal digests: one that differs from a majority of the voters is wrong,
/// whoever leads. Where no majority agrees, nobody can say who is wrong.
///
/// Bounds: what is remembered of each member are its last ``pointCountMax`` digests.
package struct DigestComparison: Sendable, Equatable {
    package enum Finding: Sendable, Equatable {
        /// A majority of the voters agrees on another digest than this replica's.
        case ownDiffers(at: LogIndex)
        /// The digest of this member differs from this replica's. Said once of each member, until
        /// it agrees again.
        case memberDiffers(NodeID, at: LogIndex)
    }

    private struct Point: Sendable, Equatable {
        let index: LogIndex
        let digest: StateDigest
    }

    package static let pointCountMax = 16

    private var own: [Point] = []
    /// Sorted by node, so that equal histories are equal values.
    private var others: [(node: NodeID, points: [Point])] = []
    /// Members that were found to differ, sorted.
    private var differing: [NodeID] = []
    /// Members whose rows differ from this replica's, while no majority of the voters agrees on any
    /// digest.
    package private(set) var undecided: [NodeID] = []

    package init() {}

    package static func == (one: Self, other: Self) -> Bool {
        one.own == other.own && one.differing == other.differing && one.undecided == other.undecided
            && one.others.elementsEqual(other.others) {
                $0.node == $1.node && $0.points == $1.points
            }
    }

    /// This replica's digest after the entry at `index`.
    package mutating func applied(
        _ index: LogIndex, _ digest: StateDigest, as node: NodeID, in configuration: Configuration
    ) -> [Finding] {
        Self.add(Point(index: index, digest: digest), to: &self.own)
        let members = self.others.filter { $0.points.contains { $0.index == index } }.map(\.node)
        return self.compare(at: index, with: members, as: node, in: configuration)
    }

    /// Compares a peer's digest of its rows with this replica's. Digests of nodes that are not
    /// members are ignored.
    package mutating func heard(
        _ index: LogIndex, _ digest: StateDigest, from peer: NodeID, as node: NodeID,
        in configuration: Configuration
    ) -> [Finding] {
        self.others.removeAll { !configuration.members.contains($0.node) }
        guard peer != node, configuration.members.contains(peer) else { return [] }
        let point = Point(index: index, digest: digest)
        if let position = self.others.firstIndex(where: { $0.node == peer }) {
            Self.add(point, to: &self.others[position].points)
        } else {
            self.others.append((peer, [point]))
            self.others.sort { $0.node < $1.node }
        }
        return self.compare(at: index, with: [peer], as: node, in: configuration)
    }

    /// This replica's digest after the entry, if it is remembered.
    package func digest(at index: LogIndex) -> StateDigest? {
        self.own.first { $0.index == index }?.digest
    }

    /// The own rows were replaced by a snapshot: what was said of them before says nothing any
    /// more.
    package mutating func replaced() {
        self.own = []
        self.differing = []
        self.undecided = []
    }

    private static func add(_ point: Point, to points: inout [Point]) {
        points.removeAll { $0.index == point.index }
        points.append(point)
        if points.count > Self.pointCountMax { points.removeFirst() }
    }

    private mutating func compare(
        at index: LogIndex, with members: [NodeID], as node: NodeID,
        in configuration: Configuration
    ) -> [Finding] {
        guard let own = self.own.first(where: { $0.index == index })?.digest else { return [] }
        var findings: [Finding] = []
        var said: [(node: NodeID, digest: StateDigest)] = []
        for other in self.others {
            guard let point = other.points.first(where: { $0.index == index }) else { continue }
            said.append((other.node, point.digest))
            guard members.contains(other.node) else { continue }
            if point.digest == own {
                self.differing.removeAll { $0 == other.node }
            } else if !self.differing.contains(other.node) {
                self.differing.append(other.node)
                self.differing.sort()
                findings.append(.memberDiffers(other.node, at: index))
            }
        }
        func hasQuorum(_ digest: StateDigest) -> Bool {
            let agreeing = said.filter { $0.digest == digest }.map(\.node)
            return configuration.isQuorum(digest == own ? agreeing + [node] : agreeing)
        }
        let different = said.filter { $0.digest != own }
        if hasQuorum(own) {
            self.undecided = []
        } else if different.contains(where: { hasQuorum($0.digest) }) {
            self.undecided = []
            findings.append(.ownDiffers(at: index))
        } else {
            self.undecided = different.map(\.node)
        }
        return findings
    }
}
