package import StratusModel

/// The outcome of applying a ``RecordCommand``.
package enum RecordOutcome: Sendable, Equatable {
    case records(ModifiedRecords)
    /// The results in the order of the operations.
    case zones([ZoneResult])
    /// The version of the schema that stands after the command.
    case schema(version: UInt64)
    case jobs(JobProgress)
    case recovered
    case refused(RequestRefusal)
    case erased(ErasureProgress)
    /// The refusal of each wish; nil: it was granted.
    case reserved([RecordRefusal?])
    /// The buckets in use after a ``NoteBuckets``.
    case bucketsNoted(BucketMask)
    /// The results in the order of the operations.
    case documents([DocumentResult])
}

/// The results of a `records/modify`, one per operation, in order.
package struct ModifiedRecords: Sendable, Equatable {
    package enum Result: Sendable, Equatable {
        case saved(SavedRecord)
        /// `tag` is the tombstone's; nil where there was nothing to delete.
        case deleted(tag: ChangeTag?)
        case refused(RecordRefusal)
        /// A participant deleted the record of a share, and so has left it: the record stays. The
        /// caller's own list is to be told.
        case left(SharedZoneNote)
    }

    /// The zone after the command: what `getCurrentSyncToken` answers.
    package var zone: ZoneSummary
    package var results: [Result]

    package init(zone: ZoneSummary, results: [Result]) {
        self.zone = zone
        self.results = results
    }
}

/// A record as an operation left it.
package struct SavedRecord: Sendable, Equatable {
    package var tag: ChangeTag
    /// When `modified` says it was.
    package var milliseconds: Int64
    /// The complete record, exactly as this write left it. Nil in an outcome that was remembered
    /// for a repeated command, because outcomes are remembered without bodies. Look the record up:
    /// if its tag is still `tag`, it is the same record.
    package var record: Record?

    package init(tag: ChangeTag, milliseconds: Int64, record: Record?) {
        self.tag = tag
        self.milliseconds = milliseconds
        self.record = record
    }
}

package enum ZoneResult: Sendable, Equatable {
    case created(ZoneSummary)
    case deleted
    case refused(ZoneRefusal)
}

/// A position in a zone's feed: what a sync token seals.
package struct FeedPosition: Sendable, Hashable {
    package var incarnation: ZoneIncarnation
    /// The tag of the last change seen. Zero: before everything.
    package var tag: ChangeTag
    /// Deletions through here need not be seen: whoever holds this began with nothing when they had
    /// happened already. Zero where that makes no difference.
    package var floor: ChangeTag

    package init(
        incarnation: ZoneIncarnation, tag: ChangeTag, floor: ChangeTag = ChangeTag(0)
    ) {
        self.incarnation = incarnation
        self.tag = tag
        self.floor = floor
    }
}

/// A position in a database's feed.
package struct DatabasePosition: Sendable, Hashable, Comparable {
    /// Counts the times another zone became the last one changed.
    package var turn: UInt64
    /// How far the zone of that turn had come.
    package var tag: ChangeTag
    /// The end of a page that was not the last. Whoever goes on from here knows zones as they stood
    /// before the first page, not as they stood at this position: a zone whose last turn is still
    /// to come may have changed in a turn that was passed.
    package var isMidway: Bool
    /// The turn at which the walk began that this is midway through. What was deleted through there
    /// its holder has heard of; or, in a first fetch, has never heard of. Zero elsewhere.
    package var floor: UInt64

    package init(turn: UInt64, tag: ChangeTag, isMidway: Bool = false, floor: UInt64 = 0) {
        self.turn = turn
        self.tag = tag
        self.isMidway = isMidway
        self.floor = floor
    }
    package static let start = DatabasePosition(turn: 0, tag: ChangeTag(0))

    package static func < (one: Self, other: Self) -> Bool {
        (one.turn, one.tag) < (other.turn, other.tag)
    }
}

/// A live zone.
package struct ZoneSummary: Sendable, Hashable {
    package var name: String
    package var incarnation: ZoneIncarnation
    /// Its last change.
    package var position: FeedPosition {
        FeedPosition(incarnation: self.incarnation, tag: self.lastTag)
    }
    package var lastTag: ChangeTag
    package var recordCount: UInt64
    package var scope: EncryptionScope

    package init(
        name: String, incarnation: ZoneIncarnation, lastTag: ChangeTag, recordCount: UInt64 = 0,
        scope: EncryptionScope = .perRecord
    ) {
        self.scope = scope
        self.name = name
        self.incarnation = incarnation
        self.lastTag = lastTag
        self.recordCount = recordCount
    }

    /// Atomic batches, a change feed, sharing: custom zones have all of them, default zones none.
    package var isDefault: Bool { self.name == ZoneID.defaultName }
}

/// The work that one slice of the jobs did.
package struct JobProgress: Sendable, Hashable {
    /// Rows removed or written.
    package var rowCount: Int
    /// Whether jobs remain.
    package var hasMore: Bool

    package init(rowCount: Int, hasMore: Bool) {
        self.rowCount = rowCount
        self.hasMore = hasMore
    }
}

/// The zones and records that one ``EraseDatabase`` removed.
package struct ErasureProgress: Sendable, Hashable {
    /// Live custom zones.
    package var zoneCount: UInt64
    /// Live records.
    package var recordCount: UInt64
    /// Whether zones remain.
    package var hasMore: Bool

    package init(zoneCount: UInt64, recordCount: UInt64, hasMore: Bool) {
        self.zoneCount = zoneCount
        self.recordCount = recordCount
        self.hasMore = hasMore
    }
}
