import StratusHTTP
import StratusModel
import StratusRecords

/// A `records/modify` as the client said it: everything but the fields, whose reading needs the
/// schema.
struct ModifyRequest {
    struct Operation {
        var kind: RecordOperation.Kind
        var recordName: String
        var recordType: String?
        var changeTag: String?
        var parent: RecordOperation.ParentChange
        var fields: JSONObject?
        var shape: AnswerShape
        /// 128 random bits for a short GUID; nil: the operation needs none.
        var drawnGUID: UInt128?
        /// What a save of a share says of it. Nil: the operation is about no share.
        var share: Result<ShareDraft, InputRefusal>?
    }

    var zone: ZoneAddress
    /// Nil: the client did not say.
    var atomic: Bool?
    var operations: [Operation]

    init(_ input: Input, limits: Limits, draws: inout Draws) throws(InputRefusal) {
        let shape = try AnswerShape(input)
        var zone: ZoneAddress?
        if let given = input["zoneID"] { zone = try ZoneAddress(given, key: "zoneID") }
        self.atomic = try input.flag("atomic")
        self.operations = []
        var names: Set<String> = []
        let elements = try input.requiredElements(
            "operations", limit: limits.operationCountMax)
        for element in elements {
            let item = try Input(element, at: "operations")
            let record = try Input(item["record"], at: "record")
            let operation = try Operation(item, record: record, shape: shape, draws: &draws)
            // One zone per request; a record may repeat it, and names it where the request does
            // not.
            if let given = record["zoneID"] {
                let own = try ZoneAddress(given, key: "zoneID")
                if let zone,
                    zone.name != own.name || zone.owner ?? own.owner != own.owner ?? zone.owner
                {
                    throw .twoZones(record: operation.recordName)
                }
                zone = zone ?? own
            }
            guard names.insert(operation.recordName).inserted else {
                throw .repeatedRecord(operation.recordName)
            }
            self.operations.append(operation)
        }
        self.zone = zone ?? .defaultZone
    }
}

extension ModifyRequest.Operation {
    init(
        _ item: Input, record: Input, shape: AnswerShape, draws: inout Draws
    ) throws(InputRefusal) {
        guard let kind = Self.kind(try item.requiredString("operationType")) else {
            throw .unexpectedInput(key: "operationType")
        }
        self.kind = kind
        if let name = try record.string("recordName") {
            self.recordName = name
        } else if kind.createsMissing {
            self.recordName = draws.recordName()
        } else {
            throw .missingKey("recordName")
        }
        // One client puts the type beside the record.
        self.recordType = try record.string("recordType")
        if self.recordType == nil { self.recordType = try item.string("recordType") }
        self.changeTag = try record.string("recordChangeTag")
        self.parent = .unmentioned
        if let parent = record.object["parent"] {
            self.parent =
                parent.isNull
                ? .cleared
                : .set(try Input(parent, at: "parent").requiredString("recordName"))
        }
        if try record.flag("createShortGUID") == true, !kind.isDelete {
            self.drawnGUID = draws.name()
        }
        if let fields = record["fields"] {
            guard let object = fields.object else { throw .unexpectedInput(key: "fields") }
            self.fields = object
        }
        self.shape = try shape.overridden(by: item)
        if ShareReader.isShare(self) { self.readShare(record, draws: &draws) }
    }

    private mutating func readShare(_ record: Input, draws: inout Draws) {
        if self.drawnGUID == nil { self.drawnGUID = draws.name() }
        do throws(InputRefusal) {
            self.share = .success(try ShareReader(record: record).draft(of: self, draws: &draws))
        } catch { self.share = .failure(error) }
    }

    private static func kind(_ word: String) -> RecordOperation.Kind? {
        switch word {
        case "create": .create
        case "update": .update
        case "forceUpdate": .forceUpdate
        case "replace": .replace
        case "forceReplace": .forceReplace
        case "delete": .delete
        case "forceDelete": .forceDelete
        default: nil
        }
    }
}
