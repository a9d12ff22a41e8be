import StratusCoding
package import StratusModel

/// A scalar as comparisons, index rows and sort orders see it: one meaning for all three.
///
/// Text is folded: `EQUALS` and the orders ignore case. References are their target, whatever the
/// action. Places are a latitude and a longitude, whatever else the client sent.
package enum ComparableValue: Sendable, Hashable {
    case text(Bytes)
    case integer(Int64)
    case real(Double)
    case time(Int64)
    case bytes(Bytes)
    /// A record or user name where the zone is known: system fields.
    case name(Bytes)
    case reference(name: Bytes, zone: ZoneID)
    case place(latitude: Double, longitude: Double)

    /// Nil for assets: nothing compares them.
    package init?(_ scalar: Scalar) {
        switch scalar {
        case .string(let text): self = .text(TextFolding.caseFolded(text))
        case .int64(let value): self = .integer(value)
        case .double(let value): self = .real(value == 0 ? 0 : value)
        case .timestamp(let value): self = .time(value)
        case .bytes(let value): self = .bytes(value)
        case .location(let place):
            self = .place(
                latitude: place.latitude == 0 ? 0 : place.latitude,
                longitude: place.longitude == 0 ? 0 : place.longitude)
        case .reference(let reference):
            self = .reference(name: Bytes(reference.recordName.utf8), zone: reference.zone)
        case .asset: return nil
        }
    }

    /// The value of a system field; nil where the record has none.
    package init?(_ field: SystemField, of record: Record) {
        switch field {
        case .recordName: self = .name(Bytes(record.name.utf8))
        case .createdTimestamp: self = .time(record.created.milliseconds)
        case .modifiedTimestamp: self = .time(record.modified.milliseconds)
        case .createdUserRecordName: self = .name(Bytes(record.created.userRecordName.utf8))
        case .modifiedUserRecordName: self = .name(Bytes(record.modified.userRecordName.utf8))
        case .share:
            guard let share = record.share else { return nil }
            self = .name(Bytes(share.utf8))
        case .parent:
            guard let parent = record.parent else { return nil }
            self = .name(Bytes(parent.utf8))
        }
    }

    /// Negative, zero or positive; nil where the two have no order. Integers and reals compare
    /// exactly.
    package func ordered(to other: ComparableValue) -> Int? {
        switch (self, other) {
        case (.text(let one), .text(let two)), (.bytes(let one), .bytes(let two)),
            (.name(let one), .name(let two)):
            return Self.order(one, two)
        case (.integer(let one), .integer(let two)), (.time(let one), .time(let two)):
            return one < two ? -1 : one == two ? 0 : 1
        case (.real(let one), .real(let two)):
            return one < two ? -1 : one == two ? 0 : 1
        case (.integer(let one), .real(let two)):
            return Self.order(one, two)
        case (.real(let one), .integer(let two)):
            return -Self.order(two, one)
        case (.reference(let one, let zone), .reference(let two, let otherZone)):
            let names = Self.order(one, two)
            if names != 0 || zone == otherZone { return names }
            return zone < otherZone ? -1 : 1
        case (.place(let one, let first), .place(let two, let second)):
            return one == two && first == second
                ? 0 : one < two || (one == two && first < second) ? -1 : 1
        case (.text, _), (.integer, _), (.real, _), (.time, _), (.bytes, _), (.name, _),
            (.reference, _), (.place, _):
            return nil
        }
    }

    package func isEqual(to other: ComparableValue) -> Bool { self.ordered(to: other) == 0 }

    /// The equal value of a number field's own type; nil where none is equal.
    package func aligned(to type: ScalarType) -> ComparableValue? {
        switch (self, type) {
        case (.real(let value), .int64):
            guard value >= -9_223_372_036_854_775_808, value < 9_223_372_036_854_775_808,
                value.rounded(.down) == value
            else { return nil }
            return .integer(Int64(value))
        case (.integer(let value), .double):
            let real = Double(value)
            return Self.order(value, real) == 0 ? .real(real) : nil
        default:
            return self
        }
    }

    private static func order(_ one: Bytes, _ two: Bytes) -> Int {
        Bytes.isOrdered(one, before: two) ? -1 : one == two ? 0 : 1
    }

    /// Exact: a Double cannot hold every Int64.
    private static func order(_ one: Int64, _ two: Double) -> Int {
        if two >= 9_223_372_036_854_775_808 { return -1 }
        if two < -9_223_372_036_854_775_808 { return 1 }
        let whole = Int64(two.rounded(.down))
        if one != whole { return one < whole ? -1 : 1 }
        return two > two.rounded(.down) ? -1 : 0
    }

    /// Appends the bytes that index rows hold: ordered as ``ordered(to:)`` says, but for integers
    /// beside reals (an index has one type) and for what is cut.
    ///
    /// - Parameter home: the zone of the index row; references within it do not repeat it.
    package func append(to key: inout Bytes, home: ZoneID) {
        switch self {
        case .text(let bytes), .bytes(let bytes), .name(let bytes):
            OrderedKey.append(text: bytes, to: &key)
        case .integer(let value), .time(let value):
            OrderedKey.append(value, to: &key)
        case .real(let value):
            OrderedKey.append(value, to: &key)
        case .reference(let name, let zone):
            if zone == home {
                OrderedKey.append(text: name, to: &key)
            } else {
                // Names hold no control characters: 01 stands between what they cannot contain.
                OrderedKey.append(
                    text: name + [1] + Bytes(zone.name.utf8) + [1] + Bytes(zone.owner.utf8),
                    to: &key)
            }
        case .place(let latitude, let longitude):
            OrderedKey.append(latitude, to: &key)
            OrderedKey.append(longitude, to: &key)
        }
    }
}
