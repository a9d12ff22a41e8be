package import StratusModel
import StratusRuntime

/// The one way to ask a partition or to change it, wherever it is. Nobody else holds the router.
///
/// - A command lives for `limits.commandDeadline`, and its sender waits half a second longer, so
///   that "expired" can arrive. A question waits as long as a command lives.
/// - The router adds the lead of a partition whose time is ahead, but not to a deadline that was
///   fixed elsewhere (``Caller/fixed(by:)``).
/// - A command that expired was not executed.
package final class PartitionClient: Sendable {
    private static let grace = Duration.milliseconds(500)

    private let router: any PartitionRouter
    package let world: any World
    private let patience: Duration
    private let decided: (@Sendable (Outcome) -> Void)?

    /// - Parameter decided: what partitions decided, as it arrives.
    package init(
        _ router: any PartitionRouter, in world: any World, limits: Limits = Limits(),
        decided: (@Sendable (Outcome) -> Void)? = nil
    ) {
        self.router = router
        self.world = world
        self.patience = limits.commandDeadline
        self.decided = decided
    }

    // MARK: Asking

    package func ask<Question: Askable>(
        _ question: Question, at address: PartitionAddress, as caller: Caller,
        within: Duration? = nil
    ) async throws(PartitionError<Question.Refusal>) -> Question.Response {
        let query = Query(kind: Question.family, body: question.encoded(as: caller.principal))
        let end = self.world.now + (within ?? self.patience)
        let deadline = caller.end.map { min($0, end) } ?? end
        caller.turn?.leave()
        let answer: QueryAnswer
        do throws(RouteError) {
            var read = try await self.router.read(query, at: address, deadline: deadline)
            try caller.room?.keep(&read)
            answer = read
        } catch { throw PartitionError<Question.Refusal>(error) }
        await caller.turn?.take(for: answer.body.count)
        do { return try Question.answer(decoding: answer.body) } catch {
            throw PartitionError<Question.Refusal>(reading: error)
        }
    }

    // MARK: Submitting

    /// Returns once the outcome is durable on a majority; the command was then applied exactly
    /// once.
    ///
    /// - Parameter identity: under which it is carried out once, however often it is sent; nil: one
    ///   of its own.
    package func submit<Operation: Submittable>(
        _ operation: Operation, at address: PartitionAddress, as caller: Caller,
        identity: RequestIdentity? = nil, schemaVersion: UInt64 = 0, within: Duration? = nil
    ) async throws(PartitionError<Operation.Refusal>) -> Operation.Response {
        let term = self.term(within: within)
        let command = operation.enveloped(
            container: operation.namedDatabase?.container ?? caller.container ?? Operation.place,
            identity: identity ?? self.world.drawIdentity(),
            deadlineMilliseconds: caller.deadlineMilliseconds ?? term.milliseconds,
            schemaVersion: schemaVersion, principal: caller.principal)
        let deadline = caller.end.map { min($0, term.end) } ?? term.end
        caller.turn?.leave()
        let outcome: Outcome
        do throws(RouteError) {
            outcome = try await self.router.submit(
                command, to: address, deadline: deadline, mayRunLater: caller.mayRunLater)
        } catch { throw PartitionError<Operation.Refusal>(error) }
        await caller.turn?.take(for: outcome.body.count + outcome.detail.count)
        switch outcome.verdict {
        case .decided: break
        case .expired: throw .notExecuted(retryAfter: .seconds(1))
        case .unreadable, .none: throw .unreadable("the partition cannot read the command")
        }
        self.decided?(outcome)
        do {
            return try Operation.outcome(decoding: outcome.body, detail: outcome.detail)
        } catch { throw PartitionError<Operation.Refusal>(reading: error) }
    }

    // MARK: Times and places

    /// Until when a command that is submitted now may be carried out, in wall milliseconds, and
    /// until when its sender waits. For requests of several commands that end together.
    package func term(within life: Duration? = nil) -> (milliseconds: Int64, end: MonotonicTime) {
        let life = life ?? self.patience
        return (
            self.world.wallMilliseconds + life.clampedNanoseconds / 1_000_000,
            self.world.now + (life + Self.grace)
        )
    }

    /// How far some partition is known to be ahead of this node's wall clock: for deadlines that
    /// are fixed before it is known where they count.
    package var leadMilliseconds: Int64 { self.router.leadMilliseconds }

    /// How far the partition that owns a key is.
    package func leadMilliseconds(at key: ShardKey) -> Int64 {
        self.router.leadMilliseconds(at: key)
    }

    /// The level that all nodes of the cluster can read: asked before a command or question is made
    /// in a format that not every level has.
    package var level: ClusterLevel { self.router.level }

    /// The partition that owns a key, for who asks where something lies; nil: there is only one.
    package func group(of key: ShardKey) -> GroupID? { self.router.group(of: key) }

    /// Whether there is a partition of data of this number. They are numbered from 1 without a gap,
    /// and their count never changes.
    package func hasPartition(_ group: GroupID) -> Bool { self.router.hasPartition(group) }
}

extension PartitionError {
    /// What the router says. It knows nothing of refusals.
    fileprivate init(_ error: RouteError) {
        self =
            switch error {
            case .notExecuted(let retryAfter): .notExecuted(retryAfter: retryAfter)
            case .outcomeUnknown: .outcomeUnknown
            case .upgrading: .upgrading
            case .refused(let why), .unreadable(let why): .unreadable(why)
            }
    }

    /// What was thrown while an answer was read.
    fileprivate init(reading error: any Error) {
        self =
            error as? Self ?? .unreadable("what a partition says cannot be read: \(error)")
    }
}
