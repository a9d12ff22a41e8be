package import StratusModel

/// Looks for one planted bug, seed after seed, in the world that leads to it.
///
/// Every other seed is led by the ``SimulationOptions/Mix`` that makes the bug's moment frequent;
/// the rest are what the seed draws, in small clusters: many of them meet more than few large ones.
package struct PlantedBugSearch {
    package struct Finding: Sendable {
        package let seedCount: Int
        package let options: SimulationOptions
        package let violation: Violation
    }

    private let bug: PlantedBug

    package init(_ bug: PlantedBug) { self.bug = bug }

    package func run(seeds: ClosedRange<UInt64>) -> Finding? {
        for (number, seed) in seeds.enumerated() {
            let options = self.options(seed)
            if let violation = Simulation(seed: seed, options: options).run().violation {
                return Finding(seedCount: number + 1, options: options, violation: violation)
            }
        }
        return nil
    }

    /// The options with which a seed of the search runs.
    package func options(_ seed: UInt64) -> SimulationOptions {
        var options = SimulationOptions(
            seed: seed, drawsMix: seed % 2 == 0, drawsPlaced: self.mix == .membership,
            drawsRecords: self.mix == .records, drawsLinks: self.mix == .links,
            drawsLevels: self.bug == .newKindUngated, drawsEnds: false, drawsDigests: false,
            drawsSteady: false, drawsZones: false)
        if seed % 2 == 1, let mix { options.lead(by: mix, seed: seed) }
        // Buckets need three; what is lost with a log is lost by who is quiet.
        let groupCountMax =
            options.mix == .recoveries || options.mix == .tears
            ? 8 : options.bucketCount > 0 ? 3 : 2
        options.groupCount = min(options.groupCount, groupCountMax)
        self.sharpen(&options)
        if self.bug == .newKindUngated, options.levels == nil {
            var random = SeededGenerator(seed: seed)
            options.levels = LevelPlan(from: &random)
        }
        options.safetyTime = min(options.safetyTime, .seconds(10))
        options.bugs = [self.bug]
        return options
    }

    /// Makes a rare moment more frequent than a mix can.
    private func sharpen(_ options: inout SimulationOptions) {
        switch self.bug {
        case .flowCountsReceived:
            // One disk that stands still while the others commit, and bounds that are soon met.
            options.faults = [.slowDisk, .tinyLimits]
            options.faultInterval = .milliseconds(300)
        case .readBelowTermStart:
            // Leaders that follow each other, on disks that take their time with a first entry.
            options.faults.insert(.transfer)
            options.faultInterval = .milliseconds(150)
            options.syncMax = options.syncMin + .milliseconds(60)
        case .lateOrderCarriedOut:
            // An order that was taken for lost, and given again, comes when its move is over.
            options.faults = [.membership, .duplication, .longDelay]
            options.copiesComeLate = true
            options.copyOneIn = 3
        case .moveFinishedUncommitted:
            // The last step of a move waits for disks that what the system group decides does not
            // wait for.
            options.faults = [.membership, .slowDisk]
            options.nodeCount = 5
            options.voterCount = 3
            options.memberCountMax = 7
        case .tornBatchCutInOneSync:
            // Batches that are torn in the middle of what they carry, and nothing else to be torn.
            options.nodeCount = 1
            options.voterCount = 1
            options.groupCount = 1
            options.aimsAtHeads = false
            options.segmentSize = .kibibytes(16)
            options.valueSizeMax = ByteCount(2_048)
            options.clientCount = 4
        case .spareTakenAsFound:
            // Spares, and syncs of them that fail.
            options.faults.insert(.failedSync)
            options.failedSyncOneIn = 12
            options.spareSegmentMax = 2
        case .failedSyncTriedAgain:
            options.faults.insert(.failedSync)
            options.failedSyncOneIn = 40
        case .newReplicaNotTold:
            // Replicas that come to a node whose clock has gone astray.
            options.faults = [.membership, .clockJump, .processCrash]
            options.faultInterval = .milliseconds(60)
        case .permitLiftsAll:
            // Rows that fail, on a node whose clock is wrong or whose disk hangs.
            options.faults.formUnion([.clockJump, .failedApply, .slowDisk])
            options.faultInterval = .milliseconds(100)
        case .endedSuspectedForEver:
            options.findsEnds = true
            options.faults.insert(.processCrash)
        case .mailNumberUsedAgain:
            options.holdsRecords = true
            options.bucketCount = 4
            options.groupCount = 3
        case .tieIgnoresBucket:
            // Many records, and many zones.
            options.holdsRecords = true
            options.zoneBucketCount = 4
            options.groupCount = 3
            options.faults = [.processCrash]
            options.faultInterval = .milliseconds(900)
            options.thinkTimeMax = .milliseconds(5)
        case .lockNotAsked, .lockOutlivesItsTime, .losingContentDropped:
            options.holdsRecords = true
            options.holdsDocuments = true
        case .recoveredMaskKept: options.zoneBucketCount = 4
        case .zoneBeforeBit, .maskFromMemory, .oldCountsMask, .cutPageAdvances,
            .moreComingOfLastBucket, .expiredPartRestarted, .erasureStopsAtHome, .bitsErased,
            .zoneHashedByOwner, .partIdentityShared:
            options.holdsRecords = true
            options.zoneBucketCount = 4
            options.groupCount = 3
            options.nodeCount = min(options.nodeCount, 3)
            options.voterCount = min(options.voterCount, 3)
        case .overdueForgotten:
            // Many that wait, and room for few.
            options.pushRestingCountMax = 1
        case .cursorNotCompared: options.opensTwoWindows = true
        case .parkedLostOnLeaderChange:
            // Many that wait to be asked about while leaders change, and come back.
            options.pushAskCountMax = 1
            options.faults = [.partition, .pause]
            options.faultInterval = .milliseconds(500)
            options.aimsAtLeaders = true
            options.safetyTime = .seconds(10)
        case .permissionOfTheMatch:
            // Outages that are over before all is well.
            options.safetyTime = .seconds(10)
        default: break
        }
    }

    /// The mix in which the rule that the bug breaks is needed most.
    package var mix: SimulationOptions.Mix? {
        switch self.bug {
        case .voteNotSynced, .voteTwiceInATerm, .ignoreLogUpToDate, .countVotesOfAnyTerm,
            .electWithMinority, .termForgottenOnRestart, .forgetVoteOnRestart,
            .electionsNeverBackOff:
            .elections
        case .commitOlderTermByCounting, .countSelfBeforeSync, .acknowledgeBeforeSync,
            .durableKeptOnCut, .truncateOnOlderAppend, .skipPreviousCheck, .receivedCountsAsMatch,
            .followerCommitsUnchecked, .answerOfOlderTermCounts, .commitByMinority,
            .keepConflictingTail:
            .conflicts
        case .durableIgnoresTerm: .lateReports
        case .snapshotVouchesForTail: .strandedTails
        case .singleStepMembership, .configurationOnCommit, .changeBeforeOwnTermCommit,
            .jointNeedsOnlyNew, .snapshotWithStaleConfiguration, .learnerCounts:
            .configurations
        case .lateCommandNotRepeated, .lateOrderCarriedOut, .moveFinishedUncommitted,
            .newcomerNotAwaited, .deletedBeforeMoved, .viewCountsBeforeDisk, .newReplicaNotTold:
            .membership
        case .heartbeatForReadIndex, .readWithoutRound, .readBelowTermStart,
            .followerAnswersReads, .readCountsOldRound, .confirmedReadKept:
            .reads
        case .lateSnapshotInstalled, .mixedSnapshotStreams, .snapshotOfManyStates,
            .identityForgottenOnSnapshot, .releaseThroughApplied:
            .snapshots
        case .durableBeforeSync, .failedSyncTriedAgain, .recycledBatchesReplayed,
            .segmentFreedOnRelease, .logTailNotWrittenAgain, .spareTakenAsFound, .durableAtCommit,
            .walNotWrittenAgain, .durableAtFlushBegin, .positionOfLaterRows:
            .logs
        case .tornEntryKept, .tornTailNotCut: .recoveries
        case .tornBatchCutInOneSync, .begunSegmentKept: .tears
        case .damagedLogVotes, .tailBehindDamageKept, .unknownLossForgiven: .damage
        case .staleTagAccepted, .indexRowLeftBehind, .tombstoneNotInFeed, .cascadeNotContinued,
            .rowCacheKept, .identityNotAsked, .removedLinkNotTold, .restatedReferenceNotRenewed,
            .forgottenZoneExpiresNothing, .midwayTokenTrusted, .mailNumberUsedAgain,
            .zoneBeforeBit, .maskFromMemory, .oldCountsMask, .cutPageAdvances,
            .moreComingOfLastBucket, .expiredPartRestarted, .erasureStopsAtHome, .bitsErased,
            .zoneHashedByOwner, .partIdentityShared, .tieIgnoresBucket, .lockNotAsked,
            .lockOutlivesItsTime, .losingContentDropped, .flushForgetsRemoval, .scanMissesRecent,
            .rowsDroppedBeforeCommit:
            .records
        case .outboxKeptOverBreak, .oldConnectionKept, .welcomeAwaitedForever, .startToldUnsynced:
            .links
        case .flowCountsReceived, .releaseForgetsFollowers: .catchingUp
        case .digestsNotCompared: .divergence
        case .pinWithoutMajority, .pinAskedOfOneVoterSet, .oldStoringCounts,
            .jointLeftWithoutCopies, .copyAnsweredBeforeSync, .copiesRemovedAtApply,
            .startNotCompared, .foundTakenAsHeld, .replacedUnchecked:
            .assets
        case .cursorNotCompared, .cursorMovedBeforePosted, .eventOfNow, .deletionMatchedAfter,
            .sinceIgnored, .onceKept, .markClearedThoughNewer, .oldestKeptWhenCoalesced,
            .overdueForgotten, .settledBeforeAnswered, .parkedLostOnLeaderChange,
            .laneHoldsOthers, .goneDeviceRemovedThoughRenewed, .permissionOfTheMatch,
            .attendanceReplaced, .nidDrawnAtSend, .handedCountsAsTaken, .newsOfDeposed:
            .push
        case .acknowledgedTailForgotten: .tornTail
        case .newDatabaseNotLifted, .lostTokensHonoured, .mailNotLifted, .recoveredMaskKept:
            .lostMajority
        case .newKindUngated, .applyTwiceAfterRestart, .deadlineIgnored, .applyDependsOnReplica,
            .timeFromWallClock, .answerBeforeCommit, .retryUnderNewIdentity,
            .identityForgottenEarly, .permitLiftsAll, .endedSuspectedForEver,
            .expiredPinTakesHeld, .purgeForgetsAssets, .shareNotTakenBack,
            .holderKeptOnReplace, .usedPinKept, .rereferenceNotPinned, .latePinTaken, .graceIgnored,
            .condemnedNotTakenBack, .replacedKeyKept, .replacedBodyKept, .deviceClockTrusted,
            .olderValueWins,
            .removalForgotten, .batchTakenAgain, .storeOverfilled, .nameTakenTwice,
            .folderMovedIntoItself, .subtreeLeftBehind, .operationReadsPastItsForm,
            .outcomeOfOtherKind, .removedParticipantReads, .linkOutlivesShare, .purgeReasonLost,
            .childCountNotKept, .danglingChildCaught, .deletionDecidedOnce, .circleTaken,
            .knownCallerNeverExpires,
            .knownCallerIgnoresEpoch, .originNotCompared, .authorizationNotCompared,
            .rateNotCountedWhenKnown, .viewOutlivesBuffer, .bodyOfNextRequestAnswered,
            .walBehindBarrier, .syncedBatchLeftOpen, .spoolUnchecked, .rowsNotChecked,
            .markMoves, .windowCountsNumbers, .renewedMarkSettled, .handOutSettlesAlone,
            .newsForEachFollower, .boardKeptOverChange:
            nil
        }
    }
}
