package import StratusModel

/// One operation of `records/modify`, complete: whatever the server draws was drawn by the gateway.
package struct RecordOperation: Sendable, Hashable {
    /// CloudKit's operation types. The raw value is in the log for ever.
    package enum Kind: UInt8, Sendable, Hashable, CaseIterable {
        case create = 1
        case update = 2
        case forceUpdate = 3
        case replace = 4
        case forceReplace = 5
        case delete = 6
        case forceDelete = 7

        package var isDelete: Bool { self == .delete || self == .forceDelete }
        /// Compares the client's change tag with the stored one.
        package var checksTag: Bool { self == .update || self == .replace || self == .delete }
        /// Makes the record where it is missing.
        package var createsMissing: Bool {
            self == .create || self == .forceUpdate || self == .forceReplace
        }
        /// Keeps the fields it does not mention.
        package var merges: Bool { self == .update || self == .forceUpdate }
    }

    /// A change of the record's place in its sharing hierarchy.
    package enum ParentChange: Sendable, Hashable {
        /// Not mentioned: kept by a merge, cleared by a replacement.
        case unmentioned
        case cleared
        case set(String)
    }

    package var kind: Kind
    /// Drawn by the gateway where the client gave none.
    package var recordName: String
    package var recordType: String?
    /// The client's text, compared byte for byte with the stored tag's.
    package var changeTag: String?
    /// Fields to set, sorted by name, no name twice. The gateway has coerced them to the schema.
    package var fields: [Field]
    /// Fields to clear, sorted, none of them in `fields`.
    package var clearedFields: [String]
    package var parent: ParentChange
    /// The short GUID to give the record if it has none yet; nil: none was asked for.
    package var drawnShortGUID: ShareLink?
    /// What a save of a share says of it; nil: the operation is of no share, or deletes one.
    package var share: ShareDraft?
    /// The reservations that other buckets granted for the references that this operation makes.
    package var reservations: [ReferenceReservation]

    /// Sorts `fields` and `clearedFields`. Of two fields with one name the later counts, and
    /// setting beats clearing.
    package init(
        _ kind: Kind, recordName: String, recordType: String? = nil, changeTag: String? = nil,
        fields: [Field] = [], clearedFields: [String] = [], parent: ParentChange = .unmentioned,
        drawnShortGUID: ShareLink? = nil, share: ShareDraft? = nil,
        reservations: [ReferenceReservation] = []
    ) {
        self.kind = kind
        self.recordName = recordName
        self.recordType = recordType
        self.changeTag = changeTag
        self.fields = Self.sortedFields(fields)
        self.clearedFields = []
        self.parent = parent
        self.drawnShortGUID = drawnShortGUID
        self.share = share
        self.reservations = reservations
        var set = self.fields[...]
        for name in clearedFields.sorted() where self.clearedFields.last != name {
            while let field = set.first, field.name < name { set.removeFirst() }
            if set.first?.name != name { self.clearedFields.append(name) }
        }
    }

    private static func sortedFields(_ fields: [Field]) -> [Field] {
        let isSorted = zip(fields, fields.dropFirst()).allSatisfy { $0.name < $1.name }
        if isSorted { return fields }
        var sorted: [Field] = []
        sorted.reserveCapacity(fields.count)
        // The sort is stable: of equal names the client's last stands last, and wins.
        for field in fields.sorted(by: { $0.name < $1.name }) {
            if sorted.last?.name == field.name { sorted.removeLast() }
            sorted.append(field)
        }
        return sorted
    }
}
