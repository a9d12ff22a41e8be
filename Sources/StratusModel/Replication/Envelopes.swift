/// The user or key that a command acts for, as the gateway established it.
package struct Principal: Sendable, Hashable {
    package enum Kind: UInt8, Sendable, Hashable {
        /// An API token alone: the role `_world`.
        case anonymous = 0
        /// A signed-in user: the role `_icloud`.
        case user = 1
        /// A server-to-server key, acting as the user who owns it.
        case serverKey = 2
        /// An administrator of the cluster.
        case administrator = 3
        /// Stratus itself: jobs, mail, expiry.
        case system = 4
    }
    package var kind: Kind
    /// The user's record name in the command's container; empty for the kinds that have none.
    package var userRecordName: String
    /// Custom roles the container gave this user, sorted.
    package var roles: [String]

    package init(kind: Kind, userRecordName: String = "", roles: [String] = []) {
        self.kind = kind
        self.userRecordName = userRecordName
        self.roles = roles
    }
}

/// A command that a gateway submits to a partition. Everything random or timed in it was drawn
/// before: applying draws nothing.
package struct Command: Sendable, Equatable {
    /// Which module reads the body. The number is on disk for ever.
    package enum Kind: UInt8, Sendable, Equatable {
        /// The body is a StratusRecords `RecordCommand`.
        case records = 1
        /// The body is a StratusRecords `IdentityCommand`.
        case identity = 2
        /// The body is a StratusPlacement `SystemCommand`.
        case system = 3
        /// The body is a StratusCoding `MailCommand`. Its entry is of kind `.mail`.
        case mail = 4
        /// The body belongs to the reference state that tests replicate.
        case reference = 5
    }
    package var kind: Kind
    package var identity: RequestIdentity
    /// An entry stamped after this applies to nothing. Wall milliseconds.
    package var deadlineMilliseconds: Int64
    package var container: ContainerReference
    package var schemaVersion: UInt64
    package var principal: Principal
    package var body: Bytes

    package init(
        kind: Kind, identity: RequestIdentity, deadlineMilliseconds: Int64,
        container: ContainerReference, schemaVersion: UInt64, principal: Principal, body: Bytes
    ) {
        self.kind = kind
        self.identity = identity
        self.deadlineMilliseconds = deadlineMilliseconds
        self.container = container
        self.schemaVersion = schemaVersion
        self.principal = principal
        self.body = body
    }
}

/// The result of applying a command. The module that owns the command's kind reads the body.
package struct Outcome: Sendable, Equatable {
    package enum Verdict: UInt8, Sendable, Equatable {
        /// Decided by the state; see the body, which may itself be a refusal.
        case decided = 0
        /// The entry was stamped after the command's deadline: the command did nothing and never
        /// will.
        case expired = 1
        /// The command could not be read by this version: nothing was done.
        case unreadable = 2
        /// The entry carries no command (an empty entry of a new leader, a configuration).
        case none = 3
    }
    package var verdict: Verdict
    package var body: Bytes
    /// Details that only the first application can give (saved records whole). They are answered
    /// and never remembered: the outcome of a repeated command has none.
    package var detail: Bytes

    package init(_ verdict: Verdict, body: Bytes = [], detail: Bytes = []) {
        self.verdict = verdict
        self.body = body
        self.detail = detail
    }

    /// The outcome of a command that came too late. It carries the entry's time, from which the
    /// sender can count another deadline.
    package static func expired(at time: HybridTime) -> Self {
        Self(
            .expired,
            body: Bytes(
                (0..<8).map { UInt8(truncatingIfNeeded: time.milliseconds >> (56 - 8 * $0)) }))
    }

    /// In milliseconds since 1970; nil of any other outcome.
    package var expiredAtMilliseconds: Int64? {
        guard self.verdict == .expired, self.body.count == 8 else { return nil }
        return self.body.reduce(0) { $0 << 8 | Int64($1) }
    }
}

/// A read of one partition, in the encoding of the module that owns the kind.
package struct Query: Sendable, Equatable {
    package var kind: Command.Kind
    package var body: Bytes
    package init(kind: Command.Kind, body: Bytes) {
        self.kind = kind
        self.body = body
    }
}

package struct QueryAnswer: Sendable, Equatable {
    package var body: Bytes
    /// Keeps the body's memory counted for as long as somebody holds this. It stays on its node.
    package var share: (any AnyObject & Sendable)?

    package init(body: Bytes) { self.body = body }

    package static func == (one: Self, other: Self) -> Bool { one.body == other.body }
}

/// An entry of the log: a position, a time, and what to do there.
package struct Entry: Sendable, Equatable {
    package enum Kind: UInt8, Sendable, Equatable {
        /// The payload is an encoded ``Command``.
        case command = 1
        /// The payload is an encoded ``Command`` of kind `.mail`. It has no deadline, is later than
        /// the mail it carries, and is applied once by the mail's own numbers.
        case mail = 2
        /// The payload is an encoded ``Configuration``, effective on append.
        case configuration = 3
        /// Nothing: a new leader commits one to learn what is committed.
        case noop = 4
    }
    package var index: LogIndex
    package var term: Term
    package var time: HybridTime
    package var kind: Kind
    package var payload: Bytes

    package init(index: LogIndex, term: Term, time: HybridTime, kind: Kind, payload: Bytes) {
        self.index = index
        self.term = term
        self.time = time
        self.kind = kind
        self.payload = payload
    }
}

/// The term and vote a replica must remember before it answers for them.
package struct HardState: Sendable, Equatable {
    package var term: Term
    package var vote: NodeID?
    package init(term: Term, vote: NodeID?) {
        self.term = term
        self.vote = vote
    }
}

/// The voters of a group. If `incoming` is not empty, the configuration is joint and both
/// majorities count.
package struct Configuration: Sendable, Equatable {
    package var voters: [NodeID]
    package var incoming: [NodeID]
    package var learners: [NodeID]

    package init(voters: [NodeID], incoming: [NodeID] = [], learners: [NodeID] = []) {
        self.voters = voters
        self.incoming = incoming
        self.learners = learners
    }

    package var isJoint: Bool { !self.incoming.isEmpty }
}

/// The point of the log that a snapshot replaces.
package struct SnapshotIdentity: Sendable, Equatable {
    package var index: LogIndex
    package var term: Term
    /// The time of the entry at `index`: a leader that starts from a snapshot must not stamp
    /// anything earlier.
    package var time: HybridTime
    package var configuration: Configuration
    package var digest: StateDigest

    package init(
        index: LogIndex, term: Term, time: HybridTime = .zero, configuration: Configuration,
        digest: StateDigest
    ) {
        self.index = index
        self.term = term
        self.time = time
        self.configuration = configuration
        self.digest = digest
    }
}
