/// A table of one partition's rows. Keys and rows are bytes; keys are ordered byte by byte.
///
/// The raw value is on disk for ever. A module that adds a table adds it here, with a new number.
package struct Table: Sendable, Hashable, Comparable, RawRepresentable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Applied position, digest, format: owned by StratusStorage, never part of the digest.
    package static let meta = Table(rawValue: 0)
    /// Identities of applied commands and their outcomes: owned by StratusStorage.
    package static let request = Table(rawValue: 1)
    package static let database = Table(rawValue: 2)
    package static let zone = Table(rawValue: 3)
    package static let record = Table(rawValue: 4)
    package static let feed = Table(rawValue: 5)
    package static let index = Table(rawValue: 6)
    package static let reference = Table(rawValue: 7)
    package static let job = Table(rawValue: 8)
    package static let schema = Table(rawValue: 9)
    /// Accounts, sessions, tokens, keys and roles.
    package static let identity = Table(rawValue: 10)
    /// The system partition's: nodes, placement, moves, join tokens, notices.
    package static let system = Table(rawValue: 11)
    /// The mail that this partition has posted to others, and how far it has received from each.
    package static let mail = Table(rawValue: 12)
    /// Assets, their holders, what is shared, uploads, and what ends when.
    package static let asset = Table(rawValue: 15)
    /// The bodies that are named: what this node should have copies of.
    package static let body = Table(rawValue: 16)
    /// The keys of databases, each wrapped under its container's.
    package static let key = Table(rawValue: 17)

    /// Subscriptions, what they watch, and who follows their news.
    package static let subscription = Table(rawValue: 13)
    /// The changes that subscriptions may fire for.
    package static let event = Table(rawValue: 14)

    /// The shares of zones: their people, and who stands where.
    package static let share = Table(rawValue: 18)

    /// Every table there is, in the order of their numbers.
    package static let all: [Table] = [
        .meta, .request, .database, .zone, .record, .feed, .index, .reference, .job, .schema,
        .identity, .system, .mail, .subscription, .event, .asset, .body, .key, .share,
    ]

    /// One more than the highest number: the size of an array that numbers index.
    package static let slotCount = Int(Self.all.map(\.rawValue).max() ?? 0) + 1

    package static func < (one: Self, other: Self) -> Bool { one.rawValue < other.rawValue }
}

package enum ScanStep: Sendable { case next, stop }

/// The rows could not be read or written: a fault of the world, never an answer to a client.
package struct StoreError: Error, Sendable, Equatable, CustomStringConvertible {
    package enum Kind: Sendable, Equatable {
        case full, io, corrupt, busy
        /// A row does not decode: written by a newer version, or damaged.
        case unreadable
    }
    package let kind: Kind
    package let text: String

    package init(_ kind: Kind, _ text: String) {
        self.kind = kind
        self.text = text
    }

    package var description: String { "rows \(self.kind): \(self.text)" }
}

/// A sum of keyed hashes over every row of a partition. Equal rows give equal digests, in any
/// order.
package struct StateDigest: Sendable, Hashable, CustomStringConvertible {
    package var high: UInt64
    package var low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    package static let empty = StateDigest(high: 0, low: 0)

    /// Adds a row's hash; ``subtract(_:)`` takes it out again.
    package mutating func add(_ row: StateDigest) {
        let (low, carry) = self.low.addingReportingOverflow(row.low)
        self.low = low
        self.high = self.high &+ row.high &+ (carry ? 1 : 0)
    }

    package mutating func subtract(_ row: StateDigest) {
        let (low, borrow) = self.low.subtractingReportingOverflow(row.low)
        self.low = low
        self.high = self.high &- row.high &- (borrow ? 1 : 0)
    }

    package var description: String {
        String(self.high, radix: 16) + ":" + String(self.low, radix: 16)
    }
}
