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
        .answerOfOlderTermCounts: 1,
        .cascadeNotContinued: 3,
        .applyDependsOnReplica: 1,
        .applyTwiceAfterRestart: 3,
        .changeBeforeOwnTermCommit: 3,
        .commitByMinority: 1,
        .commitOlderTermByCounting: 1,
        .configurationOnCommit: 1,
        .copiesRemovedAtApply: 3,
        .copyAnsweredBeforeSync: 1,
        .replacedUnchecked: 3,
        .countSelfBeforeSync: 1,
        .countVotesOfAnyTerm: 19,
        .damagedLogVotes: 5,
        .deadlineIgnored: 13,
        .deletedBeforeMoved: 1,
        .durableAtCommit: 1,
        .endedSuspectedForEver: 3,
        .durableBeforeSync: 1,
        .durableKeptOnCut: 10,
        .electWithMinority: 4,
        .failedSyncTriedAgain: 4,
        .flowCountsReceived: 1,
        .followerAnswersReads: 3,
        .followerCommitsUnchecked: 1,
        .forgetVoteOnRestart: 36,
        .forgottenZoneExpiresNothing: 7,
        .heartbeatForReadIndex: 1,
        .identityForgottenEarly: 32,
        .identityForgottenOnSnapshot: 1,
        .identityNotAsked: 3,
        .ignoreLogUpToDate: 18,
        .indexRowLeftBehind: 3,
        .jointNeedsOnlyNew: 1,
        .keepConflictingTail: 1,
        .lateSnapshotInstalled: 19,
        .lateOrderCarriedOut: 17,
        .learnerCounts: 3,
        .logTailNotWrittenAgain: 3,
        .lostTokensHonoured: 3,
        .mailNotLifted: 33,
        .mailNumberUsedAgain: 3,
        .mixedSnapshotStreams: 4,
        .midwayTokenTrusted: 3,
        .moveFinishedUncommitted: 71,
        .newDatabaseNotLifted: 1,
        .newReplicaNotTold: 31,
        .newcomerNotAwaited: 27,
        .newKindUngated: 1,
        .oldConnectionKept: 19,
        .outboxKeptOverBreak: 13,
        .permitLiftsAll: 24,
        .readBelowTermStart: 80,
        .readCountsOldRound: 1,
        .readWithoutRound: 1,
        .receivedCountsAsMatch: 1,
        .recycledBatchesReplayed: 31,
        .releaseThroughApplied: 1,
        .removedLinkNotTold: 5,
        .restatedReferenceNotRenewed: 22,
        .retryUnderNewIdentity: 6,
        .rowCacheKept: 1,
        .segmentFreedOnRelease: 82,
        .singleStepMembership: 30,
        .skipPreviousCheck: 11,
        .snapshotOfManyStates: 86,
        .snapshotVouchesForTail: 17,
        .snapshotWithStaleConfiguration: 10,
        .staleTagAccepted: 3,
        .startToldUnsynced: 1,
        .termForgottenOnRestart: 1,
        .timeFromWallClock: 1,
        .tornBatchCutInOneSync: 31,
        .tornEntryKept: 3,
        .tornTailNotCut: 23,
        .tombstoneNotInFeed: 3,
        .truncateOnOlderAppend: 18,
        .viewCountsBeforeDisk: 1,
        .voteNotSynced: 1,
        .voteTwiceInATerm: 1,
        .walNotWrittenAgain: 46,
        .welcomeAwaitedForever: 25,
        .zoneBeforeBit: 3, .maskFromMemory: 4, .oldCountsMask: 4, .cutPageAdvances: 3,
        .moreComingOfLastBucket: 3, .expiredPartRestarted: 7, .erasureStopsAtHome: 4,
        .bitsErased: 7, .zoneHashedByOwner: 1, .partIdentityShared: 3, .tieIgnoresBucket: 1,
        .recoveredMaskKept: 135,
        .lockNotAsked: 1, .lockOutlivesItsTime: 1,
        .eventOfNow: 1, .deletionMatchedAfter: 1, .settledBeforeAnswered: 13,
        .attendanceReplaced: 1,
    ]

    /// All but the first five belong to the mix `push`.
    package static let long: [PlantedBug: UInt64] = [
        .digestsNotCompared: 1, .electionsNeverBackOff: 27, .releaseForgetsFollowers: 1,
        .startNotCompared: 1, .foundTakenAsHeld: 209,
        .cursorMovedBeforePosted: 5, .sinceIgnored: 3, .onceKept: 3, .handedCountsAsTaken: 3,
        .oldestKeptWhenCoalesced: 3, .laneHoldsOthers: 3, .markClearedThoughNewer: 3,
        .nidDrawnAtSend: 27,
        .cursorNotCompared: 3,
        .overdueForgotten: 17,
        .parkedLostOnLeaderChange: 63,
        .goneDeviceRemovedThoughRenewed: 3,
        .permissionOfTheMatch: 31,
        .newsOfDeposed: 1,
    ]

    package static let rare: Set<PlantedBug> = [
        .durableIgnoresTerm, .lateCommandNotRepeated, .spareTakenAsFound, .tailBehindDamageKept,
    ]

    package static let suites: [PlantedBug: String] = [
        .confirmedReadKept: "ConfirmedReadTests", .walBehindBarrier: "GatheredWritesTests",
        .begunSegmentKept: "LogRecoveryTests", .unknownLossForgiven: "UnknownLossTests",
        .expiredPinTakesHeld: "AssetPropertyTests", .purgeForgetsAssets: "AssetPropertyTests",
        .shareNotTakenBack: "AssetPropertyTests", .holderKeptOnReplace: "AssetPropertyTests",
        .usedPinKept: "AssetPropertyTests", .rereferenceNotPinned: "AssetPropertyTests",
        .latePinTaken: "AssetPropertyTests",
        .graceIgnored: "AssetPropertyTests", .condemnedNotTakenBack: "AssetPropertyTests",
        .replacedKeyKept: "AssetPropertyTests", .replacedBodyKept: "AssetPropertyTests",
        .operationReadsPastItsForm: "PartitionOperationTests",
        .outcomeOfOtherKind: "PartitionOperationTests",
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
