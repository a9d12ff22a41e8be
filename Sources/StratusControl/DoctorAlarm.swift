/// The kinds of problems that the doctor finds. Each has a rule in `Deploy/monitoring/alerts.yaml`
/// that fires for the same problem, so that nobody needs to run the doctor to hear of it.
package enum DoctorAlarm: String, CaseIterable, Sendable {
    /// A node does not answer.
    case silentNode
    /// A node reports a problem of one of its components.
    case complaint
    /// A node is not ready, and says why.
    case notReady
    case certificate
    /// Little disk space is left.
    case disk
    case clock
    /// Replicas are behind.
    case behind
    /// A partition has no majority.
    case noMajority
    /// The system partition has no leader.
    case noSystemLeader
    /// A move makes no progress.
    case stuckMove
    /// Partitions have fewer replicas than wanted, or not where they should be.
    case placement
    /// An upgrade is not finalised.
    case unfinishedUpgrade

    /// The rule's name.
    package var alert: String {
        switch self {
        case .silentNode: "StratusNodeDown"
        case .complaint: "StratusAlarm"
        case .notReady: "StratusNotReady"
        case .certificate: "StratusCertificateEnds"
        case .disk: "StratusDiskNearlyFull"
        case .clock: "StratusClockOff"
        case .behind: "StratusReplicasBehind"
        case .noMajority: "StratusPartitionsWithoutLeader"
        case .noSystemLeader: "StratusNoSystemLeader"
        case .stuckMove: "StratusMoveStuck"
        case .placement: "StratusTooFewReplicas"
        case .unfinishedUpgrade: "StratusUpgradeUnfinished"
        }
    }
}
