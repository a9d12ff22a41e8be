/// Finds what is wrong with a cluster and what to do about it. It decides from what the nodes said,
/// and asks nobody.
package enum Diagnosis {
    /// What is wrong with a cluster: first with each of its nodes, then with the whole.
    package static func findings(_ sight: ClusterSight) -> [DoctorFinding] {
        // What nodes know from before a recovery is no ground for an advice.
        if let pending = Self.pendingRecovery(sight.health) { return [pending] }
        var all: [DoctorFinding] = []
        for node in sight.health.nodes {
            for row in Self.table {
                switch row.look {
                case .node(let look) where node.isReachable:
                    all += look(node, sight).map(row.finding)
                case .silent(let look) where !node.isReachable:
                    all.append(row.finding(look(node)))
                default: break
                }
            }
        }
        for row in Self.table {
            if case .cluster(let look) = row.look { all += look(sight).map(row.finding) }
        }
        return all
    }

    /// Explains why the system partition has no leader, by what a running node knows of the others;
    /// nil if it has one. Without a leader nothing else can be said, because nobody can be asked
    /// about the cluster itself.
    package static func withoutLeader(_ health: ClusterHealthAnswer) -> DoctorFinding? {
        guard !health.isCurrent else { return nil }
        if let pending = Self.pendingRecovery(health) { return pending }
        for row in Self.table {
            if case .leaderless(let look) = row.look, let values = look(health) {
                return row.finding(values)
            }
        }
        return nil
    }

    /// What is wrong with a node that works alone.
    package static func findings(_ status: StatusAnswer) -> [DoctorFinding] {
        Self.table.flatMap { row -> [DoctorFinding] in
            guard case .alone(let look) = row.look else { return [] }
            return look(status).map(row.finding)
        }
    }

    /// Every kind of problem, in the order in which findings are shown.
    package static let table: [DoctorRow] =
        Self.nodeRows + Self.groupRows + Self.aloneRows + Self.leaderlessRows + Self.askedRows

    /// A recovery that the system partition has not heard of: its view still has the lost nodes.
    private static func pendingRecovery(_ health: ClusterHealthAnswer) -> DoctorFinding? {
        for node in health.nodes {
            for complaint in node.complaints ?? []
            where complaint.component == Self.recovery {
                return Self.recoveryPending.finding(
                    ["node": node.name, "reason": complaint.reason])
            }
        }
        return nil
    }

    /// The component by which a node says that it was recovered.
    static let recovery = "recovery"

    static let skewMaxMilliseconds: Int64 = 500
    static let certificateDaysMin: Int64 = 14

    static func isNearlyFull(_ free: Int64?, of whole: Int64?) -> Bool {
        guard let free, let whole else { return false }
        return whole > 0 && free < max(whole / 10, 1 << 30)
    }
}
