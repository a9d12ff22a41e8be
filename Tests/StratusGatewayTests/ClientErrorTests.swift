import StratusCluster
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import Testing
import WireScenarios

@testable import StratusGateway

/// The table from everything that goes wrong inside to what a client is told, line by line.
@Suite struct ClientErrorTests {
    typealias Row = (
        name: String, error: ClientError, code: ServerErrorCode, status: Int, reason: String
    )

    static let input: [Row] = [
        ("path", .init(InputRefusal.unknownPath), .notFound, 404, "no such endpoint"),
        (
            "environment", .init(InputRefusal.unknownEnvironment("staging")), .notFound, 404,
            "unknown environment 'staging'"
        ),
        (
            "database", .init(InputRefusal.unknownDatabase("x")), .notFound, 404,
            "unknown database 'x'"
        ),
        (
            "operation", .init(InputRefusal.unknownOperation("records/x")), .notFound, 404,
            "unknown operation 'records/x'"
        ),
        (
            "method", .init(InputRefusal.wrongMethod("records/query", method: "GET")), .badRequest,
            400, "records/query does not take GET"
        ),
        (
            "not in this database",
            .init(InputRefusal.operationNotInDatabase("changes/zone", .public)), .badRequest, 400,
            "changes/zone is not supported in the public database"
        ),
        (
            "body too large", .init(InputRefusal.bodyTooLarge(10)), .quotaExceeded, 413,
            "the request is larger than 10 bytes"
        ),
        (
            "body cut short", .init(InputRefusal.bodyCutShort), .badRequest, 400,
            "the request ended before its body did"
        ),
        (
            "no JSON", .init(InputRefusal.unreadableJSON(offset: 7)), .badRequest, 400,
            "BadRequestException: Unexpected input: no JSON at byte 7"
        ),
        (
            "too many values", .init(InputRefusal.tooManyValues(limit: 1 << 20)), .badRequest, 400,
            "BadRequestException: Unexpected input: more than 1,048,576 values"
        ),
        (
            "a missing key", .init(InputRefusal.missingKey("zones")), .badRequest, 400,
            "BadRequestException: missing required field 'zones'"
        ),
        (
            "a wrong shape", .init(InputRefusal.unexpectedInput(key: "atomic")), .badRequest, 400,
            "BadRequestException: Unexpected input: 'atomic'"
        ),
        (
            "too many", .init(InputRefusal.tooMany(key: "operations", count: 201, limit: 200)),
            .badRequest, 400, "201 operations are too many, the limit is 200"
        ),
        (
            "a record twice", .init(InputRefusal.repeatedRecord("a")), .badRequest, 400,
            "record 'a' has more than one operation in the request"
        ),
        (
            "a zone twice", .init(InputRefusal.repeatedZone("a")), .badRequest, 400,
            "zone 'a' has more than one operation in the request"
        ),
        (
            "two zones", .init(InputRefusal.twoZones(record: "a")), .badRequest, 400,
            "record 'a' names another zone than the request"
        ),
        (
            "atomic in the default zone", .init(InputRefusal.atomicInDefaultZone), .badRequest,
            400, "atomic operations not supported in default zone"
        ),
        (
            "changes in the default zone", .init(InputRefusal.changesInDefaultZone), .badRequest,
            400, "cannot get changes in default zone"
        ),
        ("zone", .init(InputRefusal.zoneNotFound), .zoneNotFound, 404, "Zone not found"),
        (
            "short GUID", .init(InputRefusal.unknownShortGUID), .notFound, 404,
            "no share has this short GUID"
        ),
        (
            "users queried", .init(InputRefusal.usersQueried), .badRequest, 400,
            "record type 'Users' cannot be queried"
        ),
        (
            "the archive's share type", .init(InputRefusal.nothingToShare), .badRequest,
            400, "Cannot share - no such record exists to share"
        ),
        (
            "token of another kind", .init(InputRefusal.unknownTokenType), .badRequest, 400,
            "Unknown sync continuation type"
        ),
        (
            "token cut", .init(InputRefusal.invalidTokenFormat), .badRequest, 400,
            "Invalid continuation format"
        ),
        (
            "marker", .init(InputRefusal.invalidMarker), .badRequest, 400,
            "Invalid continuation marker"
        ),
    ]

    static let authentication: [Row] = [
        (
            "no user", .init(AuthenticationRefusal.required(redirectURL: "u")),
            .authenticationRequired, 421, "request needs authorization"
        ),
        (
            "wrong", .init(AuthenticationRefusal.failed(reason: "Authentication failed")),
            .authenticationFailed, 401, "Authentication failed"
        ),
        ("denied", .init(AuthenticationRefusal.denied(reason: "no")), .accessDenied, 403, "no"),
        (
            "cannot judge", .init(AuthenticationRefusal.unavailable(retryAfter: .seconds(3))),
            .tryAgainLater, 503, "credentials cannot be checked at the moment"
        ),
    ]

    static let routing: [Row] = [
        (
            "not executed", .init(RouteError.notExecuted(retryAfter: .milliseconds(20))),
            .tryAgainLater, 503, "nothing was done, try again later"
        ),
        (
            "upgrading", .init(RouteError.upgrading), .tryAgainLater, 503,
            "the cluster is being upgraded"
        ),
        (
            "unknown", .init(RouteError.outcomeUnknown), .tryAgainLater, 503,
            "it is not known whether the request was carried out"
        ),
        (
            "refused", .init(RouteError.refused("secret")), .internalError, 500,
            "the request cannot be carried out"
        ),
        (
            "cancelled", .init(CancellationError() as any Error), .tryAgainLater, 503,
            "the request was cancelled"
        ),
        (
            "a bug", .init(StoreError(.io, "secret") as any Error), .internalError, 500,
            "internal error"
        ),
    ]

    static let fields: [Row] = [
        (
            "no dictionary", .init(FieldRefusal.noDictionary(field: "f")), .badRequest, 400,
            "Invalid value for field 'f'"
        ),
        (
            "name", .init(FieldRefusal.nameInvalid(field: "9")), .badRequest, 400,
            "invalid field name '9'"
        ),
        (
            "tag", .init(FieldRefusal.unknownTag("NUMBER")), .badRequest, 400,
            "unknown value type 'NUMBER'"
        ),
        (
            "shape", .init(FieldRefusal.wrongShape(expected: FieldType(.timestamp))), .badRequest,
            400, "Invalid value, expected type TIMESTAMP."
        ),
        (
            "a list", .init(FieldRefusal.unexpectedList(expected: FieldType(.string))),
            .badRequest, 400,
            "BadRequestException: Invalid value, expected type STRING but actual value was a list"
        ),
        (
            "contradiction",
            .init(
                FieldRefusal.contradiction(
                    claimed: "BYTES", field: "f", recordType: "T",
                    defined: FieldType(.string, isList: true, isEncrypted: true))), .badRequest,
            400,
            "invalid attempt to set value type BYTES for field 'f' for type 'T', defined to be: "
                + "ENCRYPTED_STRING_LIST"
        ),
        (
            "undecidable", .init(FieldRefusal.undecidable(field: "f")), .badRequest, 400,
            "the type of field 'f' cannot be told from its value: send 'type'"
        ),
        (
            "undefined in production",
            .init(FieldRefusal.notDefined(field: "f", recordType: "T", isProduction: true)),
            .badRequest, 400, "Cannot create or modify field 'f' in record 'T' in production schema"
        ),
        (
            "undefined in development",
            .init(FieldRefusal.notDefined(field: "f", recordType: "T", isProduction: false)),
            .badRequest, 400,
            "Cannot create or modify field 'f' in record 'T' in a strict development schema"
        ),
        (
            "flag on a plain field", .init(FieldRefusal.notEncrypted), .badRequest, 400,
            "Attempt to save encrypted data in non encrypted field type"
        ),
        (
            "encrypted in public", .init(FieldRefusal.encryptedInPublic), .badRequest, 400,
            "encrypted fields are not supported in the public database"
        ),
        (
            "type needed", .init(FieldRefusal.typeNeeded(field: "f", recordType: "T")),
            .badRequest, 400,
            "field 'f' is encrypted in type 'T': the operation must name the record's type"
        ),
        (
            "encrypted", .init(FieldRefusal.encryptionUnavailable(field: "f")), .badRequest, 400,
            "field 'f' is encrypted, which is not supported here"
        ),
        (
            "asset", .init(FieldRefusal.assetsUnavailable(field: "f")), .badRequest, 400,
            "field 'f' is an asset, which is not supported here"
        ),
        (
            "receipt", .init(FieldRefusal.receiptUnknown(field: "f")), .badRequest, 400,
            "the receipt in field 'f' is unknown or has expired: upload the file again"
        ),
    ]

    @Test(arguments: input + authentication + routing + fields)
    func `every refusal has one code, one status and one reason`(row: Row) {
        #expect(row.error.code == row.code, "\(row.name)")
        #expect(row.error.code.status == row.status, "\(row.name)")
        #expect(row.error.reason == row.reason, "\(row.name)")
    }

    static let records: [(RecordRefusal.Reason, ServerErrorCode, String)] = [
        (.exists, .conflict, "record to insert already exists"),
        (.tagMismatch, .conflict, "client oplock error updating record"),
        (
            .tagMissing, .badRequest,
            "BadRequestException: missing required field 'recordChangeTag'"
        ),
        (.notFound, .notFound, "Record not found"),
        (.typeUnknown, .notFound, "Did not find record type: S"),
        (.typeMissing, .badRequest, "BadRequestException: missing required field 'recordType'"),
        (.typeMismatch, .badRequest, "the record's type is 'S'"),
        (.fieldUnknown, .badRequest, "field 'S' is not defined"),
        (.fieldTypeMismatch, .badRequest, "invalid attempt to set the value type of field 'S'"),
        (.tooLarge, .badRequest, "record too large"),
        (.createDenied, .accessDenied, "CREATE operation not permitted"),
        (.writeDenied, .accessDenied, "WRITE operation not permitted"),
        (
            .referenceTargetMissing, .validatingReferenceError,
            "the record 'S' that a VALIDATE reference points at does not exist"
        ),
        (
            .referenced, .validatingReferenceError,
            "the record 'S' holds a VALIDATE reference to it"
        ),
        (
            .tooManyReferrers, .badRequest,
            "the record 'S' already has the maximum number of DELETE_SELF references"
        ),
        (.crossZoneReference, .badRequest, "field 'S' refers to another zone"),
        (.parentMissing, .badRequest, "the parent 'S' does not exist"),
        (
            .cascadeTooLarge, .badRequest,
            "the delete would remove more than S records in one atomic batch"
        ),
        (
            .atomicFailure, .atomicError,
            "Atomic failure: another operation in the batch failed"
        ),
        (.nameInvalid, .badRequest, "invalid record name 'S'"),
        (.typeReserved, .accessDenied, "record type 'S' is reserved"),
        (.tooManyReferences, .badRequest, "the record holds too many references"),
        (
            .batchTooLarge, .quotaExceeded,
            "the atomic batch reads and writes more than S bytes of records"
        ),
        (
            .deferred, .tryAgainLater, "the request reads and writes too many bytes of records"
        ),
        (.databaseFull, .quotaExceeded, "the database would exceed its quota of S bytes"),
        (
            .notReserved, .tryAgainLater,
            "the reference to 'S' was not created in time, try again later"
        ),
        (
            .outboxFull, .tryAgainLater,
            "another bucket of the database has not yet received earlier changes, try again later"
        ),
        (
            .referencePending, .tryAgainLater,
            "a VALIDATE reference to the record is being created, try again later"
        ),
        (
            .parentCircle, .badRequest,
            "the record is above its parent 'S', or too many parents are above it"
        ),
        (.shareRootMissing, .badRequest, "Cannot share - no such record exists to share"),
        (
            .shareOfRecord, .badRequest,
            "a share of one record is not available on this server: share its zone, with a share "
                + "of the name 'cloudkit.zoneshare'"
        ),
        (
            .participantTwice, .badRequest, "'S' stands in the list of participants twice"
        ),
        (
            .shareIsPublic, .badRequest,
            "a share that is public takes no new private participants"
        ),
        (.tooManyParticipants, .badRequest, "a share may have S private participants"),
        (.participantUnknown, .badRequest, "an entry of 'participants' names nobody"),
        (
            .roleUnavailable, .badRequest,
            "administrators of shares are not available on this server"
        ),
        (
            .sharedFile, .badRequest,
            "field 'S': files in zones of other users are not available on this server"
        ),
        (.ownerUnnameable, .badRequest, "zones of this user cannot be shared"),
        (.assetMissing, .badRequest, "the asset of field 'S' is not there any more"),
        (.assetMismatch, .badRequest, "the asset of field 'S' is not the one of a receipt"),
        (.tooManyAssets, .badRequest, "a record or an atomic batch may have S assets"),
        (.treeParentMissing, .validatingReferenceError, "the parent 'S' does not exist"),
        (.parentOfOthers, .validatingReferenceError, "record '' is the parent of ''"),
        (
            .cascadePending, .tryAgainLater,
            "children of an earlier record 'S' are still being deleted, try again later"
        ),
        (
            .fieldKeyMissing, .tryAgainLater,
            "the key of field 'S' was replaced or destroyed meanwhile, try again later"
        ),
    ]

    /// What stands beside the code.
    static let finer: [RecordRefusal.Reason: ClientError.FinerCode] = [
        .participantTwice: .participantAlreadyInvited, .tooManyParticipants: .limitExceeded,
    ]

    @Test func `every reason for refusing a record is in the table`() {
        #expect(Self.records.map(\.0) == RecordRefusal.Reason.allCases)
        for (reason, code, text) in Self.records {
            let retryAfter = code == .tryAgainLater ? 1 : nil
            let finer = Self.finer[reason]
            #expect(
                ClientError(RecordRefusal(reason, "S"))
                    == ClientError(code, text, retryAfter: retryAfter, finer: finer))
        }
        #expect(
            ClientError(RecordRefusal(.notFound), tagWasGiven: true).reason
                == "recordChangeTag specified, but record not found")
    }

    static let zones: [(ZoneRefusal, ServerErrorCode, String)] = [
        (.notFound, .zoneNotFound, "Zone not found"),
        (.nameInvalid, .badRequest, "invalid zone name"),
        (.customZonesUnavailable, .badRequest, "the public database has no custom zones"),
        (.exists, .exists, "zone to create already exists"),
        (.noFeed, .badRequest, "cannot get changes in default zone"),
        (.positionExpired, .badRequest, "Unknown sync continuation type"),
        (.accessDenied, .accessDenied, "operation not permitted in this zone"),
        (.tooManyZones, .quotaExceeded, "the database already has the maximum number of zones"),
        (.scopeFixed, .badRequest, "'encryptionScope' is fixed when a zone is made"),
    ]

    @Test func `every reason for refusing a zone is in the table`() {
        #expect(Self.zones.map(\.0) == ZoneRefusal.allCases)
        for (refusal, code, text) in Self.zones {
            #expect(ClientError(refusal) == ClientError(code, text))
        }
    }

    static let requests: [(StratusRecords.RequestRefusal.Reason, ServerErrorCode, String)] = [
        (.zoneNotFound, .zoneNotFound, "Zone not found"),
        (
            .atomicInDefaultZone, .badRequest,
            "atomic operations not supported in default zone"
        ),
        (
            .duplicateRecord, .badRequest,
            "record 'S' has more than one operation in the request"
        ),
        (.schemaBehind, .tryAgainLater, "the schema is being installed, try again later"),
        (.accessDenied, .accessDenied, "operation not permitted in this database"),
        (.tooManyItems, .badRequest, "too many items in one request"),
        (.positionExpired, .badRequest, "Unknown sync continuation type"),
        (.queryInvalid, .badRequest, "S"),
        (.typeUnknown, .notFound, "Did not find record type: S"),
        (.schemaConflict, .badRequest, "S"),
        (.empty, .badRequest, "BadRequestException: missing required field 'operations'"),
        (
            .otherBucket, .tryAgainLater,
            "the record 'S' is in another bucket of the database, try again later"
        ),
        (
            .zoneElsewhere, .tryAgainLater,
            "the zone 'S' is in another bucket of the database, try again later"
        ),
        (.indexBuilding, .tryAgainLater, "an index is being built, try again later"),
        (.shareNotFound, .notFound, "no share has this short GUID"),
        (
            .shareFull, .accessDenied,
            "the share already has the maximum number of participants"
        ),
        (
            .tooManySharedZones, .accessDenied,
            "the user has accepted the maximum number of zones"
        ),
        (
            .uploadAttached, .accessDenied,
            "a record holds what was uploaded to this URL already"
        ),
        (.pinTooLate, .tryAgainLater, "the upload could not be stored in time"),
        (.assetTaken, .tryAgainLater, "the upload could not be stored in time"),
        (.keyMissing, .tryAgainLater, "the upload could not be stored in time"),
        (.databaseFull, .quotaExceeded, "the database may hold S bytes"),
        (
            .tooMuchUnattached, .quotaExceeded,
            "more than S bytes were uploaded that no record holds"
        ),
    ]

    @Test func `every reason for refusing a command is in the table`() {
        #expect(Self.requests.map(\.0) == StratusRecords.RequestRefusal.Reason.allCases)
        for (reason, code, text) in Self.requests {
            let error = ClientError(StratusRecords.RequestRefusal(reason, "S"))
            #expect(error.code == code && error.reason == text)
            #expect((error.retryAfter != nil) == (code == .tryAgainLater))
        }
    }

    @Test func `the codes and their statuses are CloudKit's`() {
        let table: [(String, Int)] = [
            ("ACCESS_DENIED", 403), ("ATOMIC_ERROR", 400), ("AUTHENTICATION_FAILED", 401),
            ("AUTHENTICATION_REQUIRED", 421), ("BAD_REQUEST", 400), ("CONFLICT", 409),
            ("EXISTS", 409), ("INTERNAL_ERROR", 500), ("NOT_FOUND", 404),
            ("QUOTA_EXCEEDED", 413), ("THROTTLED", 429), ("TRY_AGAIN_LATER", 503),
            ("VALIDATING_REFERENCE_ERROR", 412), ("ZONE_NOT_FOUND", 404),
        ]
        #expect(ServerErrorCode.allCases.map(\.rawValue) == table.map(\.0))
        #expect(ServerErrorCode.allCases.map(\.status) == table.map(\.1))
    }

    @Test func `waiting is told in whole seconds, never zero`() {
        for (duration, seconds) in [
            (Duration.zero, 1), (.milliseconds(1), 1), (.milliseconds(1_001), 2), (.seconds(7), 7),
        ] {
            let error = ClientError(RouteError.notExecuted(retryAfter: duration))
            #expect(error.retryAfter == seconds)
        }
    }

    @Test func `what a client sent comes back with an end`() {
        let reason = ClientError(
            InputRefusal.unknownOperation(String(repeating: "x", count: 10_000))
        ).reason
        #expect(reason.utf8.count < 100)
    }

    @Test func `a body of too many values is not said to be no JSON`() async throws {
        let town = Neighbourhood()
        let container = try await town.makeContainer()
        let token = try await town.apiToken()
        for (count, text) in [(1 << 20, "more than 1,048,576 values"), (300, "300 records are")] {
            let values = Array("0,".utf8)
            var body = Array("{\"records\":[".utf8)
            body.reserveCapacity(3 << 20)
            for _ in 1..<count { body += values }
            body += Array("0]}".utf8)
            let answer = try await town.send(
                WireRequest(
                    method: "POST",
                    target: "/database/1/\(container)/development/public/records/lookup?ckAPIToken="
                        + token, headers: [], body: body))
            #expect(answer.status == 400 && answer.text.contains(text), "\(answer.text)")
        }
    }

    @Test(arguments: HTTPRefusal.allCases)
    func `the server's own refusals have a code too`(refusal: HTTPRefusal) {
        let error = ClientError(refusal)
        #expect(error.code == (refusal == .bodyTooLarge ? .quotaExceeded : .badRequest))
        #expect(error.reason == refusal.rawValue)
    }
}
