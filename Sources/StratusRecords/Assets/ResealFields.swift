package import StratusModel

/// Stratus' own: puts encrypted values that are sealed anew in the place of the old ones. The
/// record stays what it is: its tag, its times and its place in the feed do not change.
package struct ResealFields: Sendable, Equatable {
    package static let recordCountMax = 200

    package struct Item: Sendable, Equatable {
        package var record: String
        /// Of the record as it was read. One that has changed since is left as it is.
        package var tag: ChangeTag
        /// The sealed values, sorted by name.
        package var fields: [Field]

        package init(record: String, tag: ChangeTag, fields: [Field]) {
            self.record = record
            self.tag = tag
            self.fields = fields
        }
    }

    package var database: DatabaseID
    package var zone: String
    package var items: [Item]

    package init(database: DatabaseID, zone: String = ZoneID.defaultName, items: [Item]) {
        self.database = database
        self.zone = zone
        self.items = items
    }
}

/// The outcome of ``ResealFields``.
package struct ResealedFields: Sendable, Hashable {
    /// Records of which values were replaced.
    package var count: UInt64
    /// Keys before the newest that the database still has.
    package var olderKeyCount: UInt64

    package init(count: UInt64, olderKeyCount: UInt64) {
        self.count = count
        self.olderKeyCount = olderKeyCount
    }
}

/// Asks for the records of a zone with values that are sealed under old keys, in the order of
/// their names.
package struct SealedAsk: Sendable, Equatable {
    package var database: DatabaseID
    package var zone: String
    /// The name behind which to look; nil: from the first.
    package var after: String?
    /// The first version that is not old.
    package var below: UInt32

    package init(database: DatabaseID, zone: String, after: String? = nil, below: UInt32) {
        self.database = database
        self.zone = zone
        self.after = after
        self.below = below
    }
}

/// An answer to a ``SealedAsk``.
package struct SealedPage: Sendable, Equatable {
    package var records: [Record]
    /// The last name that was looked at; nil: the zone has no more.
    package var next: String?

    package init(records: [Record], next: String?) {
        self.records = records
        self.next = next
    }
}
