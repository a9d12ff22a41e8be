import StratusCoding
import StratusModel

// A reference's row in the reference table: varint, the tag of the save that first wrote it, or
// that stated it again while a cascade of an earlier target of the name was under way. A target's
// count row: varint DELETE_SELF referrers, varint VALIDATE referrers, varint children, varint those of
// them that do not go along with it. A child's row is as that of a reference. A record's own place in
// the tree is a `TreeRow`.

/// How a row among the references of a record says that another record belongs to it. The raw value
/// is in keys for ever.
enum ReferenceKind: UInt8, Hashable {
    case deleteSelf = 1
    case validate = 2
    /// A child, which stays if the parent goes: so the parent may not go.
    case child = 0xC1
    /// A child that also refers to its parent by DELETE_SELF.
    case childThatGoes = 0xC2

    init(_ action: Reference.Action) {
        switch action {
        case .none: preconditionFailure("references of action NONE are not tracked")
        case .deleteSelf: self = .deleteSelf
        case .validate: self = .validate
        }
    }
}

/// A reference that the state acts on, seen from the record that holds it.
struct ActingReference: Hashable, Comparable {
    var target: String
    var action: Reference.Action

    static func < (one: Self, other: Self) -> Bool {
        (one.action.rawValue, one.target) < (other.action.rawValue, other.target)
    }

    /// Returns the elements of `whole` that are not in `part`. Both are sorted.
    static func subtract(_ part: [Self], from whole: [Self]) -> [Self] {
        if part.isEmpty || whole.isEmpty { return whole }
        var rest = part[...]
        return whole.filter { reference in
            while let first = rest.first, first < reference { rest.removeFirst() }
            return rest.first != reference
        }
    }
}

/// The number of records that refer to a target so that the state must act on it. No row: none.
struct ReferrerCounts: Equatable {
    var deleteSelf: UInt64 = 0
    var validate: UInt64 = 0
    /// Records of which it is the parent, and those of them that do not go along with it.
    var children: UInt64 = 0
    var stayingChildren: UInt64 = 0

    var isEmpty: Bool { self == ReferrerCounts() }

    init() {}

    func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 8)
        writer.write(varint: self.deleteSelf)
        writer.write(varint: self.validate)
        writer.write(varint: self.children)
        writer.write(varint: self.stayingChildren)
        return writer.bytes
    }

    init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        self.deleteSelf = try reader.varint()
        self.validate = try reader.varint()
        self.children = try reader.varint()
        self.stayingChildren = try reader.varint()
        try reader.finish()
    }
}

extension Record {
    var actingReferences: [ActingReference] { self.fields.actingReferences }
}

extension [Field] {
    /// The references that the state acts on: each (target, action) once, sorted.
    var actingReferences: [ActingReference] {
        var found: [ActingReference] = []
        for field in self { field.value.collectActing(into: &found) }
        if found.count < 2 { return found }
        found.sort()
        var unique: [ActingReference] = []
        for reference in found where unique.last != reference { unique.append(reference) }
        return unique
    }
}

extension FieldValue {
    fileprivate func collectActing(into found: inout [ActingReference]) {
        switch self {
        case .scalar(.reference(let reference)) where reference.action != .none:
            found.append(
                ActingReference(target: reference.recordName, action: reference.action))
        case .list(.reference, let scalars):
            for case .reference(let reference) in scalars where reference.action != .none {
                found.append(
                    ActingReference(target: reference.recordName, action: reference.action))
            }
        default: break
        }
    }

    /// Whether a reference in here points outside `zone`.
    func leaves(_ zone: ZoneID, actingOnly: Bool) -> Bool {
        func leaves(_ scalar: Scalar) -> Bool {
            guard case .reference(let reference) = scalar else { return false }
            return reference.zone != zone && !(actingOnly && reference.action == .none)
        }
        return switch self {
        case .scalar(let scalar): leaves(scalar)
        case .list(.reference, let scalars): scalars.contains(where: leaves)
        default: false
        }
    }
}
