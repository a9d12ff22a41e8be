/// A zone: its name, and whose private database holds it (empty for the public database).
package struct ZoneID: Sendable, Hashable, Comparable {
    package var name: String
    package var owner: String

    package init(name: String, owner: String) {
        self.name = name
        self.owner = owner
    }

    package static let defaultName = "_defaultZone"
    package var isDefault: Bool { self.name == Self.defaultName }

    /// The zone of a private database that holds its key-value store.
    package static let keyValueName = "_kv"
    /// The zone of a private database that holds its documents.
    package static let documentsName = "_documents"

    /// Whether a service of its own keeps what is in the zone. No operation on records or zones
    /// sees such a zone.
    package static func isReserved(_ name: String) -> Bool {
        name == Self.keyValueName || name == Self.documentsName
    }

    package var isReserved: Bool { Self.isReserved(self.name) }

    package static func < (one: Self, other: Self) -> Bool {
        (one.owner, one.name) < (other.owner, other.name)
    }
}

/// 64 bits drawn when a zone is created: a zone deleted and made again is another zone.
package struct ZoneIncarnation: Sendable, Hashable {
    package var raw: UInt64
    package init(_ raw: UInt64) { self.raw = raw }
}

/// A record's revision in its zone: grows with every write, shown to clients in base 36.
package struct ChangeTag: Sendable, Hashable, Comparable {
    package var raw: UInt64
    package init(_ raw: UInt64) { self.raw = raw }

    package static func < (one: Self, other: Self) -> Bool { one.raw < other.raw }

    package var text: String { String(self.raw, radix: 36) }

    /// Nil for text no change tag ever had; such a tag matches no record.
    package init?(text: String) {
        guard let raw = UInt64(text, radix: 36), String(raw, radix: 36) == text else { return nil }
        self.raw = raw
    }
}

/// Rules for names that clients choose.
package enum NameRules {
    /// Record names: 1…`limit` ASCII characters without controls, not starting with `_`
    /// (names that do are the system's: users).
    package static func isRecordName(_ name: String, limit: Int) -> Bool {
        Self.isPrintable(name, limit: limit) && name.utf8.first != UInt8(ascii: "_")
    }

    /// Whether a reference may point at `name`: a record name, or a user's.
    package static func isReferenceTarget(_ name: String, limit: Int) -> Bool {
        Self.isPrintable(name, limit: limit)
    }

    /// Whether a name has the form of a user's: an underscore and 32 lower-case digits.
    package static func isUserRecordName(_ name: String) -> Bool {
        name.utf8.count == 33 && name.utf8.first == UInt8(ascii: "_")
            && name.utf8.dropFirst().allSatisfy {
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
                    || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
            }
    }

    /// Custom zone names follow the same rule.
    package static func isCustomZoneName(_ name: String, limit: Int) -> Bool {
        Self.isRecordName(name, limit: limit)
    }

    /// `[A-Za-z][A-Za-z0-9_]*`: record types and fields.
    package static func isIdentifier(_ name: String, limit: Int) -> Bool {
        guard let first = name.utf8.first, name.utf8.count <= limit, Self.isLetter(first) else {
            return false
        }
        return name.utf8.allSatisfy {
            Self.isLetter($0) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
                || $0 == UInt8(ascii: "_")
        }
    }

    private static func isPrintable(_ name: String, limit: Int) -> Bool {
        !name.isEmpty && name.utf8.count <= limit
            && name.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
    }
}
