/// CloudKit's comparators. The raw value is in stored queries (subscriptions) for ever.
package enum Comparator: UInt8, Sendable, Hashable, CaseIterable {
    case equals = 1
    case notEquals = 2
    case lessThan = 3
    case lessThanOrEquals = 4
    case greaterThan = 5
    case greaterThanOrEquals = 6
    case near = 7
    case containsAllTokens = 8
    case containsAnyTokens = 9
    case `in` = 10
    case notIn = 11
    case beginsWith = 12
    case notBeginsWith = 13
    case listContains = 14
    case notListContains = 15
    case listContainsAll = 16
    case notListContainsAll = 17
    case listContainsAny = 18
    case notListContainsAny = 19
    case listMemberBeginsWith = 20
    case notListMemberBeginsWith = 21
}

/// The fields every record has, filterable and sortable like declared ones.
package enum SystemField: UInt8, Sendable, Hashable, CaseIterable {
    case recordName = 1
    case createdTimestamp = 2
    case modifiedTimestamp = 3
    case createdUserRecordName = 4
    case modifiedUserRecordName = 5
    case share = 6
    case parent = 7

    /// The field's name in the schema language and in `fieldName`.
    package var mappedName: String {
        switch self {
        case .recordName: "___recordID"
        case .createdTimestamp: "___createTime"
        case .modifiedTimestamp: "___modTime"
        case .createdUserRecordName: "___createdBy"
        case .modifiedUserRecordName: "___modifiedBy"
        case .share: "___share"
        case .parent: "___parent"
        }
    }

    package var type: ScalarType {
        switch self {
        case .createdTimestamp, .modifiedTimestamp: .timestamp
        case .recordName, .createdUserRecordName, .modifiedUserRecordName, .share, .parent:
            .reference
        }
    }
}

package enum FieldSelector: Sendable, Hashable {
    case field(String)
    case system(SystemField)
    /// Token search over every searchable string field of the type.
    case anySearchable
}

package struct RecordFilter: Sendable, Hashable {
    package var field: FieldSelector
    package var comparator: Comparator
    package var operand: FieldValue
    /// Metres, for the comparators on locations.
    package var distance: Double?

    package init(
        field: FieldSelector, comparator: Comparator, operand: FieldValue, distance: Double? = nil
    ) {
        self.field = field
        self.comparator = comparator
        self.operand = operand
        self.distance = distance
    }
}

package struct RecordSort: Sendable, Hashable {
    package var field: FieldSelector
    package var ascending: Bool
    /// Order by distance from here, for location fields.
    package var relativeLocation: Location?

    package init(field: FieldSelector, ascending: Bool = true, relativeLocation: Location? = nil) {
        self.field = field
        self.ascending = ascending
        self.relativeLocation = relativeLocation
    }
}

/// The condition and order of a `records/query`: every filter must hold, and the sorts apply in
/// turn.
package struct RecordPredicate: Sendable, Hashable {
    package var recordType: String
    package var filters: [RecordFilter]
    package var sorts: [RecordSort]

    package init(recordType: String, filters: [RecordFilter] = [], sorts: [RecordSort] = []) {
        self.recordType = recordType
        self.filters = filters
        self.sorts = sorts
    }
}
