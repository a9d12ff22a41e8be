package import StratusHTTP
package import StratusIdentity
package import StratusModel
package import StratusRecords
package import StratusRuntime

/// An error as a client sees it. This is the one table from every internal error to CloudKit's
/// codes and words. Nothing else in Stratus chooses a code or a status for a client.
///
/// Words stand here as Apple's service says them where somebody has seen them; clients match on
/// some.
package struct ClientError: Error, Sendable, Hashable {
    package var code: ServerErrorCode
    package var reason: String
    /// Seconds; told both in the body and in the header. Nil: asking again does not help.
    package var retryAfter: Int?
    /// The sign-in page, with `AUTHENTICATION_REQUIRED`.
    package var redirectURL: String?
    /// How many items a request may have, where it had more: a client can cut it into pieces.
    package var limit: Int?
    /// What the code alone does not say, for clients that know Stratus.
    package var finer: FinerCode?
    /// The record that the finer code is about.
    package var recordName: String?

    /// A meaning that none of the fourteen codes has. It stands beside the code, under a key of its
    /// own: some clients stop at a code that they do not know.
    package enum FinerCode: String, Sendable, Hashable {
        case limitExceeded = "LIMIT_EXCEEDED"
        case participantAlreadyInvited = "PARTICIPANT_ALREADY_INVITED"
        case parentRefused = "PARENT_REFUSED"
    }

    package init(
        _ code: ServerErrorCode, _ reason: String, retryAfter: Int? = nil,
        redirectURL: String? = nil, limit: Int? = nil, finer: FinerCode? = nil
    ) {
        self.limit = limit
        self.finer = finer
        self.code = code
        self.reason = reason
        self.retryAfter = retryAfter
        self.redirectURL = redirectURL
    }
}

/// What a partition of records says no with.
typealias RecordsError = PartitionError<StratusRecords.RequestRefusal>

extension ClientError {
    /// Whatever was thrown on the way of a request: the five domains that meet in the gateway, and
    /// a bug's last net.
    package init(_ error: any Error) {
        self =
            switch error {
            case let error as ClientError: error
            case let refusal as InputRefusal: Self(refusal)
            case let refusal as AuthenticationRefusal: Self(refusal)
            case let error as RouteError: Self(error)
            case let error as RecordsError: Self(error)
            case let refusal as FieldRefusal: Self(refusal)
            case let failure as AssetFailure: failure.error
            case is CancellationError:
                Self(.tryAgainLater, "the request was cancelled", retryAfter: 1)
            default: Self(.internalError, "internal error")
            }
    }

    /// With a comma before each three digits.
    private static func grouped(_ number: Int) -> String {
        var text = ""
        for (place, digit) in String(number).reversed().enumerated() {
            if place > 0, place % 3 == 0 { text = "," + text }
            text = String(digit) + text
        }
        return text
    }

    package init(_ refusal: InputRefusal) {
        let input = "BadRequestException: Unexpected input"
        self =
            switch refusal {
            case .unknownPath: Self(.notFound, "no such endpoint")
            case .unknownEnvironment(let name):
                Self(.notFound, "unknown environment '\(Self.quoted(name))'")
            case .unknownDatabase(let name):
                Self(.notFound, "unknown database '\(Self.quoted(name))'")
            case .unknownOperation(let name):
                Self(.notFound, "unknown operation '\(Self.quoted(name))'")
            case .wrongMethod(let operation, let method):
                Self(.badRequest, "\(operation) does not take \(Self.quoted(method))")
            case .operationNotInDatabase(let operation, let scope):
                Self(
                    .badRequest,
                    "\(operation) is not supported in the \(scope.name) database")

            case .bodyTooLarge(let limit):
                Self(.quotaExceeded, "the request is larger than \(limit.raw) bytes")
            case .noRoomForBody:
                Self(
                    .tryAgainLater, "too many large requests at once, try again later",
                    retryAfter: 1)
            case .noRoomToWait:
                Self(.tryAgainLater, "too many held requests", retryAfter: 30)
            case .bodyCutShort: Self(.badRequest, "the request ended before its body did")
            case .unreadableJSON(let offset):
                Self(.badRequest, "\(input): no JSON at byte \(offset)")
            case .tooManyValues(let limit):
                Self(.badRequest, "\(input): more than \(Self.grouped(limit)) values")
            case .missingKey(let key):
                Self(.badRequest, "BadRequestException: missing required field '\(key)'")
            case .unexpectedInput(let key): Self(.badRequest, "\(input): '\(key)'")
            case .tooMany(let key, let count, let limit):
                Self(
                    .badRequest, "\(count) \(key) are too many, the limit is \(limit)",
                    limit: limit, finer: .limitExceeded)
            case .tooManyOperands(let filter, let field, let limit):
                Self(
                    .badRequest,
                    "Filter type \(filter) on \(field.map { "field '\(Self.quoted($0))'" } ?? "all fields")"
                        + " has more than \(limit) values: ask in several queries")
            case .repeatedRecord(let name):
                Self(
                    .badRequest,
                    "record '\(Self.quoted(name))' has more than one operation in the request")
            case .repeatedZone(let name):
                Self(
                    .badRequest,
                    "zone '\(Self.quoted(name))' has more than one operation in the request")
            case .twoZones(let record):
                Self(
                    .badRequest,
                    "record '\(Self.quoted(record))' names another zone than the request")

            case .atomicInDefaultZone:
                Self(.badRequest, "atomic operations not supported in default zone")
            case .changesInDefaultZone: Self(.badRequest, "cannot get changes in default zone")
            case .zoneNotFound: Self(.zoneNotFound, "Zone not found")
            case .unknownShortGUID: Self(.notFound, "no share has this short GUID")
            case .usersQueried:
                Self(.badRequest, "record type 'Users' cannot be queried")
            case .sharesQueried:
                Self(.badRequest, "record type 'cloudkit.share' cannot be queried")
            case .nothingToShare:
                Self(.badRequest, "Cannot share - no such record exists to share")
            case .recordShareUnavailable:
                Self(
                    .badRequest,
                    "a share of one record is not available on this server: share its zone, with "
                        + "a share of the name 'cloudkit.zoneshare'")
            case .invitationUnavailable:
                Self(
                    .badRequest,
                    "an invitation by address is not available on this server: name the person "
                        + "by 'userRecordName'")
            case .keyUnavailable(let key):
                Self(.badRequest, "'\(key)' of this value is not available on this server")
            case .unknownTokenType: Self(.badRequest, "Unknown sync continuation type")
            case .invalidTokenFormat: Self(.badRequest, "Invalid continuation format")
            case .invalidMarker: Self(.badRequest, "Invalid continuation marker")
            }
    }

    /// - Parameter tagWasGiven: whether the client said which revision it meant: CloudKit words a
    ///   missing record differently then.
    package init(_ refusal: RecordRefusal, tagWasGiven: Bool = false) {
        let subject = Self.quoted(refusal.subject)
        self =
            switch refusal.reason {
            case .exists: Self(.conflict, "record to insert already exists")
            case .tagMismatch: Self(.conflict, "client oplock error updating record")
            case .tagMissing:
                Self(
                    .badRequest, "BadRequestException: missing required field 'recordChangeTag'")
            case .notFound:
                Self(
                    .notFound,
                    tagWasGiven
                        ? "recordChangeTag specified, but record not found" : "Record not found")
            case .typeUnknown: Self(.notFound, "Did not find record type: \(subject)")
            case .typeMissing:
                Self(.badRequest, "BadRequestException: missing required field 'recordType'")
            case .typeMismatch: Self(.badRequest, "the record's type is '\(subject)'")
            case .fieldUnknown: Self(.badRequest, "field '\(subject)' is not defined")
            case .fieldTypeMismatch:
                Self(.badRequest, "invalid attempt to set the value type of field '\(subject)'")
            case .tooLarge: Self(.badRequest, "record too large")
            case .createDenied: Self(.accessDenied, "CREATE operation not permitted")
            case .writeDenied: Self(.accessDenied, "WRITE operation not permitted")
            case .referenceTargetMissing:
                Self(
                    .validatingReferenceError,
                    "the record '\(subject)' that a VALIDATE reference points at does not exist")
            case .referenced:
                Self(
                    .validatingReferenceError,
                    "the record '\(subject)' holds a VALIDATE reference to it")
            case .tooManyReferrers:
                Self(
                    .badRequest,
                    "the record '\(subject)' already has the maximum number of DELETE_SELF "
                        + "references")
            case .batchTooLarge:
                Self(
                    .quotaExceeded,
                    "the atomic batch reads and writes more than \(subject) bytes of records")
            case .deferred:
                Self(
                    .tryAgainLater, "the request reads and writes too many bytes of records",
                    retryAfter: 1)
            case .notReserved:
                Self(
                    .tryAgainLater,
                    "the reference to '\(subject)' was not created in time, try again later",
                    retryAfter: 1)
            case .outboxFull:
                Self(
                    .tryAgainLater,
                    "another bucket of the database has not yet received earlier changes, try "
                        + "again later",
                    retryAfter: 1)
            case .referencePending:
                Self(
                    .tryAgainLater,
                    "a VALIDATE reference to the record is being created, try again later",
                    retryAfter: 1)
            case .databaseFull:
                Self(.quotaExceeded, "the database would exceed its quota of \(subject) bytes")
            case .tooManyReferences: Self(.badRequest, "the record holds too many references")
            case .crossZoneReference:
                Self(.badRequest, "field '\(subject)' refers to another zone")
            case .parentMissing: Self(.badRequest, "the parent '\(subject)' does not exist")
            case .parentCircle:
                Self(
                    .badRequest,
                    "the record is above its parent '\(subject)', or too many parents are above it"
                )
            case .treeParentMissing:
                Self(.validatingReferenceError, "the parent '\(subject)' does not exist")
            case .parentOfOthers:
                Self(parentAndChild: refusal.parentAndChild)
            case .cascadePending:
                Self(
                    .tryAgainLater,
                    "children of an earlier record '\(subject)' are still being deleted, try again "
                        + "later",
                    retryAfter: 1)
            case .cascadeTooLarge:
                Self(
                    .badRequest,
                    "the delete would remove more than \(subject) records in one atomic batch")
            case .atomicFailure: .atomicFailure
            case .nameInvalid: Self(.badRequest, "invalid record name '\(subject)'")
            case .typeReserved: Self(.accessDenied, "record type '\(subject)' is reserved")
            case .assetMissing:
                Self(.badRequest, "the asset of field '\(subject)' is not there any more")
            case .assetMismatch:
                Self(.badRequest, "the asset of field '\(subject)' is not the one of a receipt")
            case .tooManyAssets:
                Self(.badRequest, "a record or an atomic batch may have \(subject) assets")
            case .shareRootMissing: Self(InputRefusal.nothingToShare)
            case .shareOfRecord: Self(InputRefusal.recordShareUnavailable)
            case .participantTwice:
                Self(
                    .badRequest, "'\(subject)' stands in the list of participants twice",
                    finer: .participantAlreadyInvited)
            case .shareIsPublic:
                Self(.badRequest, "a share that is public takes no new private participants")
            case .tooManyParticipants:
                Self(
                    .badRequest, "a share may have \(subject) private participants",
                    limit: Int(refusal.subject), finer: .limitExceeded)
            case .participantUnknown:
                Self(.badRequest, "an entry of 'participants' names nobody")
            case .roleUnavailable:
                Self(.badRequest, "administrators of shares are not available on this server")
            case .sharedFile:
                Self(
                    .badRequest,
                    "field '\(subject)': files in zones of other users are not available on this "
                        + "server")
            case .ownerUnnameable:
                Self(.badRequest, "zones of this user cannot be shared")
            case .fieldKeyMissing:
                Self(
                    .tryAgainLater,
                    "the key of field '\(subject)' was replaced or destroyed meanwhile, try again "
                        + "later",
                    retryAfter: 1)
            }
    }

    private init(parentAndChild names: (parent: String, child: String)?) {
        let parent = Self.quoted(names?.parent ?? "")
        let child = Self.quoted(names?.child ?? "")
        self.init(.validatingReferenceError, "record '\(parent)' is the parent of '\(child)'")
    }

    /// The error of a record whose parent was refused in the same request: the first cause counts,
    /// and a client that waits for it saves both.
    init(parent name: String, refusedFor cause: Self) {
        self = cause
        self.reason = "the parent '\(Self.quoted(name))' was refused: \(cause.reason)"
        self.limit = nil
        self.finer = .parentRefused
        self.recordName = name
    }

    /// Whether a record is refused because this parent is not there.
    func isAboutMissingParent(_ name: String) -> Bool {
        self == Self(RecordRefusal(.treeParentMissing, name))
            || self == Self(RecordRefusal(.parentMissing, name))
    }

    /// The error for the innocent operations of a failed atomic batch.
    package static let atomicFailure = Self(
        .atomicError, "Atomic failure: another operation in the batch failed")

    package init(_ refusal: ZoneRefusal) {
        self =
            switch refusal {
            case .notFound: Self(.zoneNotFound, "Zone not found")
            case .nameInvalid: Self(.badRequest, "invalid zone name")
            case .customZonesUnavailable:
                Self(.badRequest, "the public database has no custom zones")
            case .exists: Self(.exists, "zone to create already exists")
            case .noFeed: Self(InputRefusal.changesInDefaultZone)
            case .positionExpired: Self(InputRefusal.unknownTokenType)
            case .accessDenied: Self(.accessDenied, "operation not permitted in this zone")
            case .tooManyZones:
                Self(.quotaExceeded, "the database already has the maximum number of zones")
            case .scopeFixed:
                Self(.badRequest, "'encryptionScope' is fixed when a zone is made")
            }
    }

    package init(_ refusal: StratusRecords.RequestRefusal) {
        let subject = Self.quoted(refusal.subject)
        self =
            switch refusal.reason {
            case .zoneNotFound: Self(InputRefusal.zoneNotFound)
            case .atomicInDefaultZone: Self(InputRefusal.atomicInDefaultZone)
            case .duplicateRecord: Self(InputRefusal.repeatedRecord(refusal.subject))
            case .schemaBehind:
                Self(
                    .tryAgainLater, "the schema is being installed, try again later", retryAfter: 1)
            case .indexBuilding:
                Self(.tryAgainLater, "an index is being built, try again later", retryAfter: 1)
            case .accessDenied: Self(.accessDenied, "operation not permitted in this database")
            case .tooManyItems:
                Self(
                    .badRequest, "too many items in one request", limit: Int(refusal.subject),
                    finer: .limitExceeded)
            case .positionExpired: Self(InputRefusal.unknownTokenType)
            case .queryInvalid: Self(.badRequest, refusal.subject)
            case .typeUnknown: Self(.notFound, "Did not find record type: \(subject)")
            case .schemaConflict: Self(.badRequest, refusal.subject)
            case .empty: Self(InputRefusal.missingKey("operations"))
            case .otherBucket:
                Self(
                    .tryAgainLater,
                    "the record '\(subject)' is in another bucket of the database, try again "
                        + "later",
                    retryAfter: 1)
            case .zoneElsewhere:
                Self(
                    .tryAgainLater,
                    "the zone '\(subject)' is in another bucket of the database, try again later",
                    retryAfter: 1)
            case .shareNotFound: Self(InputRefusal.unknownShortGUID)
            case .shareFull:
                Self(
                    .accessDenied, "the share already has the maximum number of participants",
                    limit: Int(refusal.subject), finer: .limitExceeded)
            case .tooManySharedZones:
                Self(
                    .accessDenied, "the user has accepted the maximum number of zones",
                    limit: Int(refusal.subject), finer: .limitExceeded)
            case .uploadAttached:
                Self(.accessDenied, "a record holds what was uploaded to this URL already")
            case .pinTooLate, .assetTaken, .keyMissing:
                Self(.tryAgainLater, "the upload could not be stored in time", retryAfter: 1)
            case .databaseFull:
                Self(.quotaExceeded, "the database may hold \(subject) bytes")
            case .tooMuchUnattached:
                Self(
                    .quotaExceeded,
                    "more than \(subject) bytes were uploaded that no record holds")
            }
    }

    package init(_ refusal: FieldRefusal) {
        self =
            switch refusal {
            case .noDictionary(let field):
                Self(.badRequest, "Invalid value for field '\(Self.quoted(field))'")
            case .nameInvalid(let field):
                Self(.badRequest, "invalid field name '\(Self.quoted(field))'")
            case .unknownTag(let tag):
                Self(.badRequest, "unknown value type '\(Self.quoted(tag))'")
            case .wrongShape(let expected):
                Self(.badRequest, "Invalid value, expected type \(TypeTag.text(of: expected)).")
            case .unexpectedList(let expected):
                Self(
                    .badRequest,
                    "BadRequestException: Invalid value, expected type "
                        + "\(TypeTag.text(of: expected)) but actual value was a list")
            case .contradiction(let claimed, let field, let recordType, let defined):
                Self(
                    .badRequest,
                    "invalid attempt to set value type \(Self.quoted(claimed)) for field "
                        + "'\(Self.quoted(field))' for type '\(Self.quoted(recordType))', "
                        + "defined to be: \(TypeTag.name(of: defined))")
            case .undecidable(let field):
                Self(
                    .badRequest,
                    "the type of field '\(Self.quoted(field))' cannot be told from its value: "
                        + "send 'type'")
            case .notDefined(let field, let recordType, let isProduction):
                Self(
                    .badRequest,
                    "Cannot create or modify field '\(Self.quoted(field))' in record "
                        + "'\(Self.quoted(recordType))' in "
                        + (isProduction ? "production schema" : "a strict development schema"))
            case .notEncrypted:
                Self(
                    .badRequest, "Attempt to save encrypted data in non encrypted field type")
            case .encryptedInPublic:
                Self(
                    .badRequest, "encrypted fields are not supported in the public database")
            case .typeNeeded(let field, let type):
                Self(
                    .badRequest,
                    "field '\(Self.quoted(field))' is encrypted in type '\(Self.quoted(type))': "
                        + "the operation must name the record's type")
            case .encryptionUnavailable(let field):
                Self(
                    .badRequest,
                    "field '\(Self.quoted(field))' is encrypted, which is not supported here")
            case .assetsUnavailable(let field):
                Self(
                    .badRequest,
                    "field '\(Self.quoted(field))' is an asset, which is not supported here")
            case .receiptUnknown(let field):
                Self(
                    .badRequest,
                    "the receipt in field '\(Self.quoted(field))' is unknown or has expired: "
                        + "upload the file again")
            }
    }

    package init(_ refusal: AuthenticationRefusal) {
        self =
            switch refusal {
            case .required(let redirectURL):
                Self(
                    .authenticationRequired, "request needs authorization",
                    redirectURL: redirectURL)
            case .failed(let reason): Self(.authenticationFailed, reason)
            case .denied(let reason): Self(.accessDenied, reason)
            case .unavailable(let retryAfter):
                Self(
                    .tryAgainLater, "credentials cannot be checked at the moment",
                    retryAfter: Self.seconds(retryAfter))
            case .limited(let retryAfter):
                Self(
                    .throttled, "too many wrong passwords, try again later",
                    retryAfter: Self.seconds(retryAfter))
            }
    }

    /// The error of a record of which a field that the client wants did not open. Nil: all that it
    /// wants of the record is there.
    ///
    /// - Parameter wasSaved: the request has just saved the record.
    init?(of record: Record, _ shape: AnswerShape, _ opened: OpenedFields, wasSaved: Bool) {
        guard let (field, why) = opened.closed(of: record).first(where: { shape.wants($0.field) })
        else { return nil }
        let start = wasSaved ? "the record was saved, but its" : "the"
        let text = "\(start) encrypted field '\(Self.quoted(field))' cannot be opened"
        self =
            switch why {
            case .damaged: Self(.internalError, text)
            case .keyGone: Self(.tryAgainLater, text + ": its key is gone", retryAfter: 30)
            }
    }

    package init(_ error: RouteError) {
        self =
            switch error {
            case .notExecuted(let retryAfter):
                Self(
                    .tryAgainLater, "nothing was done, try again later",
                    retryAfter: Self.seconds(retryAfter))
            case .upgrading:
                Self(.tryAgainLater, "the cluster is being upgraded", retryAfter: 30)
            case .outcomeUnknown:
                Self(
                    .tryAgainLater, "it is not known whether the request was carried out",
                    retryAfter: 1)
            case .refused, .unreadable:
                Self(.internalError, "the request cannot be carried out")
            }
    }

    private init(_ error: RecordsError) {
        if case .refused(let refusal) = error {
            self.init(refusal)
        } else {
            self.init(RouteError(error))
        }
    }

    /// What services throw: a refusal is the client's, and anything else the partition's.
    static func told(_ error: RecordsError) -> any Error {
        if case .refused(let refusal) = error { ClientError(refusal) } else { RouteError(error) }
    }

    /// The error for a request that the HTTP server itself refuses. The status is the refusal's,
    /// the code the nearest of the fourteen.
    package init(_ refusal: HTTPRefusal) {
        self =
            switch refusal {
            case .bodyTooLarge: Self(.quotaExceeded, refusal.rawValue)
            case .requestLine, .target, .requestLineTooLong, .method, .version, .lineEnd,
                .headerLine, .foldedHeader, .headersTooLarge, .tooManyHeaders, .host,
                .contentLength, .bothLengths, .transferEncoding, .transferCoding,
                .contentCoding, .expectation, .chunk, .chunkOverhead, .trailer,
                .headersTooSlow, .bodyTooSlow:
                Self(.badRequest, refusal.rawValue)
            }
    }

    package init(_ refusal: CrowdRefusal) {
        self.init(.tryAgainLater, refusal.rawValue, retryAfter: refusal.retryAfterSeconds)
    }

    /// Whole seconds, and never zero: zero would ask for a storm.
    static func seconds(_ duration: Duration) -> Int {
        Int(max(1, (duration.clampedNanoseconds + 999_999_999) / 1_000_000_000))
    }

    /// Returns a client's text for an error message, cut if it is long.
    static func quoted(_ text: String) -> String {
        text.utf8.count <= 80 ? text : String(text.prefix(60)) + "…"
    }
}
