import StratusModel

/// The word beside a value that says its type: what we write, and everything clients write.
enum TypeTag {
    /// The type's name as answers spell it: `STRING`, `INT64_LIST`, … Of encrypted types only one
    /// has a name of its own.
    static func text(of type: FieldType) -> String {
        if type == FieldType(.bytes, isEncrypted: true) { return "ENCRYPTED_BYTES" }
        return type.isList ? type.scalar.tag + "_LIST" : type.scalar.tag
    }

    /// The type's name as reasons spell it: `ENCRYPTED_STRING`, ….
    static func name(of type: FieldType) -> String {
        let plain = FieldType(type.scalar, isList: type.isList)
        return (type.isEncrypted ? "ENCRYPTED_" : "") + Self.text(of: plain)
    }

    /// The types that a client's tag may stand for. The schema decides; a tag can only contradict
    /// it.
    struct Claim: Sendable, Hashable {
        /// The types it can mean, the likeliest first. Empty: any (`LIST` says nothing of
        /// elements).
        var scalars: [ScalarType]
        var isList: Bool
        /// `ENCRYPTED_BYTES`.
        var isEncrypted: Bool

        init(_ scalars: [ScalarType], isList: Bool = false, isEncrypted: Bool = false) {
            self.scalars = scalars
            self.isList = isList
            self.isEncrypted = isEncrypted
        }

        func allows(_ type: FieldType) -> Bool {
            self.isList == type.isList
                && (self.scalars.isEmpty || self.scalars.contains(type.scalar))
        }
    }

    /// Nil for a word no client of CloudKit has.
    static func claim(_ tag: String) -> Claim? {
        switch tag {
        case "LIST", "UNKNOWN_LIST": return Claim([], isList: true)
        case "ENCRYPTED_BYTES": return Claim([.bytes], isEncrypted: true)
        default: break
        }
        let isList = tag.hasSuffix("_LIST")
        let element = isList ? String(tag.dropLast("_LIST".count)) : tag
        return Self.scalars(element).map { Claim($0, isList: isList) }
    }

    private static func scalars(_ word: String) -> [ScalarType]? {
        switch word {
        case "STRING": [.string]
        case "INT64", "INT": [.int64]
        // Written for dates as well.
        case "NUMBER_INT64": [.int64, .timestamp]
        case "DOUBLE", "NUMBER_DOUBLE": [.double]
        case "TIMESTAMP", "DATETIME": [.timestamp]
        case "BYTES", "BYTE": [.bytes]
        case "LOCATION": [.location]
        case "REFERENCE": [.reference]
        case "ASSETID", "ASSET": [.asset]
        default: nil
        }
    }
}
