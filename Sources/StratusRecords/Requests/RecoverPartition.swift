package import StratusModel

/// A command to a partition that goes on from one replica after its majority was lost.
package enum RecoverPartition: Sendable, Equatable {
    /// Tags, turns and numbers of mail that the partition knows move beyond all that can have been
    /// lost.
    case first
    /// Also turns of databases that it does not know: those that are made later begin beyond all
    /// that was lost. For clusters of feature level 2.
    case second
    /// Also numbers of events, and everything that stands at one: no position of a poll or a
    /// stream that was given out before names an event of later.
    case third
}

extension RecoverPartition {
    /// The first command of a partition that continues from one replica.
    ///
    /// Its deadline is the time of its entry. The command is in the log already and nobody sends it
    /// twice, so nobody needs its outcome later. An erasure waits until every outcome that is
    /// remembered may be forgotten.
    ///
    /// - Parameters:
    ///   - time: of its entry, which may be far ahead of the clock of the node that recovers.
    ///   - level: of the cluster. Nodes of level 1 understand the first edition only.
    package static func firstCommand(
        at time: HybridTime, level: FeatureLevel, identity: RequestIdentity
    ) -> Command {
        RecordCommand.recover(level >= .two ? .third : .first).enveloped(
            container: ContainerReference(container: "", environment: .production),
            identity: identity,
            deadlineMilliseconds: time.milliseconds,
            schemaVersion: 0, principal: Principal(kind: .system))
    }

    /// Whether the outcome says that the command took effect. A refusal has a body.
    package static func isDone(_ outcome: Outcome) -> Bool {
        outcome.verdict == .decided && outcome.body.isEmpty
    }
}
