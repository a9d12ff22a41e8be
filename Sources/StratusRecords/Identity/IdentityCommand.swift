package import StratusModel

/// Changes to rows of one home: all of them or none. The body of a `Command` of kind `.identity`.
///
/// A gateway reads rows, decides, and sends what it decided together with what it relied on: the
/// revisions. If somebody was faster, nothing happens and it decides again. What must be exact
/// under any number of gateways at once, counting tries, is counted here.
package struct IdentityCommand: Sendable, Equatable {
    package enum Condition: Sendable, Equatable {
        case any
        case absent
        case present
        case revision(UInt64)
    }

    package enum Change: Sendable, Equatable {
        case put(body: Bytes, expiresAtMilliseconds: Int64)
        case remove
        /// Nothing but the condition.
        case require
        /// One more try of `limit` within `milliseconds` of the first.
        case count(limit: UInt64, milliseconds: Int64)
    }

    package struct Edit: Sendable, Equatable {
        package var key: IdentityKey
        package var condition: Condition
        package var change: Change

        package init(_ key: IdentityKey, if condition: Condition = .any, _ change: Change) {
            self.key = key
            self.condition = condition
            self.change = change
        }
    }

    package static let editCountMax = 200

    package var edits: [Edit]

    package init(_ edits: [Edit]) { self.edits = edits }
}

/// Rows of who is asking belong to no container's schema.
extension IdentityCommand: Submittable {
    package typealias Refusal = String
    package static var family: Command.Kind { .identity }

    package static func outcome(decoding body: Bytes, detail: Bytes) throws -> IdentityOutcome {
        try IdentityOutcome(decoding: body)
    }
}

package enum IdentityOutcome: Sendable, Equatable {
    /// The rows' new revisions, in the order of the edits; 0 for a removed one. A counter answers
    /// how many tries there were.
    case done([UInt64])
    /// The condition of the edit at this place did not hold: nothing was done.
    case conflict(Int)
    /// A counter is full: nothing was done.
    case limited(retryAfterMilliseconds: Int64)
    /// Too many edits, or rows too large.
    case refused
}

package enum IdentityQuery: Sendable, Equatable {
    case rows([IdentityKey])
    /// Rows of one kind and home by name, after a name; or the last ones, from the end.
    case list(IdentityKey.Kind, home: Bytes, after: Bytes?, limit: Int, descending: Bool = false)

    /// Bytes of rows after which a list's page ends: the row that reaches it is the last.
    package static let listSizeMax = 1 << 20

    package func enveloped() -> Query { Query(kind: .identity, body: self.encoded()) }
}

extension IdentityQuery: Askable {
    package typealias Refusal = String
    package static var family: Command.Kind { .identity }

    package func encoded(as principal: Principal) -> Bytes { self.encoded() }

    package static func answer(decoding body: Bytes) throws -> IdentityAnswer {
        try IdentityAnswer(decoding: body)
    }
}

package enum IdentityAnswer: Sendable, Equatable {
    /// One for each key asked for.
    case rows([IdentityRow?])
    case list([Listed])
    case refused

    package struct Listed: Sendable, Equatable {
        package var name: Bytes
        package var row: IdentityRow

        package init(name: Bytes, row: IdentityRow) {
            self.name = name
            self.row = row
        }
    }
}
