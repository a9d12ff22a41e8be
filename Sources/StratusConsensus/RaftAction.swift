package import StratusModel

extension RaftGroup {
    /// Orders to the shell, to be carried out in the order given.
    package enum Action: Sendable, Equatable {
        /// Submit to the log; answered by `.durable`. Never waited for: later actions do not depend
        /// on it, except that writes reach the log in this order.
        case persist(LogWrite)
        case send(ConsensusMessage, to: NodeID)
        /// Like `.send` of an append, with entries that are no longer in memory. Read those after
        /// `previous` from the log, as many as one message may carry, none past `through`. Answered
        /// by `.sentFromLog`.
        case sendFromLog(
            to: NodeID, term: Term, previous: LogPoint, through: LogIndex, commit: LogIndex)
        /// Ask for `.woke` at this time, instead of any earlier request.
        case wake(at: MonotonicTime)
        /// Everything through here is committed and on this replica's stable storage: apply it.
        case apply(through: LogIndex)

        case accepted(RequestToken, at: LogPoint)
        case refused(RequestToken, Refusal)
        /// Once `index` is applied, the read may be answered.
        case readReady(RequestToken, at: LogIndex)

        case roleChanged(Role, term: Term, leader: NodeID?)

        /// Send the current snapshot chunk to the node, opening a stream if none is open. Repeated
        /// until something is heard.
        case sendSnapshot(to: NodeID, term: Term)
        /// The node has the chunks before `next` of the snapshot at `index`: send the next one.
        case snapshotAcknowledged(by: NodeID, index: LogIndex, next: UInt32, term: Term)
        case stopSnapshot(to: NodeID)
        case receiveChunk(SnapshotChunk, from: NodeID)
        /// Make this snapshot the state, then restart the log after it: `.snapshotInstalled`.
        case install(SnapshotIdentity)
        /// The rows that were found to be wrong stay: no voter has others.
        case keepRows

        /// A path that tests must have taken, or they are too tame.
        case reached(RarePath)
        /// An invariant does not hold. Nothing was changed; the operator must be told.
        case alarm(Alarm)
    }

    package enum Refusal: Error, Sendable, Equatable {
        /// Nothing was appended. The leader, if known, may take it.
        case notLeader(NodeID?)
        case transferring(to: NodeID)
        /// Too much waits to be committed.
        case overloaded
        case tooLarge
        /// The membership is changing already, or no entry of the own term is committed yet.
        case changing
        case badConfiguration
        /// Too few members are known to hold what the entry names. Let the nodes confirm that they
        /// do, and propose it again.
        case notHeld
    }

    package enum Alarm: Sendable, Equatable {
        case twoLeadersInOneTerm(Term, NodeID)
        /// A leader asks to replace what is committed here.
        case conflictWithCommitted(LogIndex, from: NodeID)
        case malformedMessage(from: NodeID)
        /// A peer restarted without entries that it had acknowledged through here. Either it was
        /// restored from an older copy, or its disk loses synced writes.
        case acknowledgedGone(through: LogIndex, at: NodeID)
    }

    package enum Role: Sendable, Equatable { case follower, preCandidate, candidate, leader }
}

/// The changes that one group asks of its log in one turn: cut, append, remember, in that order.
package struct LogWrite: Sendable, Equatable {
    package var hardState: HardState?
    package var truncateFrom: LogIndex?
    package var entries: [Entry]

    package init(
        hardState: HardState? = nil, truncateFrom: LogIndex? = nil, entries: [Entry] = []
    ) {
        self.hardState = hardState
        self.truncateFrom = truncateFrom
        self.entries = entries
    }
}

/// Paths that are rarely taken, so that a simulation can show that it took them.
package enum RarePath: String, Sendable, Equatable, CaseIterable {
    case conflictTruncated, prefixAlreadyHere, appendRefused, refusalIgnored, staleTermAnswered
    case voteIgnoredLeaderAlive, preVoteRefusedLeaderAlive, voteRefusedLogBehind
    case ownEntryCommitsOlderTerms, quorumIndexOfOlderTerm, commitWithoutOwnSync
    case lateDurableIgnored, durableAfterCut
    case readBeforeOwnTermCommit, readRoundBatched, readRoundSteppedDown
    case transferStarted, transferCompleted, transferTimedOut, transferReplaced
    case jointLeft, jointRolledBack, leaderRemoved, learnerPromoted
    case snapshotNeeded, snapshotUnneeded, snapshotInstalled, snapshotKeptTail
    case spooledInSlices, spoolingHurried, endedWhileSpooling
    case installedInSlices, newTermWhileInstalling, endedWhileInstalling
    case sentFromLog, resent, inFlightFull, overloaded
    case steppedDownNoQuorum, resignedInhibited, leaderRestarted, answerGatedOnVote
    case appendDropped, followerGivenUp, intakeSlowed
    case copiesNotHeld, gateWaits
    case stateAskedFor, stateRegained, voteRefusedLogDamaged, logWholeAgain, diverged, rowsRotten
    case rowsChecked, rowsFoundRotten, snapshotRefusedByPeer, lastRowsKept
    case acknowledgedTailOwed, standInHandsOver
}
