package import StratusModel

/// Asks a target's bucket whether references may be made from records of other buckets, and has
/// them counted and protected until it is known whether they were.
///
/// The save that makes them carries the identity of this command, and no later deadline. A target
/// that has a VALIDATE reference reserved is not deleted; one that has a DELETE_SELF reference
/// reserved takes the record with it when it goes, should the save happen.
package struct ReserveReferences: Sendable, Equatable {
    package static let countMax = 2_000

    package struct Wish: Sendable, Hashable {
        package var target: String
        package var action: Reference.Action
        /// The record that is about to refer to it, of another bucket.
        package var referrer: String

        package init(target: String, action: Reference.Action, referrer: String) {
            self.target = target
            self.action = action
            self.referrer = referrer
        }
    }

    /// The database, with the targets' bucket.
    package var database: DatabaseID
    /// The incarnation of the bucket's default zone, should this be its first write.
    package var drawnIncarnation: ZoneIncarnation
    package var referrerCountMax: Int
    package var wishes: [Wish]
    /// The bucket's default zone, should this be its first write, begins above this tag.
    package var tagFloor: UInt64 = 0

    package init(
        database: DatabaseID, drawnIncarnation: ZoneIncarnation,
        referrerCountMax: Int = RecordRules.standard.deleteSelfReferrerCountMax, wishes: [Wish]
    ) {
        self.database = database
        self.drawnIncarnation = drawnIncarnation
        self.referrerCountMax = referrerCountMax
        self.wishes = wishes
    }
}

/// A reservation that an operation was granted in another bucket.
package struct ReferenceReservation: Sendable, Hashable {
    package var target: String
    package var action: Reference.Action
    /// The identity of the ``ReserveReferences`` that made it, and its deadline.
    package var identity: RequestIdentity
    package var deadlineMilliseconds: Int64

    package init(
        target: String, action: Reference.Action, identity: RequestIdentity,
        deadlineMilliseconds: Int64
    ) {
        self.target = target
        self.action = action
        self.identity = identity
        self.deadlineMilliseconds = deadlineMilliseconds
    }
}
