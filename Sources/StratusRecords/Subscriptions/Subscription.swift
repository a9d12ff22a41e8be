package import StratusModel
import StratusQuery

/// A subscription as its owner saved it: what it fires for, and what a notification carries.
package struct Subscription: Sendable, Equatable {
    package enum Kind: UInt8, Sendable, CaseIterable {
        /// A record matches a query.
        case query = 1
        /// Anything changed in one zone.
        case zone = 2
        /// Anything changed in any custom zone.
        case database = 3
    }

    /// The changes that a query subscription fires for. The raw values are on disk for ever.
    package struct Reasons: OptionSet, Sendable, Hashable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }

        package static let created = Reasons(rawValue: 1)
        package static let updated = Reasons(rawValue: 2)
        package static let deleted = Reasons(rawValue: 4)
        package static let all: Reasons = [.created, .updated, .deleted]
    }

    package static let idLengthMax = 255
    /// The most that the content of one subscription may take.
    package static let sizeMax = 16 << 10
    /// The most that all rows of one owner in one database may take: a look for news reads them.
    package static let ownSizeMax = 1 << 20
    /// The most operands that the filters of one owner in one database may have: each event is
    /// compared with them. See `RecordFilter.operandCount`.
    package static let ownOperandCountMax = 16_000

    /// 1…255 bytes without control characters; unique for its owner and database.
    package var id: String
    package var kind: Kind
    /// The zone of a zone subscription, or the one zone of a query; nil: all zones.
    package var zone: String?
    /// The query's record type and filters; nil for other kinds.
    package var predicate: RecordPredicate?
    /// Of a query only.
    package var reasons: Reasons
    /// Whether the first notification that is taken deletes the subscription.
    package var firesOnce: Bool
    /// The record fields that notifications carry, sorted, no name twice.
    package var fields: [String]
    /// The dictionary that answers repeat: a JSON object without the ID. Nothing here reads it.
    package var content: Bytes

    package init(
        _ id: String, _ kind: Kind, zone: String? = nil, predicate: RecordPredicate? = nil,
        reasons: Reasons = [], firesOnce: Bool = false, fields: [String] = [], content: Bytes
    ) {
        self.id = id
        self.kind = kind
        self.zone = zone
        self.predicate = predicate
        self.reasons = reasons
        self.firesOnce = firesOnce
        self.fields = fields
        self.content = content
    }

    /// Whether the parts fit together and stay within the bounds. A command that breaks this is
    /// malformed.
    var isSound: Bool {
        guard (1...Self.idLengthMax).contains(self.id.utf8.count),
            !self.id.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }),
            self.content.count <= Self.sizeMax, self.fields.count <= 200,
            zip(self.fields, self.fields.dropFirst()).allSatisfy({ $0 < $1 })
        else { return false }
        switch self.kind {
        case .query:
            return self.predicate != nil && !self.reasons.isEmpty
                && Reasons.all.isSuperset(of: self.reasons)
        case .zone: return self.zone != nil && self.predicate == nil && self.reasons.isEmpty
        case .database: return self.zone == nil && self.predicate == nil && self.reasons.isEmpty
        }
    }

    var operandCount: Int {
        self.predicate?.filters.reduce(0) { $0 + $1.operandCount } ?? 0
    }

    /// Whether it fires for changes of a zone as such.
    var watchesZones: Bool { self.kind != .query }
}

/// A place in a database's news: through an event, or within it through one subscription's.
package struct NewsPosition: Sendable, Hashable, Comparable {
    /// The number of an event.
    package var number: UInt64
    /// The subscription of that event that was the last one taken; empty: all of the events through
    /// this number.
    package var subscription: String

    package init(number: UInt64, subscription: String = "") {
        self.number = number
        self.subscription = subscription
    }

    package static func < (one: Self, other: Self) -> Bool {
        if one.number != other.number { return one.number < other.number }
        // Within an event "all" is the end.
        if other.subscription.isEmpty { return !one.subscription.isEmpty }
        return !one.subscription.isEmpty && one.subscription.precedes(other.subscription)
    }
}

extension String {
    /// The order of rows' keys: by bytes. Swift's own order takes texts for equal that are not the
    /// same bytes.
    func precedes(_ other: String) -> Bool {
        self.utf8.lexicographicallyPrecedes(other.utf8)
    }
}

/// Who follows a database's news.
package enum NewsFollower: UInt8, Sendable, Hashable {
    /// A poll token: a page of a browser asks.
    case poll = 1
    /// A device of a push provider: the leader of the partition finds what it has not been told.
    case device = 2
}

/// A change as subscriptions see it.
package enum NewsEvent: Sendable, Equatable {
    /// The zone has changed, through this tag.
    case zone(String, ChangeTag)
    /// A record was made or changed, and is given as it was after; or was deleted, and is given as
    /// it was before. It has the fields that subscriptions of its type name; `omitted` are those
    /// among them that were too large to keep.
    case record(Subscription.Reasons, Record, omitted: [String])
}
