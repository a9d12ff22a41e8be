/// Deliberate bugs, one per rule that holds the algorithm up. A simulation that does not find one
/// of them is too tame.
///
/// A release build does not contain them: ``PlantedBugs/contains(_:)`` is then the constant
/// `false`.
package enum PlantedBug: String, Sendable, CaseIterable {
    // Elections.
    case voteNotSynced, voteTwiceInATerm, ignoreLogUpToDate, countVotesOfAnyTerm
    case electWithMinority, termForgottenOnRestart, forgetVoteOnRestart, learnerCounts
    case electionsNeverBackOff, damagedLogVotes
    // Replication.
    case commitOlderTermByCounting, countSelfBeforeSync, acknowledgeBeforeSync
    case durableKeptOnCut, truncateOnOlderAppend, skipPreviousCheck, receivedCountsAsMatch
    case followerCommitsUnchecked, answerOfOlderTermCounts, durableIgnoresTerm
    case commitByMinority, keepConflictingTail, flowCountsReceived, releaseForgetsFollowers
    // Membership.
    case singleStepMembership, configurationOnCommit, changeBeforeOwnTermCommit
    case jointNeedsOnlyNew, snapshotWithStaleConfiguration
    // Placement.
    case lateCommandNotRepeated, lateOrderCarriedOut, moveFinishedUncommitted, newcomerNotAwaited
    case deletedBeforeMoved, viewCountsBeforeDisk
    // Feature levels.
    case newKindUngated
    // Reads.
    case heartbeatForReadIndex, readWithoutRound, readBelowTermStart, followerAnswersReads
    case readCountsOldRound, confirmedReadKept
    // Snapshots.
    case lateSnapshotInstalled, snapshotVouchesForTail, mixedSnapshotStreams
    case snapshotOfManyStates
    // The replica around the core.
    case applyTwiceAfterRestart, releaseThroughApplied, identityForgottenOnSnapshot
    case deadlineIgnored, applyDependsOnReplica, timeFromWallClock, answerBeforeCommit
    case retryUnderNewIdentity
    // The shared log.
    case durableBeforeSync, failedSyncTriedAgain, tornEntryKept, tornTailNotCut
    case recycledBatchesReplayed, segmentFreedOnRelease, logTailNotWrittenAgain
    case spareTakenAsFound, tornBatchCutInOneSync, begunSegmentKept, tailBehindDamageKept
    case syncedBatchLeftOpen
    // Sharing.
    case removedParticipantReads, linkOutlivesShare
    // Trees of records, and ends of zones.
    case childCountNotKept, danglingChildCaught, deletionDecidedOnce, circleTaken
    case purgeReasonLost
    // Records.
    case staleTagAccepted, indexRowLeftBehind, tombstoneNotInFeed, cascadeNotContinued
    case rowCacheKept, identityNotAsked, removedLinkNotTold
    case operationReadsPastItsForm, outcomeOfOtherKind
    case restatedReferenceNotRenewed, forgottenZoneExpiresNothing, midwayTokenTrusted
    // Zones in buckets.
    case zoneBeforeBit, maskFromMemory, oldCountsMask, cutPageAdvances
    case moreComingOfLastBucket, expiredPartRestarted, erasureStopsAtHome, recoveredMaskKept
    case bitsErased, zoneHashedByOwner, partIdentityShared, tieIgnoresBucket
    // Assets.
    case expiredPinTakesHeld, purgeForgetsAssets, shareNotTakenBack, holderKeptOnReplace
    case usedPinKept, rereferenceNotPinned, latePinTaken, graceIgnored, condemnedNotTakenBack
    case pinWithoutMajority, pinAskedOfOneVoterSet, oldStoringCounts, jointLeftWithoutCopies
    case copyAnsweredBeforeSync, copiesRemovedAtApply, startNotCompared, foundTakenAsHeld
    case replacedUnchecked, replacedKeyKept, replacedBodyKept
    // The key-value store.
    case deviceClockTrusted, olderValueWins, removalForgotten, batchTakenAgain, storeOverfilled
    // Documents.
    case nameTakenTwice, folderMovedIntoItself, losingContentDropped, subtreeLeftBehind
    /// In locks of documents.
    case lockNotAsked, lockOutlivesItsTime
    // Push.
    case cursorNotCompared, cursorMovedBeforePosted, eventOfNow, deletionMatchedAfter
    case sinceIgnored, onceKept, markClearedThoughNewer, oldestKeptWhenCoalesced
    case markMoves, windowCountsNumbers, renewedMarkSettled, handOutSettlesAlone
    case newsForEachFollower, boardKeptOverChange
    case overdueForgotten, settledBeforeAnswered, parkedLostOnLeaderChange, laneHoldsOthers
    case goneDeviceRemovedThoughRenewed, permissionOfTheMatch, attendanceReplaced
    /// In the simulated shells around them.
    case nidDrawnAtSend, handedCountsAsTaken, newsOfDeposed
    // Links.
    case outboxKeptOverBreak, oldConnectionKept, welcomeAwaitedForever, startToldUnsynced
    // The rows.
    case durableAtCommit, walNotWrittenAgain, flushForgetsRemoval, scanMissesRecent
    case durableAtFlushBegin, positionOfLaterRows, rowsDroppedBeforeCommit, walBehindBarrier
    // What a node knows of itself and of the others.
    case newReplicaNotTold, permitLiftsAll, endedSuspectedForEver
    // Damage.
    case unknownLossForgiven, digestsNotCompared, acknowledgedTailForgotten
    case spoolUnchecked, rowsNotChecked
    // Recovery and mail.
    case newDatabaseNotLifted, mailNumberUsedAgain, lostTokensHonoured, mailNotLifted
    // Requests that are remembered.
    case identityForgottenEarly
    // The front.
    case knownCallerNeverExpires, knownCallerIgnoresEpoch, originNotCompared
    case authorizationNotCompared, rateNotCountedWhenKnown, viewOutlivesBuffer
    case bodyOfNextRequestAnswered
}

/// The bugs planted in one replica.
package struct PlantedBugs: Sendable, Equatable {
    #if STRATUS_PLANTED
        private var bugs: [PlantedBug]
        package init(_ bugs: [PlantedBug] = []) { self.bugs = bugs }
        package func contains(_ bug: PlantedBug) -> Bool { self.bugs.contains(bug) }
        package static let isPossible = true
    #else
        package init() {}
        @inline(__always)
        package func contains(_ bug: PlantedBug) -> Bool { false }
        package static let isPossible = false
    #endif
}
