// The level that readers need for what this module encodes. A new case of an enumeration gets its
// number here as well as in its encoder. See `Docs/internals/levels.md`.

package import StratusModel
import StratusQuery

extension RecordCommand: Levelled {
    /// The kind's number in the encoding.
    package var number: UInt8 {
        if self.isPlaced { return 50 }
        return switch self {
        case .modifyRecords(let modify):
            switch (modify.words.isEmpty, modify.resolvesAssets) {
            case (true, false): 1
            case (true, true): 28
            case (false, false): 60
            case (false, true): 61
            }
        case .modifyZones: 2
        case .schema(.install(_, let withLongTexts)): withLongTexts ? 62 : 3
        case .schema(.extend(_, let withLongTexts)): withLongTexts ? 63 : 4
        case .continueJobs: 5
        case .eraseDatabase: 6
        case .reserveReferences(let reserve): reserve.edition == .first ? 7 : 9
        case .recover(.first): 8
        case .recover(.second): 11
        case .recover(.third): 131
        case .auditLinks: 10
        case .modifySubscriptions: 12
        case .followNews: 13
        case .pinAsset: 20
        case .holdAssets: 21
        case .putKey: 22
        case .loseBody: 25
        case .findBody: 150
        case .noteBuckets: 51
        case .modifyKeyValues: 40
        case .modifyDocuments: 44
        case .resealFields: 110
        case .rewrapKey: 120
        case .forgetOutcomes: 122
        case .replaceBody: 151
        case .retireKeys: 152
        }
    }
    package var level: FeatureLevel { NumberFamily.recordCommand.needed(by: self.number) }
}

extension RecordQuery: Levelled {
    /// The kind's number in the encoding.
    package var number: UInt8 {
        switch self.ask {
        case .lookup: 1
        case .zones: 2
        case .zoneChanges: 3
        case .databaseChanges: 4
        case .page(let ask): ask.schemaVersion == nil ? 5 : 11
        case .schema: 6
        case .jobs: 7
        case .judge(let ask):
            !ask.growth.isEmpty ? 153 : ask.modify.resolvesAssets ? 22 : 8
        case .use: 9
        case .work: 10
        case .subscriptions: 12
        case .news(let ask): ask.follower == .poll ? 13 : 40
        case .waitingDevices: 41
        case .audience: 140
        case .asset: 20
        case .key: 21
        case .documents: 44
        case .buckets: 50
        case .zonePage: 60
        case .keyValues: 70
        case .keyValueDevices: 71
        case .heldRecords: 100
        case .sealedRecords: 110
        case .lostFiles: 111
        case .bodies: 150
        case .wrappedKeys: 120
        case .assetRows: 123
        case .olderFiles: 152
        case .databaseFiles: 126
        }
    }
    package var level: FeatureLevel {
        max(NumberFamily.recordQuery.needed(by: self.number), self.database?.level ?? .one)
    }
}

extension IdentityCommand: Levelled {
    package var level: FeatureLevel {
        self.edits.reduce(.one) { max($0, $1.key.kind.level) }
    }
}

extension IdentityQuery: Levelled {
    package var level: FeatureLevel {
        switch self {
        case .rows(let keys): keys.reduce(.one) { max($0, $1.kind.level) }
        case .list(let kind, _, _, _, _): kind.level
        }
    }
}

extension IdentityKey.Kind: Levelled {
    package var level: FeatureLevel { NumberFamily.identityRow.needed(by: self.rawValue) }
}

extension Job: Levelled {
    var level: FeatureLevel {
        max(NumberFamily.job.needed(by: self.key.first ?? 0), self.place?.database.level ?? .one)
    }
}

extension DatabaseID: Levelled {
    /// Builds of level 1 know no buckets of private databases.
    package var level: FeatureLevel { self.zoneBucket == nil ? .one : .two }
}

extension IndexJob: Levelled {
    var level: FeatureLevel { NumberFamily.job.needed(by: self.kind.rawValue) }
}

extension BucketMail: Levelled {
    var level: FeatureLevel { NumberFamily.mail.needed(by: self.kind.rawValue) }
}

extension IdentityOutcome: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension IdentityAnswer: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension IdentityRow: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension RecordAnswer: Levelled {
    /// New kinds answer new questions, or tell of what only new commands make.
    package var level: FeatureLevel {
        switch self {
        case .subscriptions, .news, .waitingDevices, .audience, .asset, .key, .buckets, .zonePage,
            .keyValues, .keyValueDevices, .documents, .heldRecords, .sealedRecords, .lostFiles,
            .wrappedKeys, .assetRows, .bodies, .olderFiles, .databaseFiles:
            .two
        case .use(_, _, let assets): assets == .none ? .one : .two
        default: .one
        }
    }
}

extension RecordOutcome: Levelled {
    /// New kinds are outcomes of new commands only.
    package var level: FeatureLevel {
        switch self {
        case .subscriptions, .pinned, .held, .key, .bodyLost, .bucketsNoted, .keyValues,
            .documents, .resealed, .bodyFound, .bodyReplaced:
            .two
        default: .one
        }
    }
}

extension WatchRow: FixedLevel {
    static var level: FeatureLevel { .two }
}

extension SubscriptionRow: FixedLevel {
    static var level: FeatureLevel { .two }
}

extension InterestRow: FixedLevel {
    static var level: FeatureLevel { .two }
}

extension MarkRow: FixedLevel {
    static var level: FeatureLevel { .two }
}

extension FollowerRow: FixedLevel {
    static var level: FeatureLevel { .two }
}

extension NewsEvent: FixedLevel {
    package static var level: FeatureLevel { .two }
}

extension LinkEnds: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension LinkEnds.Ask: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension ModifiedRecords: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension Counter: FixedLevel {
    static var level: FeatureLevel { .one }
}

extension InboundLink: FixedLevel {
    static var level: FeatureLevel { .one }
}

extension PartitionCounters: Levelled {
    var level: FeatureLevel { self.turnFloor == 0 && self.eventFloor == 0 ? .one : .two }
}

extension DatabaseRow: Levelled {
    var level: FeatureLevel { self.buckets == nil ? .one : .two }
}

extension ReferrerCounts: FixedLevel {
    static var level: FeatureLevel { .one }
}

extension ZoneRow: Levelled {
    var level: FeatureLevel { self.assetRecordCount == 0 ? .one : .two }
}

extension AssetRow: FixedLevel {
    static var level: FeatureLevel { .two }
}

extension UploadRow: FixedLevel {
    static var level: FeatureLevel { .two }
}

extension KeyRow: FixedLevel {
    static var level: FeatureLevel { .two }
}

extension AssetUse: FixedLevel {
    package static var level: FeatureLevel { .two }
}

extension KeyValueUse: FixedLevel {
    package static var level: FeatureLevel { .two }
}

extension KeyValueDeviceRow: FixedLevel {
    static var level: FeatureLevel { .two }
}

extension RecordRow: FixedLevel {
    static var level: FeatureLevel { .one }
}

extension FeedRow: FixedLevel {
    static var level: FeatureLevel { .one }
}

extension OfficeRow: FixedLevel {
    static var level: FeatureLevel { .one }
}

extension RouteRow: FixedLevel {
    static var level: FeatureLevel { .one }
}

extension ReferenceEdits: FixedLevel {
    static var level: FeatureLevel { .one }
}

extension RecordBatch: FixedLevel {
    static var level: FeatureLevel { .one }
}

extension ZoneEdit: FixedLevel {
    static var level: FeatureLevel { .one }
}

/// Mail as a row of an outbox.
extension Mail: FixedLevel {
    package static var level: FeatureLevel { .one }
}
