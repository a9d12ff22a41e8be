package import StratusModel

/// The command to a partition that goes on from one replica after its majority was lost.
///
/// Tags, turns, numbers of mail and of events move beyond all that can have been lost. Databases
/// that are made later begin beyond it too.
package enum RecoverPartition {
    /// The first command of a partition that continues from one replica.
    ///
    /// Its deadline is the time of its entry. The command is in the log already and nobody sends it
    /// twice, so nobody needs its outcome later. An erasure waits until every outcome that is
    /// remembered may be forgotten.
    ///
    /// - Parameter time: of its entry, which may be far ahead of the clock of the node that
    ///   recovers.
    package static func firstCommand(
        at time: HybridTime, identity: RequestIdentity
    ) -> Command {
        RecordCommand.recover.enveloped(
            container: ContainerReference(container: "", environment: .production),
            identity: identity,
            deadlineMilliseconds: time.milliseconds,
            schemaVersion: 0, principal: Principal(kind: .system))
    }

    /// Whether the outcome says that the command took effect.
    package static func isDone(_ outcome: Outcome) -> Bool {
        outcome.verdict == .decided && (try? RecordOutcome(decoding: outcome.body)) == .recovered
    }
}
