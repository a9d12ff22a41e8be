package import StratusModel

/// Where each planted bug is known to be found. `stratus-sim --bugs` prints it, and a test runs it.
package enum PlantedBugTable {
    package enum Place: Sendable, Equatable {
        /// By `stratus-sim --planted` and by the tests, from this seed on.
        case seed(UInt64)
        /// By `stratus-sim --planted` from this seed on, in runs of ten seconds and more.
        case longRuns(UInt64)
        /// By `stratus-sim --planted`, after hundreds of seeds. Tests of its module show its rule.
        case rare
        /// By the test suite of this name: simulated clusters meet its moment never or too seldom.
        case tests(String)
    }

    package static func place(of bug: PlantedBug) -> Place? {
        if let seed = self.seeds[bug] { return .seed(seed) }
        if let seed = self.long[bug] { return .longRuns(seed) }
        if self.rare.contains(bug) { return .rare }
        return self.suites[bug].map(Place.tests)
    }

    /// The first seed that finds the bug when ``PlantedBugSearch`` counts from one.
    package static let seeds: [PlantedBug: UInt64] = [
        .acknowledgeBeforeSync: 1,
        .acknowledgedTailForgotten: 1,
        .answerBeforeCommit: 1,
        .answerOfOlderTermCounts: 7,
        .cascadeNotContinued: 3,
        .applyDependsOnReplica: 3,
        .applyTwiceAfterRestart: 3,
        .changeBeforeOwnTermCommit: 1,
        .commitByMinority: 1,
        .commitOlderTermByCounting: 1,
        .configurationOnCommit: 1,
        .copiesRemovedAtApply: 3,
        .copyAnsweredBeforeSync: 1,
        .replacedUnchecked: 3,
        .countSelfBeforeSync: 4,
        .countVotesOfAnyTerm: 1,
        .damagedLogVotes: 13,
        .deadlineIgnored: 18,
        .deletedBeforeMoved: 1,
        .durableAtCommit: 24,
        .durableAtFlushBegin: 29,
        .endedSuspectedForEver: 3,
        .durableBeforeSync: 1,
        .durableKeptOnCut: 10,
        .electWithMinority: 4,
        .failedSyncTriedAgain: 7,
        .flowCountsReceived: 1,
        .flushForgetsRemoval: 1,
        .followerAnswersReads: 3,
        .followerCommitsUnchecked: 5,
        .forgetVoteOnRestart: 47,
        .forgottenZoneExpiresNothing: 7,
        .heartbeatForReadIndex: 1,
        .identityForgottenEarly: 22,
        .identityForgottenOnSnapshot: 1,
        .identityNotAsked: 3,
        .ignoreLogUpToDate: 1,
        .indexRowLeftBehind: 3,
        .jointNeedsOnlyNew: 4,
        .keepConflictingTail: 1,
        .lateSnapshotInstalled: 19,
        .lateOrderCarriedOut: 9,
        .learnerCounts: 3,
        .logTailNotWrittenAgain: 6,
        .lostTokensHonoured: 3,
        .mailNotLifted: 33,
        .mailNumberUsedAgain: 4,
        .mixedSnapshotStreams: 4,
        .midwayTokenTrusted: 3,
        .moveFinishedUncommitted: 77,
        .newDatabaseNotLifted: 1,
        .newReplicaNotTold: 1,
        .newcomerNotAwaited: 27,
        .newKindUngated: 3,
        .oldConnectionKept: 79,
        .outboxKeptOverBreak: 9,
        .permitLiftsAll: 24,
        .positionOfLaterRows: 26,
        .readBelowTermStart: 29,
        .readCountsOldRound: 1,
        .readWithoutRound: 1,
        .receivedCountsAsMatch: 5,
        .recycledBatchesReplayed: 31,
        .releaseThroughApplied: 1,
        .removedLinkNotTold: 5,
        .restatedReferenceNotRenewed: 30,
        .retryUnderNewIdentity: 1,
        .rowCacheKept: 5,
        .rowsDroppedBeforeCommit: 1,
        .scanMissesRecent: 3,
        .segmentFreedOnRelease: 243,
        .singleStepMembership: 13,
        .skipPreviousCheck: 1,
        .snapshotOfManyStates: 135,
        .snapshotVouchesForTail: 5,
        .snapshotWithStaleConfiguration: 13,
        .staleTagAccepted: 3,
        .startToldUnsynced: 1,
        .termForgottenOnRestart: 1,
        .timeFromWallClock: 1,
        .tornBatchCutInOneSync: 25,
        .tornEntryKept: 1,
        .tornTailNotCut: 1,
        .tombstoneNotInFeed: 3,
        .truncateOnOlderAppend: 3,
        .viewCountsBeforeDisk: 1,
        .voteNotSynced: 1,
        .voteTwiceInATerm: 1,
        .walNotWrittenAgain: 142,
        .welcomeAwaitedForever: 73,
        .zoneBeforeBit: 3, .maskFromMemory: 3, .oldCountsMask: 4, .cutPageAdvances: 3,
        .moreComingOfLastBucket: 3, .expiredPartRestarted: 4, .erasureStopsAtHome: 4,
        .bitsErased: 7, .zoneHashedByOwner: 1, .partIdentityShared: 3, .tieIgnoresBucket: 2,
        .recoveredMaskKept: 37,
        .lockNotAsked: 3, .lockOutlivesItsTime: 4,
        .eventOfNow: 3, .deletionMatchedAfter: 3, .settledBeforeAnswered: 3,
        .attendanceReplaced: 1,
    ]

    /// All but the first five belong to the mix `push`.
    package static let long: [PlantedBug: UInt64] = [
        .digestsNotCompared: 1, .electionsNeverBackOff: 27, .releaseForgetsFollowers: 3,
        .startNotCompared: 3, .foundTakenAsHeld: 37,
        .cursorMovedBeforePosted: 3, .sinceIgnored: 3, .onceKept: 3, .handedCountsAsTaken: 3,
        .oldestKeptWhenCoalesced: 5, .laneHoldsOthers: 5, .markClearedThoughNewer: 3,
        .nidDrawnAtSend: 11,
        .cursorNotCompared: 3,
        .overdueForgotten: 43,
        .parkedLostOnLeaderChange: 35,
        .goneDeviceRemovedThoughRenewed: 15,
        .permissionOfTheMatch: 3,
        .newsOfDeposed: 1,
    ]

    package static let rare: Set<PlantedBug> = [
        .durableIgnoresTerm, .lateCommandNotRepeated, .spareTakenAsFound, .tailBehindDamageKept,
    ]

    package static let suites: [PlantedBug: String] = [
        .confirmedReadKept: "ConfirmedReadTests", .walBehindBarrier: "GatheredWritesTests",
        .markMoves: "MarkPropertyTests", .windowCountsNumbers: "MarkPropertyTests",
        .renewedMarkSettled: "MarkPropertyTests", .handOutSettlesAlone: "HandOutTests",
        .newsForEachFollower: "NewsWorkTests", .boardKeptOverChange: "NewsBoardTests",
        .spoolUnchecked: "PartitionScrubTests", .rowsNotChecked: "PartitionScrubTests",
        .begunSegmentKept: "LogRecoveryTests", .syncedBatchLeftOpen: "LogRecoveryTests",
        .unknownLossForgiven: "UnknownLossTests",
        .expiredPinTakesHeld: "AssetPropertyTests", .purgeForgetsAssets: "AssetPropertyTests",
        .shareNotTakenBack: "AssetPropertyTests", .holderKeptOnReplace: "AssetPropertyTests",
        .usedPinKept: "AssetPropertyTests", .rereferenceNotPinned: "AssetPropertyTests",
        .latePinTaken: "AssetPropertyTests",
        .graceIgnored: "AssetPropertyTests", .condemnedNotTakenBack: "AssetPropertyTests",
        .replacedKeyKept: "AssetPropertyTests", .replacedBodyKept: "AssetPropertyTests",
        .operationReadsPastItsForm: "PartitionOperationTests",
        .outcomeOfOtherKind: "PartitionOperationTests",
        .removedParticipantReads: "SharePropertyTests",
        .linkOutlivesShare: "SharePropertyTests",
        .purgeReasonLost: "ZoneEndPropertyTests",
        .childCountNotKept: "TreePropertyTests", .danglingChildCaught: "TreePropertyTests",
        .deletionDecidedOnce: "TreePropertyTests", .circleTaken: "TreePropertyTests",
        .pinWithoutMajority: "HeldByTests", .pinAskedOfOneVoterSet: "HeldByTests",
        .oldStoringCounts: "HeldByTests", .jointLeftWithoutCopies: "HeldByTests",
        .deviceClockTrusted: "KeyValuePropertyTests", .olderValueWins: "KeyValuePropertyTests",
        .removalForgotten: "KeyValuePropertyTests", .batchTakenAgain: "KeyValuePropertyTests",
        .storeOverfilled: "KeyValuePropertyTests",
        .nameTakenTwice: "DocumentPropertyTests", .folderMovedIntoItself: "DocumentPropertyTests",
        .subtreeLeftBehind: "DocumentPropertyTests",
        .losingContentDropped: "DocumentPropertyTests",
        .knownCallerNeverExpires: "KnownCallerTests", .knownCallerIgnoresEpoch: "KnownCallerTests",
        .originNotCompared: "KnownCallerTests", .authorizationNotCompared: "KnownCallerTests",
        .rateNotCountedWhenKnown: "KnownCallerTests", .viewOutlivesBuffer: "RequestViewTests",
        .bodyOfNextRequestAnswered: "RequestViewTests",
    ]
}
