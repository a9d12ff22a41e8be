import StratusHTTP
import StratusModel
import StratusSealing

/// Turns field dictionaries into values. The schema's type decides; what the client claims can only
/// contradict it. Without a type (a field about to be made) the claim decides, then the shape.
struct FieldReader {
    /// The zone of the record that holds the field. Its references point there unless they say
    /// otherwise.
    let zone: ZoneID
    let scope: DatabaseScope
    let caller: String
    /// Reads assets; nil where nobody can save any.
    var receipts: ReceiptReader?
    /// Seals encrypted fields; nil where none can be saved.
    var sealer: FieldSealer?

    /// - Returns: nil for what clears the field: `null`, `{}` and `{"value": null}`, whatever the
    ///   tag.
    func value(
        of dictionary: JSONValue, field: String, record: String, recordType: String,
        defined: FieldType?
    ) throws(FieldRefusal) -> FieldValue? {
        if dictionary.isNull { return nil }
        guard let object = dictionary.object else { throw .noDictionary(field: field) }
        guard let value = object["value"], !value.isNull else {
            // An object with other keys is a mistake, not a wish to clear.
            if object.isEmpty || object["value"] != nil || object["type"] != nil { return nil }
            throw .noDictionary(field: field)
        }
        var claim: TypeTag.Claim?
        let tag = object["type"].flatMap { $0.isNull ? nil : $0 }
        if let tag {
            guard let word = tag.string, let known = TypeTag.claim(word) else {
                throw .unknownTag(tag.string ?? "")
            }
            claim = known
        }
        let flag = object["isEncrypted"]?.bool
        let type: FieldType
        if let defined {
            type = defined
        } else {
            type = try Self.infer(
                value, claim: claim, isEncrypted: flag == true, field: field)
        }
        let wantsSealing = claim?.isEncrypted == true || flag == true
        // A tag or a flag that says nothing of sealing contradicts an encrypted field. Without
        // either the schema decides.
        let deniesSealing = type.isEncrypted && !wantsSealing && (claim != nil || flag == false)
        if deniesSealing || claim.map({ !$0.allows(type) }) == true {
            let word = tag?.string ?? TypeTag.text(of: type)
            throw .contradiction(
                claimed: flag == true && claim?.isEncrypted == false ? "ENCRYPTED_" + word : word,
                field: field, recordType: recordType, defined: type)
        }
        if wantsSealing || type.isEncrypted {
            if self.scope == .public { throw .encryptedInPublic }
            if !type.isEncrypted { throw .notEncrypted }
            guard let sealer else { throw .encryptionUnavailable(field: field) }
            return sealer.seal(
                try self.value(value, as: type),
                at: FieldPlace(zone: self.zone.name, record: record, field: field))
        }
        if type.scalar == .asset { return try self.assets(value, as: type, field: field) }
        return try self.value(value, as: type)
    }

    /// A value for a record of which nobody knows the type: sealed where a type has it encrypted.
    /// Most likely there is no such record, and the partition says so. But the value stands in its
    /// log then.
    func covered(_ value: FieldValue, field: String, record: String, isSecret: Bool)
        throws(FieldRefusal) -> FieldValue
    {
        guard isSecret, self.scope != .public else { return value }
        switch value {
        case .sealed, .scalar(.asset), .scalar(.reference), .list(.asset, _), .list(.reference, _):
            return value
        case .scalar, .list: break
        }
        guard let sealer else { throw .encryptionUnavailable(field: field) }
        return sealer.seal(
            value, at: FieldPlace(zone: self.zone.name, record: record, field: field))
    }

    private func assets(_ value: JSONValue, as type: FieldType, field: String)
        throws(FieldRefusal) -> FieldValue
    {
        guard let receipts else { throw .assetsUnavailable(field: field) }
        guard type.isList else {
            if value.array != nil { throw .unexpectedList(expected: type) }
            return .scalar(.asset(try receipts.asset(value, field: field)))
        }
        guard let array = value.array else { throw .wrongShape(expected: type) }
        var elements: [Scalar] = []
        for element in array {
            elements.append(.asset(try receipts.asset(element, field: field)))
        }
        return .list(.asset, elements)
    }

    /// Reads the JSON of a value, without its dictionary, as exactly this type.
    func value(_ value: JSONValue, as type: FieldType) throws(FieldRefusal) -> FieldValue {
        guard type.isList else {
            if value.array != nil { throw .unexpectedList(expected: type) }
            guard let scalar = self.scalar(value, as: type.scalar) else {
                throw .wrongShape(expected: type)
            }
            return .scalar(scalar)
        }
        guard let array = value.array else { throw .wrongShape(expected: type) }
        var elements: [Scalar] = []
        for element in array {
            guard let scalar = self.scalar(element, as: type.scalar) else {
                throw .wrongShape(expected: type)
            }
            elements.append(scalar)
        }
        return .list(type.scalar, elements)
    }

    /// Nil where the JSON does not have the type's shape. Numbers may come as strings: clients
    /// whose own numbers are too small for 64 bits send them so.
    func scalar(_ value: JSONValue, as type: ScalarType) -> Scalar? {
        switch type {
        case .string: value.string.map { .string($0) }
        case .int64:
            if let bool = value.bool {
                .int64(bool ? 1 : 0)
            } else {
                Self.integer(value).map { .int64($0) }
            }
        case .double:
            (value.double ?? value.string.flatMap { Double($0) })
                .flatMap { $0.isFinite ? .double($0) : nil }
        case .timestamp: Self.integer(value).map { .timestamp($0) }
        case .bytes: value.base64.map { .bytes($0) }
        case .location: self.location(value).map { .location($0) }
        case .reference: self.reference(value).map { .reference($0) }
        case .asset: nil
        }
    }

    private static func integer(_ value: JSONValue) -> Int64? {
        value.wholeInt64 ?? value.string.flatMap { Int64($0) }
    }

    func location(_ value: JSONValue) -> Location? {
        guard let object = value.object,
            let latitude = object["latitude"]?.double, (-90.0...90).contains(latitude),
            let longitude = object["longitude"]?.double, (-180.0...180).contains(longitude)
        else { return nil }
        var location = Location(latitude: latitude, longitude: longitude)
        for (key, place) in Self.locationParts {
            guard let part = object[key], !part.isNull else { continue }
            guard let number = part.double else { return nil }
            location[keyPath: place] = number
        }
        if let time = object["timestamp"], !time.isNull {
            guard let milliseconds = Self.integer(time) else { return nil }
            location.timestamp = milliseconds
        }
        return location
    }

    /// The optional measures of a location, in the order they are written.
    static let locationParts: [(String, any WritableKeyPath<Location, Double?> & Sendable)] = [
        ("horizontalAccuracy", \.horizontalAccuracy), ("verticalAccuracy", \.verticalAccuracy),
        ("altitude", \.altitude), ("speed", \.speed), ("course", \.course),
    ]

    func reference(_ value: JSONValue) -> Reference? {
        guard let object = value.object, let name = object["recordName"]?.string, !name.isEmpty
        else { return nil }
        var zone = self.zone
        if let given = object["zoneID"], !given.isNull {
            guard let address = try? ZoneAddress(given, key: "zoneID") else { return nil }
            // One client writes its own default owner even where the owner is somebody else.
            zone = ZoneID(
                name: address.name,
                owner: self.scope == .public ? "" : address.owner ?? self.zone.owner)
        }
        let action: Reference.Action
        switch object["action"].flatMap({ $0.isNull ? nil : $0 })?.string {
        case nil, "NONE":
            // A client that sends something else than a word is mistaken, not silent.
            if let given = object["action"], !given.isNull, given.string == nil { return nil }
            action = .none
        case "DELETE_SELF": action = .deleteSelf
        case "VALIDATE": action = .validate
        default: return nil
        }
        return Reference(recordName: name, zone: zone, action: action)
    }

    /// The type of a value that nothing defines. References and assets are never encrypted.
    private static func infer(
        _ value: JSONValue, claim: TypeTag.Claim?, isEncrypted: Bool, field: String
    ) throws(FieldRefusal) -> FieldType {
        func type(_ scalar: ScalarType, isList: Bool) -> FieldType {
            let mayBe = scalar != .reference && scalar != .asset
            return FieldType(
                scalar, isList: isList,
                isEncrypted: mayBe && (isEncrypted || claim?.isEncrypted == true))
        }
        if let claim, let likeliest = claim.scalars.first {
            return type(likeliest, isList: claim.isList)
        }
        if let array = value.array {
            guard let first = array.first(where: { _ in true }) else {
                throw .undecidable(field: field)
            }
            guard let element = Self.shape(first) else { throw .undecidable(field: field) }
            return type(element, isList: true)
        }
        guard claim == nil, let scalar = Self.shape(value) else {
            throw .undecidable(field: field)
        }
        return type(scalar, isList: false)
    }

    /// Whether a field's dictionary asks to be sealed.
    static func wantsSealing(_ dictionary: JSONValue) -> Bool {
        guard let object = dictionary.object else { return false }
        return object["isEncrypted"]?.bool == true
            || object["type"]?.string.flatMap { TypeTag.claim($0) }?.isEncrypted == true
    }

    private static func shape(_ value: JSONValue) -> ScalarType? {
        switch value.kind {
        case .string: return .string
        case .bool: return .int64
        case .number: return value.numberForm == .integer ? .int64 : .double
        case .object:
            if value["latitude"] != nil, value["longitude"] != nil { return .location }
            if value["recordName"] != nil { return .reference }
            if value["fileChecksum"] != nil || value["receipt"] != nil { return .asset }
            return nil
        case .null, .array: return nil
        }
    }
}
