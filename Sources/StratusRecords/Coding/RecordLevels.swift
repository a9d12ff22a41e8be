// The level that readers need for what this module encodes. A new case of an enumeration gets its
// number here as well as in its encoder. See `Docs/internals/levels.md`.

import StratusCoding
package import StratusModel
import StratusQuery

extension RecordCommand: Levelled {
    /// The numbers of operations, in commands and in their outcomes, that ``RecordState/operations``
    /// does not have.
    package enum Kind: UInt8, Sendable, CaseIterable {
        case modifyRecords = 1
        case modifyZones = 2
        case installSchema = 3
        case extendSchema = 4
        case continueJobs = 5
        case eraseDatabase = 6
        case reserveReferences = 7
        case recover = 8
        case auditLinks = 9
        case noteBuckets = 12
        case modifyDocuments = 14
        case forgetOutcomes = 24
    }

    package var kind: Kind {
        switch self {
        case .modifyRecords: .modifyRecords
        case .modifyZones: .modifyZones
        case .schema(.install): .installSchema
        case .schema(.extend): .extendSchema
        case .continueJobs: .continueJobs
        case .eraseDatabase: .eraseDatabase
        case .reserveReferences: .reserveReferences
        case .recover: .recover
        case .auditLinks: .auditLinks
        case .noteBuckets: .noteBuckets
        case .modifyDocuments: .modifyDocuments
        case .forgetOutcomes: .forgetOutcomes
        }
    }

    /// The kind's number in the encoding.
    package var number: UInt8 { self.kind.rawValue }
    package var level: FeatureLevel { NumberFamily.recordCommand.needed(by: self.number) }
}

extension RecordQuery: Levelled {
    /// The numbers of questions, in queries and in their answers, that ``RecordState/questions``
    /// does not have.
    package enum Kind: UInt8, Sendable, CaseIterable {
        case lookup = 1
        case zones = 2
        case zonePage = 3
        case zoneChanges = 4
        case databaseChanges = 5
        case page = 6
        case schema = 7
        case jobs = 8
        case work = 9
        case judge = 10
        case use = 11
        case buckets = 16
        case documents = 19
        case heldRecords = 22
    }

    package var kind: Kind {
        switch self.ask {
        case .lookup: .lookup
        case .zones: .zones
        case .zonePage: .zonePage
        case .zoneChanges: .zoneChanges
        case .databaseChanges: .databaseChanges
        case .page: .page
        case .schema: .schema
        case .jobs: .jobs
        case .work: .work
        case .judge: .judge
        case .use: .use
        case .buckets: .buckets
        case .documents: .documents
        case .heldRecords: .heldRecords
        }
    }

    /// The kind's number in the encoding.
    package var number: UInt8 { self.kind.rawValue }
    package var level: FeatureLevel { NumberFamily.recordQuery.needed(by: self.number) }
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
    var level: FeatureLevel { NumberFamily.job.needed(by: self.key.first ?? 0) }
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

extension RecordAnswer: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension RecordOutcome: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension WatchRow: FixedLevel {
    static var level: FeatureLevel { .one }
}

extension SubscriptionRow: FixedLevel {
    static var level: FeatureLevel { .one }
}

extension InterestRow: FixedLevel {
    static var level: FeatureLevel { .one }
}

extension ZoneMarksRow: FixedLevel {
    static var level: FeatureLevel { .one }
}

extension FollowerRow: FixedLevel {
    static var level: FeatureLevel { .one }
}

extension NewsEvent: FixedLevel {
    package static var level: FeatureLevel { .one }
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

extension PartitionCounters: FixedLevel {
    static var level: FeatureLevel { .one }
}

extension DatabaseRow: FixedLevel {
    static var level: FeatureLevel { .one }
}

extension ReferrerCounts: FixedLevel {
    static var level: FeatureLevel { .one }
}

extension ZoneRow: FixedLevel {
    static var level: FeatureLevel { .one }
}

extension AssetRow: FixedLevel {
    static var level: FeatureLevel { .one }
}

extension UploadRow: FixedLevel {
    static var level: FeatureLevel { .one }
}

extension KeyRow: FixedLevel {
    static var level: FeatureLevel { .one }
}

extension AssetUse: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension KeyValueUse: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension KeyValueDeviceRow: FixedLevel {
    static var level: FeatureLevel { .one }
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
