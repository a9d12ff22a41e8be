package import StratusModel

/// A read of the records' state, on behalf of `principal`: the body of a `Query` of kind
/// `.records`.
package struct RecordQuery: Sendable, Equatable {
    package enum Ask: Sendable, Equatable {
        case lookup(RecordLookup)
        /// `names` nil: every live zone, the default zone included.
        case zones(DatabaseID, names: [String]?)
        /// Live zones after a name, `limit` at most or fewer; without a name the default zone comes
        /// first.
        case zonePage(DatabaseID, after: String?, limit: Int)
        case zoneChanges(ZoneChangesAsk)
        case databaseChanges(DatabaseChangesAsk)
        case page(QueryPageAsk)
        /// The schema this partition holds for the container.
        case schema(ContainerReference)
        /// Whether jobs wait in this partition that could be carried out now.
        case jobs
        /// The same, and whether there is something whose time has come, wall milliseconds, or will
        /// come.
        case work(asOf: Int64)
        /// The refusals that a batch would get, without applying it.
        case judge(JudgeAsk)
        /// The records and bytes that the database holds: for its owner and for administrators.
        case use(DatabaseID)
        /// The buckets of a private database that are in use, and its default zone.
        case buckets(BucketsAsk)
        case documents(DocumentsAsk)
        /// The records that this partition holds. For Stratus itself.
        case heldRecords(HeldRecordsAsk)
    }

    package var principal: Principal
    package var ask: Ask

    package init(principal: Principal, _ ask: Ask) {
        self.principal = principal
        self.ask = ask
    }

    /// The envelope around this query.
    package func enveloped() -> Query { Query(kind: .records, body: self.encoded()) }
}

extension RecordQuery.Ask: Askable {
    package typealias Refusal = RequestRefusal
    package static var family: Command.Kind { .records }

    package func encoded(as principal: Principal) -> Bytes {
        RecordQuery(principal: principal, self).encoded()
    }

    package static func answer(decoding body: Bytes) throws -> RecordAnswer {
        let answer = try RecordAnswer(decoding: body)
        if case .refused(let refusal) = answer { throw PartitionError.refused(refusal) }
        return answer
    }
}

/// `records/lookup`: names in one zone.
package struct RecordLookup: Sendable, Equatable {
    package var database: DatabaseID
    package var zone: String
    /// Up to 200; a name may stand twice.
    package var names: [String]

    package init(database: DatabaseID, zone: String = ZoneID.defaultName, names: [String]) {
        self.database = database
        self.zone = zone
        self.names = names
    }
}

/// A page of one zone's feed.
package struct ZoneChangesAsk: Sendable, Equatable {
    package var database: DatabaseID
    package var zone: String
    /// Nil: from the beginning (or, in reverse, from the end).
    package var after: FeedPosition?
    /// 1…200.
    package var limit: Int
    /// Newest first; `after` then names the oldest change already seen.
    package var reverse: Bool
    /// Changed records of these types only; nil or empty: all. Deletions always come.
    package var recordTypes: [String]?

    package init(
        database: DatabaseID, zone: String, after: FeedPosition? = nil, limit: Int = 200,
        reverse: Bool = false, recordTypes: [String]? = nil
    ) {
        self.database = database
        self.zone = zone
        self.after = after
        self.limit = limit
        self.reverse = reverse
        self.recordTypes = recordTypes
    }
}

/// A page of a database's feed.
package struct DatabaseChangesAsk: Sendable, Equatable {
    package var database: DatabaseID
    /// Nil: every existing zone.
    package var after: DatabasePosition?
    package var limit: Int

    package init(database: DatabaseID, after: DatabasePosition? = nil, limit: Int = 200) {
        self.database = database
        self.after = after
        self.limit = limit
    }
}

/// A page of `records/query`.
package struct QueryPageAsk: Sendable, Equatable {
    package var database: DatabaseID
    /// Nil: all zones of the database.
    package var zone: String?
    package var predicate: RecordPredicate
    package var limit: Int
    /// The end of the last page, from its answer.
    package var after: Bytes?
    /// Index rows the page may touch before it answers with what it has.
    package var touchCountMax: Int
    /// Whether a field must have the index a filter needs (`strict`), or a scan may serve it.
    package var requiresIndexes: Bool
    /// The schema it was compiled by: a partition that has an older one refuses with `schemaBehind`
    /// instead of answering with less. 0: the schema that the partition holds.
    package var schemaVersion: UInt64 = 0
    /// For a sorted query over buckets: whether the answer gives its records' places among those of
    /// other buckets.
    package var placed = Placing.none
    /// For a query over all zones of a private database in several parts: the number of this part,
    /// which decides between records of one name and equal sort keys.
    package var part: UInt8?

    /// The form of a page that will be merged with others. If nothing can be sorted (the fields do
    /// not allow it), the answer is an ordinary page.
    package enum Placing: UInt8, Sendable {
        /// Records, as ever.
        case none = 0
        /// The records' places, and no records.
        case only = 1
        case withRecords = 2
    }

    package init(
        database: DatabaseID, zone: String? = ZoneID.defaultName, predicate: RecordPredicate,
        limit: Int = 200, after: Bytes? = nil, touchCountMax: Int = 10_000,
        requiresIndexes: Bool = true
    ) {
        self.database = database
        self.zone = zone
        self.predicate = predicate
        self.limit = limit
        self.after = after
        self.touchCountMax = touchCountMax
        self.requiresIndexes = requiresIndexes
    }
}

/// A batch that is judged and not carried out.
package struct JudgeAsk: Sendable, Equatable {
    package var modify: ModifyRecords
    /// The schema it was compiled for.
    package var schemaVersion: UInt64
    /// The types and fields that the schema is to grow by before the batch is carried out.
    package var growth: [RecordType]

    package init(_ modify: ModifyRecords, schemaVersion: UInt64, growth: [RecordType] = []) {
        self.modify = modify
        self.schemaVersion = schemaVersion
        self.growth = growth
    }
}
