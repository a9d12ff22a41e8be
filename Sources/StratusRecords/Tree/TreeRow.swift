import StratusCoding
import StratusModel
import StratusRows

/// Where a record stands in the tree of its zone: which record is above it. There is no row for a
/// record without a parent.
struct TreeRow: FormRow, Equatable {
    var parent = ""
    /// The tag of the save that stated the parent.
    var tag: UInt64 = 0
    /// The share of which the record is the root; 0: of none.
    var share: UInt32 = 0

    init() {}

    mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.parent)
        try form.lay(&self.tag)
        try form.lay(&self.share)
    }
}

extension Keys {
    /// Among the references of the record: see ``ReferenceKind`` for those of its children.
    static func tree(_ zone: ZoneNumber, _ name: String) -> Bytes {
        var key = Self.referencePrefix(zone, target: name)
        key.append(0xC0)
        return key
    }
}

/// A record's parent, and how it hangs on it.
struct TreeLink: Equatable {
    let parent: String
    /// Whether the record goes with its parent: it also refers to it by DELETE_SELF.
    let goesAlong: Bool

    /// Nil: the record has no parent.
    init?(of record: Record?) {
        guard let record, let parent = record.parent else { return nil }
        self.parent = parent
        self.goesAlong = record.fields.contains { $0.value.refers(to: parent, .deleteSelf) }
    }

    var kind: ReferenceKind { self.goesAlong ? .childThatGoes : .child }
}

extension FieldValue {
    /// Whether a reference in here points at a record of the zone so.
    func refers(to name: String, _ action: Reference.Action) -> Bool {
        func refers(_ scalar: Scalar) -> Bool {
            guard case .reference(let reference) = scalar else { return false }
            return reference.action == action && reference.recordName == name
        }
        return switch self {
        case .scalar(let scalar): refers(scalar)
        case .list(.reference, let scalars): scalars.contains(where: refers)
        default: false
        }
    }
}
