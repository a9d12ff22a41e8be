package import StratusModel

extension Comparator {
    /// The comparator's name as requests spell it.
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

    /// Reads ``wireName``; nil for any other word.
    package init?(wireName: String) {
        guard let comparator = Self.named[wireName] else { return nil }
        self = comparator
    }

    private static let named = Dictionary(
        uniqueKeysWithValues: Self.allCases.map { ($0.wireName, $0) })
}
