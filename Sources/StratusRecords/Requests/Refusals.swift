package import StratusCoding

/// Why one operation of a batch, or one record, was refused. The gateway turns it into a code and a
/// reason of CloudKit's.
package struct RecordRefusal: Sendable, Hashable {
    /// The raw value is in stored outcomes for ever.
    package enum Reason: UInt8, Sendable, Hashable, CaseIterable {
        /// `create` of a name that is taken.
        case exists = 1
        /// The client's tag is not the stored one.
        case tagMismatch = 2
        /// `update` or `replace` of an existing record without a tag.
        case tagMissing = 3
        /// There is no such record, or the caller may not read it.
        case notFound = 4
        /// The schema has no such record type. Subject: the type.
        case typeUnknown = 5
        /// A record would be created and the request names no type.
        case typeMissing = 6
        /// The request's type is not the record's. Subject: the record's type.
        case typeMismatch = 7
        /// The schema has no such field. Subject: the field.
        case fieldUnknown = 8
        /// The field has another type in the schema. Subject: the field.
        case fieldTypeMismatch = 9
        /// The record with its new fields would be larger than a record may be.
        case tooLarge = 10
        /// The caller may not create records of this type. Subject: the type.
        case createDenied = 11
        /// The caller may not change or delete this record. Subject: its type.
        case writeDenied = 12
        /// A VALIDATE reference points at no record. Subject: the target's name.
        case referenceTargetMissing = 13
        /// VALIDATE references to this record, or to one its cascade would remove, stand in the
        /// way. Subject: a referring record.
        case referenced = 14
        /// The target has as many DELETE_SELF referrers as it may. Subject: the target's name.
        case tooManyReferrers = 15
        /// A reference points into another zone. Subject: the field.
        case crossZoneReference = 16
        /// The parent does not exist. Subject: its name.
        case parentMissing = 17
        /// The delete's cascade is larger than one atomic batch may be. Subject: the limit.
        case cascadeTooLarge = 18
        /// Another operation of the atomic batch failed.
        case atomicFailure = 19
        /// The name breaks the rules for names. Subject: the name.
        case nameInvalid = 20
        /// The type is the system's (`Users`, …). Subject: the type.
        case typeReserved = 21
        /// The request writes more acting references (DELETE_SELF, VALIDATE) than one may.
        case tooManyReferences = 22
        /// An atomic batch reads and writes more bytes than one entry may. Subject: the limit.
        case batchTooLarge = 23
        /// A batch has read and written as many bytes as one entry may: this operation was not
        /// tried.
        case deferred = 24
        /// The database would hold more than its quota. Subject: the quota in bytes.
        case databaseFull = 25
        /// A reference into another bucket that was not reserved there, or whose reservation ends
        /// before the command may be applied. Subject: the target's name.
        case notReserved = 26
        /// The partition has too much mail waiting to leave: nothing was tried.
        case outboxFull = 27
        /// A VALIDATE reference to the record is being made in another bucket: nobody can say yet
        /// whether it will be.
        case referencePending = 28
        /// The record is above its new parent, or more parents are above it than may be. Subject:
        /// the parent's name.
        case parentCircle = 29
        /// A share in a default zone or a public database, of a record that is missing, or under a
        /// name or of a type that shares do not have.
        case shareRootMissing = 30
        /// A share of a single record: there are shares of whole zones only.
        case shareOfRecord = 31
        /// One person stands twice in the list of participants. Subject: whom the entry names.
        case participantTwice = 32
        /// A private participant would be added while the share is public.
        case shareIsPublic = 33
        /// Subject: the limit.
        case tooManyParticipants = 34
        /// An entry of the list of participants names nobody.
        case participantUnknown = 35
        /// There are no administrators of shares.
        case roleUnavailable = 36
        /// A participant would add a file to a zone of somebody else's. Subject: the field.
        case sharedFile = 37
        /// The owner's record name fits no link, so nothing of theirs can be shared.
        case ownerUnnameable = 38
        /// The receipt's asset is not there any more. Subject: the field.
        case assetMissing = 40
        /// Size or checksum are not those of the receipt's asset; or there is no receipt, and the
        /// field holds no such asset. Subject: the field.
        case assetMismatch = 41
        /// The record would hold more assets than one may. Subject: the limit.
        case tooManyAssets = 42
        /// The parent does not exist, in a zone that keeps a tree. Subject: its name.
        case treeParentMissing = 43
        /// A record that the deletion would take is the parent of one that it would leave. Subject:
        /// the two names, see ``parentAndChild``.
        case parentOfOthers = 44
        /// A cascade has still to come to the children of an earlier record of the name. Subject:
        /// the name.
        case cascadePending = 45
        /// The field is sealed under a key that the database does not have, or has no more: seal
        /// anew. Subject: the field.
        case fieldKeyMissing = 90
    }

    package var reason: Reason
    /// The subject of the reason, as the reason's comment says; else empty.
    package var subject: String

    package init(_ reason: Reason, _ subject: String = "") {
        self.reason = reason
        self.subject = subject
    }

    /// A refusal about a parent and a child. No name holds the character between them.
    init(_ reason: Reason, _ parent: String, of child: String) {
        self.init(reason, parent + "\0" + child)
    }

    /// The two names of ``Reason/parentOfOthers``; nil: it is another reason.
    package var parentAndChild: (parent: String, child: String)? {
        guard self.reason == .parentOfOthers, let end = self.subject.firstIndex(of: "\0") else {
            return nil
        }
        return (String(self.subject[..<end]), String(self.subject[end...].dropFirst()))
    }
}

/// Why one zone of a request was refused.
package enum ZoneRefusal: UInt8, Sendable, Hashable, CaseIterable {
    case notFound = 1
    /// Not a name for a custom zone, the default zone, or one named twice in the request.
    case nameInvalid = 2
    /// The public database has no custom zones.
    case customZonesUnavailable = 3
    /// Only with the rule `existingZoneIsRefused`.
    case exists = 4
    /// Default zones have no change feed.
    case noFeed = 5
    /// The position is of an earlier incarnation, or older than what is kept.
    case positionExpired = 6
    case accessDenied = 7
    case tooManyZones = 8
    /// The zone exists, with another encryption scope.
    case scopeFixed = 9
}

/// Why a whole request was refused: nothing was done.
package struct RequestRefusal: Sendable, Hashable {
    package enum Reason: UInt8, Sendable, Hashable, CaseIterable {
        /// Subject: the zone's name.
        case zoneNotFound = 1
        case atomicInDefaultZone = 2
        /// A record name stands in two operations. Subject: the name.
        case duplicateRecord = 3
        /// The command needs a newer schema than this partition holds: install it, then send the
        /// command under a new identity. Subject: the held version.
        case schemaBehind = 4
        /// The caller may not use this database.
        case accessDenied = 5
        /// More operations or names than one request may hold.
        case tooManyItems = 6
        /// The feed position is expired. Subject: empty.
        case positionExpired = 7
        /// A query that cannot be answered as asked. Subject: the reason, in CloudKit's words.
        case queryInvalid = 8
        /// A query about a type the schema does not have. Subject: the type.
        case typeUnknown = 9
        /// The schema change contradicts the schema. Subject: why.
        case schemaConflict = 10
        /// No operation at all.
        case empty = 11
        /// A record that is not in the bucket the command was sent to, or a command for buckets
        /// sent to a whole database. Subject: the record's name.
        case otherBucket = 12
        /// A zone that is not in the bucket the command was sent to, or buckets of another layout
        /// of the container. Subject: the zone's name.
        case zoneElsewhere = 13
        /// The query needs an index that is being built.
        case indexBuilding = 14
        /// There is no share with this link, or it is not for the caller: the two are alike.
        case shareNotFound = 15
        /// As many people have come by the link as may. Subject: the limit.
        case shareFull = 16
        /// The caller has accepted as many zones as one person may. Subject: the limit.
        case tooManySharedZones = 17
        /// A record holds what was uploaded with the ticket already.
        case uploadAttached = 40
        /// The entry is later than the body's copies are kept for certain: upload again.
        case pinTooLate = 41
        /// The drawn name of the asset or the body is taken: upload again.
        case assetTaken = 42
        /// The database has no such key: ask for the newest, and seal anew.
        case keyMissing = 43
        /// The database would hold more than its quota. Subject: the quota in bytes.
        case databaseFull = 44
        /// Too much was uploaded that no record holds. Subject: the limit in bytes.
        case tooMuchUnattached = 45
    }

    package var reason: Reason
    package var subject: String

    package init(_ reason: Reason, _ subject: String = "") {
        self.reason = reason
        self.subject = subject
    }
}

extension RequestRefusal: FormValue, Error {
    /// A refusal that is to be read.
    package init() { self.init(.accessDenied) }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.reason)
        try form.lay(&self.subject)
    }
}

extension RequestRefusal: CustomStringConvertible {
    package var description: String { "\(self.reason)" }
}
