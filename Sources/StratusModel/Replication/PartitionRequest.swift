/// What can be asked of a partition: a question of a table, or one of a family's enumeration whose
/// questions are no types yet.
package protocol Askable: Sendable {
    associatedtype Response: Sendable
    /// Why the partition says no.
    associatedtype Refusal: Sendable
    /// Of its query.
    static var family: Command.Kind { get }
    func encoded(as principal: Principal) -> Bytes
    /// - Throws: ``PartitionError/refused(_:)`` where the answer is a refusal, and anything else
    ///   where it cannot be read.
    static func answer(decoding body: Bytes) throws -> Response
}

/// What a partition can be told to do, in the same two forms.
package protocol Submittable: Sendable {
    associatedtype Response: Sendable
    associatedtype Refusal: Sendable
    /// Of its command.
    static var family: Command.Kind { get }
    /// The container that its command names where none is meant.
    static var place: ContainerReference { get }
    /// Nil: it is about a container or a partition.
    var namedDatabase: DatabaseID? { get }
    func encoded() -> Bytes
    /// - Throws: as ``Askable/answer(decoding:)``.
    static func outcome(decoding body: Bytes, detail: Bytes) throws -> Response
}

extension Submittable {
    package static var place: ContainerReference {
        ContainerReference(container: "", environment: .production)
    }
    package var namedDatabase: DatabaseID? { nil }

    /// The envelope around it.
    package func enveloped(
        container: ContainerReference = Self.place, identity: RequestIdentity,
        deadlineMilliseconds: Int64, schemaVersion: UInt64 = 0,
        principal: Principal = Principal(kind: .system)
    ) -> Command {
        if let database = self.namedDatabase {
            precondition(database.container == container, "a database of another container")
        }
        return Command(
            kind: Self.family, identity: identity, deadlineMilliseconds: deadlineMilliseconds,
            container: container, schemaVersion: schemaVersion, principal: principal,
            body: self.encoded())
    }
}

/// Why a partition did not answer a question, or did not carry out a command.
package enum PartitionError<Refusal: Sendable>: Error {
    /// Nothing happened and nothing will: safe to send again under a new identity.
    case notExecuted(retryAfter: Duration)
    /// It may have happened. Only the same identity may be sent again.
    case outcomeUnknown
    /// Not every member of the cluster can read it yet. Nothing happened; it is possible once the
    /// upgrade is finalised.
    case upgrading
    /// The partition refuses for a reason that retrying does not cure.
    case refused(Refusal)
    /// One of the two cannot read what the other says.
    case unreadable(String)
}

extension PartitionError: Equatable where Refusal: Equatable {}

extension PartitionError {
    /// An answer that is whole, and none to what was asked.
    package static var otherKind: Self { .unreadable("an answer of another kind") }

    /// The same error to who takes refusals as `say` says them.
    package func map<Other: Sendable>(_ say: (Refusal) -> Other) -> PartitionError<Other> {
        switch self {
        case .notExecuted(let retryAfter): .notExecuted(retryAfter: retryAfter)
        case .outcomeUnknown: .outcomeUnknown
        case .upgrading: .upgrading
        case .refused(let refusal): .refused(say(refusal))
        case .unreadable(let what): .unreadable(what)
        }
    }
}

/// The error of who does not look into refusals: their reason is a text.
package typealias RouteError = PartitionError<String>

extension RouteError {
    package init<Other>(_ error: PartitionError<Other>) {
        self = error.map { "\($0)" }
    }
}
