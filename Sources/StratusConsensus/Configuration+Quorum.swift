package import StratusModel

// Majorities, simple and joint (thesis §4.3): while a configuration is joint, everything that needs
// a majority needs one of the old voters and one of the incoming ones.
extension Configuration {
    /// Voters of either set, sorted, each once.
    package var allVoters: [NodeID] {
        self.incoming.isEmpty ? self.voters : Self.union(self.voters, self.incoming)
    }

    /// Everyone the leader sends entries to, sorted, each once.
    package var members: [NodeID] {
        self.learners.isEmpty ? self.allVoters : Self.union(self.allVoters, self.learners)
    }

    package func isVoter(_ node: NodeID) -> Bool {
        self.voters.contains(node) || self.incoming.contains(node)
    }

    /// Whether `nodes` hold a majority of every voter set.
    package func isQuorum(_ nodes: [NodeID]) -> Bool {
        Self.isMajority(nodes, of: self.voters)
            && (self.incoming.isEmpty || Self.isMajority(nodes, of: self.incoming))
    }

    /// The highest index that a majority of every voter set holds.
    package func quorumIndex(_ match: (NodeID) -> LogIndex) -> LogIndex {
        let old = Self.majorityIndex(of: self.voters, match)
        return self.incoming.isEmpty
            ? old : min(old, Self.majorityIndex(of: self.incoming, match))
    }

    private static func isMajority(_ nodes: [NodeID], of voters: [NodeID]) -> Bool {
        voters.count { nodes.contains($0) } > voters.count / 2
    }

    private static func majorityIndex(of voters: [NodeID], _ match: (NodeID) -> LogIndex)
        -> LogIndex
    {
        switch voters.count {
        case 0: return .zero
        case 1: return match(voters[0])
        case 3:
            // The median without an array: this runs for every acknowledgement.
            let (a, b, c) = (match(voters[0]), match(voters[1]), match(voters[2]))
            return max(min(a, b), min(max(a, b), c))
        default:
            let sorted = voters.map(match).sorted()
            return sorted[(sorted.count - 1) / 2]
        }
    }

    private static func union(_ one: [NodeID], _ other: [NodeID]) -> [NodeID] {
        var nodes = (one + other).sorted()
        var kept = 0
        for position in nodes.indices where position == 0 || nodes[position] != nodes[kept - 1] {
            nodes[kept] = nodes[position]
            kept += 1
        }
        nodes.removeLast(nodes.count - kept)
        return nodes
    }
}
