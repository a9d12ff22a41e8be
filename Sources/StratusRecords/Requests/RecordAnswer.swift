package import StratusModel
package import StratusQuery

/// The answer to a ``RecordQuery``.
package enum RecordAnswer: Sendable, Equatable {
    case lookup(LookupAnswer)
    case zones([ZoneAnswer])
    /// `next`: the name after which the next page begins; nil: there is none.
    case zonePage([ZoneAnswer], next: String?)
    case zoneChanges(ZoneChangesPage)
    /// Why this one zone cannot answer: an item's error in `changes/zone`.
    case zoneRefused(ZoneRefusal)
    case databaseChanges(DatabaseChangesPage)
    case page(QueryPage)
    case placedPage(PlacedPage)
    /// Nil: this partition holds none.
    case schema(Schema?)
    case jobs(isWaiting: Bool)
    /// `willWait`: there is something that waits for its time.
    case work(isWaiting: Bool, willWait: Bool)
    /// The refusal of each operation by itself; nil: it is not refused.
    case judged([RecordRefusal?])
    case use(StorageUse, zoneCount: UInt64, assets: AssetUse = .none)
    case buckets(BucketsAnswer)
    case documents(DocumentsAnswer)
    case heldRecords(HeldRecords)
    case refused(RequestRefusal)
}

package struct LookupAnswer: Sendable, Equatable {
    package enum Item: Sendable, Equatable {
        case found(Record)
        case refused(RecordRefusal)
        /// The answer grew too large before this name: ask again for it and those after it.
        case deferred
    }

    /// The items in the order asked.
    package var items: [Item]
    /// Nil for a default zone that was never written.
    package var zone: ZoneSummary?

    package init(items: [Item], zone: ZoneSummary?) {
        self.items = items
        self.zone = zone
    }
}

package enum ZoneAnswer: Sendable, Equatable {
    /// A default zone that was never written is answered with incarnation and tag zero.
    case zone(ZoneSummary)
    case refused(ZoneRefusal)
}

package struct ZoneChangesPage: Sendable, Equatable {
    package enum Change: Sendable, Equatable {
        case changed(Record)
        case deleted(name: String, tag: ChangeTag)
    }

    package var changes: [Change]
    /// The `after` of the next page, and the client's new token.
    package var position: FeedPosition
    package var moreComing: Bool

    package init(changes: [Change], position: FeedPosition, moreComing: Bool) {
        self.changes = changes
        self.position = position
        self.moreComing = moreComing
    }
}

package struct DatabaseChangesPage: Sendable, Equatable {
    package struct Change: Sendable, Equatable {
        package var name: String
        /// Why the zone is gone; nil: it is live.
        package var deletion: DeletionReason?
        package var isDeleted: Bool { self.deletion != nil }
        /// Why an earlier incarnation of a live zone is gone, where the reader has not heard of
        /// that yet.
        package var deletedBefore: DeletionReason?
        /// The zone's position at or before the incoming database position: safe to fetch from. Nil
        /// for a deleted zone, and for "from the beginning": no incoming position, or one midway.
        package var since: FeedPosition?
        /// The zone's last change; nil for a deleted zone.
        package var zone: ZoneSummary?

        package init(
            name: String, deletion: DeletionReason? = nil, deletedBefore: DeletionReason? = nil,
            since: FeedPosition?, zone: ZoneSummary?
        ) {
            self.name = name
            self.deletion = deletion
            self.deletedBefore = deletedBefore
            self.since = since
            self.zone = zone
        }
    }

    package var changes: [Change]
    package var position: DatabasePosition
    package var moreComing: Bool

    package init(changes: [Change], position: DatabasePosition, moreComing: Bool) {
        self.changes = changes
        self.position = position
        self.moreComing = moreComing
    }
}

/// A page of one bucket, to be merged with those of others.
package struct PlacedPage: Sendable, Equatable {
    /// The place of each record, in order.
    package var places: [MergePlace]
    /// The records; empty where only places were asked for.
    package var records: [Record]
    /// The place up to which the bucket has looked; nil: it has seen everything.
    package var end: MergePlace?

    package init(places: [MergePlace], records: [Record], end: MergePlace?) {
        self.places = places
        self.records = records
        self.end = end
    }
}

package struct QueryPage: Sendable, Equatable {
    package var records: [Record]
    /// The marker at which the next page starts; nil when there is none.
    package var next: Bytes?
    /// The summary of the zone asked for; nil for all zones or one never written.
    package var zone: ZoneSummary?
    /// How many rows were read to answer: tests prove with it that indexes are used.
    package var touchCount: Int

    package init(records: [Record], next: Bytes?, zone: ZoneSummary?, touchCount: Int) {
        self.records = records
        self.next = next
        self.zone = zone
        self.touchCount = touchCount
    }
}
