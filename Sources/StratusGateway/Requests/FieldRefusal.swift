package import StratusModel

/// Why one field's value cannot be taken: the item's error, and nobody else's.
package enum FieldRefusal: Error, Sendable, Hashable {
    /// Not a dictionary with a value.
    case noDictionary(field: String)
    case nameInvalid(field: String)
    /// The word beside the value is none of CloudKit's.
    case unknownTag(String)
    /// The JSON does not have the shape of that type.
    case wrongShape(expected: FieldType)
    /// A list stands where one value belongs.
    case unexpectedList(expected: FieldType)
    /// The word beside the value contradicts the schema.
    case contradiction(claimed: String, field: String, recordType: String, defined: FieldType)
    /// Nothing says what an empty list or object of an undefined field is.
    case undecidable(field: String)
    case notDefined(field: String, recordType: String, isProduction: Bool)
    case notEncrypted
    case encryptedInPublic
    /// The operation names no type, and the field is encrypted in one type and not in another.
    case typeNeeded(field: String, recordType: String)
    /// Nothing here has keys to seal it with.
    case encryptionUnavailable(field: String)
    /// Nothing here keeps assets.
    case assetsUnavailable(field: String)
    /// The receipt was altered, has expired, or is another user's or database's.
    case receiptUnknown(field: String)

    /// Whether the value would be taken if the schema gave its field another type.
    var isMisfit: Bool {
        switch self {
        case .wrongShape, .unexpectedList, .contradiction, .notEncrypted, .encryptedInPublic: true
        case .noDictionary, .nameInvalid, .unknownTag, .undecidable, .notDefined, .typeNeeded,
            .encryptionUnavailable, .assetsUnavailable, .receiptUnknown:
            false
        }
    }
}
