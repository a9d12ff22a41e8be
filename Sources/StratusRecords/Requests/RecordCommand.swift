package import StratusModel
package import StratusQuery

/// A change that a gateway asks of the records' state: the body of a `Command` of kind `.records`.
package enum RecordCommand: Sendable, Equatable {
    case modifyRecords(ModifyRecords)
    case modifyZones(ModifyZones)
    case schema(SchemaCommand)
    /// Stratus' own: continues what earlier entries left to be done.
    case continueJobs(ContinueJobs)
    /// Stratus' own: takes everything out of one database.
    case eraseDatabase(EraseDatabase)
    /// The gateway's: before a save that refers to records of another bucket.
    case reserveReferences(ReserveReferences)
    /// Stratus' own: the first command of a partition that goes on from one replica, its majority
    /// being lost.
    case recover
    /// Stratus' own: after a partition of its database was recovered, or because an operator says
    /// so.
    case auditLinks(AuditLinks)
    /// The gateway's: before zones are made in buckets of a private database.
    case noteBuckets(NoteBuckets)
    case modifyDocuments(ModifyDocuments)
    /// Stratus' own: after an erasure, removes outcomes of commands whose time is over.
    case forgetOutcomes
}

/// `records/modify`: operations on one zone.
package struct ModifyRecords: Sendable, Equatable {
    package var database: DatabaseID
    /// The zone's name; its owner is the database's.
    package var zone: String
    /// All or nothing. Refused in default zones.
    package var isAtomic: Bool
    /// The device that `created` and `modified` will name; never empty.
    package var deviceID: String
    /// The incarnation of the default zone, should this be its first write.
    package var drawnIncarnation: ZoneIncarnation
    package var rules: RecordRules
    /// 1…200, no record name twice (else the request is refused).
    package var operations: [RecordOperation]
    /// Whether the state looks for the assets that fields name, and refuses those that are not
    /// there. Set it where a field's value is an asset or a list of assets: without it no field may
    /// name one.
    package var resolvesAssets = false
    /// The default zone, should this be its first write, begins above this tag.
    package var tagFloor: UInt64 = 0
    /// The words of long texts, which a gateway has cut so that no storage thread must. Where they
    /// are missing the state cuts them itself.
    package var words: [CutText] = []

    /// The words of one field of one record of the batch.
    package struct CutText: Sendable, Equatable {
        package var recordName: String
        package var field: String
        package var words: TextWords

        package init(recordName: String, field: String, words: TextWords) {
            self.recordName = recordName
            self.field = field
            self.words = words
        }
    }

    package init(
        database: DatabaseID, zone: String = ZoneID.defaultName, isAtomic: Bool = false,
        deviceID: String = "2", drawnIncarnation: ZoneIncarnation,
        rules: RecordRules = .standard, operations: [RecordOperation]
    ) {
        self.database = database
        self.zone = zone
        self.isAtomic = isAtomic
        self.deviceID = deviceID
        self.drawnIncarnation = drawnIncarnation
        self.rules = rules
        self.operations = operations
    }
}

/// `zones/modify`: in order, all attempted, never atomic.
package struct ModifyZones: Sendable, Equatable {
    package enum Kind: UInt8, Sendable, Hashable {
        case create = 1
        case delete = 2
    }

    package struct Operation: Sendable, Hashable {
        package var kind: Kind
        package var zone: String
        /// For `create`; ignored by `delete`.
        package var drawnIncarnation: ZoneIncarnation
        /// For `create`: nil where the client did not say.
        package var scope: EncryptionScope?
        /// For `delete`.
        package var reason = DeletionReason.deleted

        package init(_ kind: Kind, zone: String, drawnIncarnation: ZoneIncarnation) {
            self.kind = kind
            self.zone = zone
            self.drawnIncarnation = drawnIncarnation
        }
    }

    package var database: DatabaseID
    package var rules: RecordRules
    package var operations: [Operation]
    /// Zones that are made begin above this tag.
    package var tagFloor: UInt64 = 0

    package init(database: DatabaseID, rules: RecordRules = .standard, operations: [Operation]) {
        self.database = database
        self.rules = rules
        self.operations = operations
    }
}

/// A change of the copy of a container's schema that a partition holds.
package enum SchemaCommand: Sendable, Equatable {
    /// Takes the container's schema as it is at its home. An older version than the held one is
    /// ignored: the outcome names the version that stands.
    case install(Schema)
    /// Adds types, fields and indexes at the container's home; the first type of a field wins.
    case extend([RecordType])
}

/// One bounded slice of the partition's jobs: purging deleted zones, long cascades, old tombstones,
/// filling new indexes.
package struct ContinueJobs: Sendable, Equatable {
    /// Rows the slice may remove or write, roughly.
    package var budget: Int

    package init(budget: Int = 500) { self.budget = budget }
}

/// Takes zones out of one database until none is left, the default zone included: records,
/// tombstones, names. Their rows are out of sight at once, and jobs remove them.
///
/// What stays is a row that says how far the database had come, so that no token or tag from before
/// the erasure ever fits what comes after it.
package struct EraseDatabase: Sendable, Equatable {
    package static let zoneCountMax = 1_000

    package var database: DatabaseID
    /// Zones this command takes; more than ``zoneCountMax`` it never does.
    package var zoneCount: Int

    package init(database: DatabaseID, zoneCount: Int = Self.zoneCountMax) {
        self.database = database
        self.zoneCount = zoneCount
    }
}

extension RecordCommand: Submittable {
    package static var family: Command.Kind { .records }
    package static let place = ContainerReference(
        container: "stratus.jobs", environment: .production)
    package var namedDatabase: DatabaseID? { self.database }

    package static func outcome(decoding body: Bytes, detail: Bytes) throws -> RecordOutcome {
        let outcome = try RecordOutcome(decoding: body, detail: detail)
        if case .refused(let refusal) = outcome { throw PartitionError.refused(refusal) }
        return outcome
    }

    package typealias Refusal = RequestRefusal
}
