import StratusModel

/// Why a query cannot be answered as asked, in CloudKit's words.
package enum QueryRefusal: Error, Sendable, Hashable {
    /// The schema has no such type.
    case typeUnknown(String)
    /// The text is the answer's `reason`.
    case invalid(String)
    /// The index that the query needs is being built.
    case indexBuilding

    package var reason: String {
        switch self {
        case .typeUnknown(let type): "Did not find record type: \(type)"
        case .invalid(let reason): reason
        case .indexBuilding: "an index is being built"
        }
    }
}

extension QueryRefusal {
    enum Need: String {
        case queryable, sortable, searchable
    }

    static func fieldUnknown(_ field: String) -> QueryRefusal {
        .invalid("Unknown field '\(field)'")
    }

    static func notMarked(_ field: String, _ need: Need) -> QueryRefusal {
        .invalid("Field '\(field)' is not marked \(need.rawValue)")
    }

    static func comparatorUnavailable(
        _ field: String, _ type: FieldType, _ comparator: Comparator
    ) -> QueryRefusal {
        .invalid(
            "Field '\(field)' has a value type of \(Self.name(of: type)) and cannot be queried"
                + " using filter type \(comparator.wireName)")
    }

    static func sortUnavailable(_ field: String, _ type: FieldType) -> QueryRefusal {
        .invalid(
            "Field '\(field)' has a value type of \(Self.name(of: type)) and cannot be sorted by")
    }

    static func valueInvalid(_ type: ScalarType, isList: Bool = false) -> QueryRefusal {
        .invalid("Invalid value, expected type \(type.tag)\(isList ? "_LIST" : "").")
    }

    static func distanceMissing(_ comparator: Comparator) -> QueryRefusal {
        .invalid("Filter type \(comparator.wireName) on a location needs a distance")
    }

    static func tooManyOperands(_ comparator: Comparator, _ limit: Int) -> QueryRefusal {
        .invalid("Filter type \(comparator.wireName) has more than \(limit) values")
    }

    static func tooManyZones(_ limit: Int) -> QueryRefusal {
        .invalid("More than \(limit) zones to sort records of: ask in one zone, or without a sort")
    }

    package static func tooManyZones(toAsk limit: Int) -> QueryRefusal {
        .invalid("More than \(limit) zones: ask in one zone")
    }

    static let tooManyPlaces = QueryRefusal.invalid(
        "More places at about one distance than one page may read: ask for fewer with a filter")

    package static let markerInvalid = QueryRefusal.invalid("Invalid continuation marker")

    private static func name(of type: FieldType) -> String {
        (type.isEncrypted ? "ENCRYPTED_" : "") + type.scalar.tag + (type.isList ? "_LIST" : "")
    }
}
