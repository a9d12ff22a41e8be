package import StratusModel

/// Why a query cannot be answered as asked, in CloudKit's words.
package enum QueryRefusal: Error, Sendable, Hashable {
    /// The schema has no such type.
    case typeUnknown(String)
    /// The text is the answer's `reason`.
    case invalid(String)

    package var reason: String {
        switch self {
        case .typeUnknown(let type): "Did not find record type: \(type)"
        case .invalid(let reason): reason
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

    static let markerInvalid = QueryRefusal.invalid("Invalid continuation marker")

    private static func name(of type: FieldType) -> String {
        (type.isEncrypted ? "ENCRYPTED_" : "") + type.scalar.tag + (type.isList ? "_LIST" : "")
    }
}

extension Comparator {
    /// As requests spell it.
    package var wireName: String {
        switch self {
        case .equals: "EQUALS"
        case .notEquals: "NOT_EQUALS"
        case .lessThan: "LESS_THAN"
        case .lessThanOrEquals: "LESS_THAN_OR_EQUALS"
        case .greaterThan: "GREATER_THAN"
        case .greaterThanOrEquals: "GREATER_THAN_OR_EQUALS"
        case .near: "NEAR"
        case .containsAllTokens: "CONTAINS_ALL_TOKENS"
        case .containsAnyTokens: "CONTAINS_ANY_TOKENS"
        case .in: "IN"
        case .notIn: "NOT_IN"
        case .beginsWith: "BEGINS_WITH"
        case .notBeginsWith: "NOT_BEGINS_WITH"
        case .listContains: "LIST_CONTAINS"
        case .notListContains: "NOT_LIST_CONTAINS"
        case .listContainsAll: "LIST_CONTAINS_ALL"
        case .notListContainsAll: "NOT_LIST_CONTAINS_ALL"
        case .listContainsAny: "LIST_CONTAINS_ANY"
        case .notListContainsAny: "NOT_LIST_CONTAINS_ANY"
        case .listMemberBeginsWith: "LIST_MEMBER_BEGINS_WITH"
        case .notListMemberBeginsWith: "NOT_LIST_MEMBER_BEGINS_WITH"
        }
    }
}
