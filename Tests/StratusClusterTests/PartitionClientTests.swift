import StratusCluster
import StratusDoubles
import StratusModel
import StratusRuntime
import Synchronization
import Testing

/// The one way to the partitions: its errors, its times, and what it counts.
struct PartitionClientTests {
    private struct No: Error, Equatable {}

    /// Asks for a body of a size; a partition that answers nothing refuses.
    private struct Question: Askable {
        typealias Refusal = No
        static var family: Command.Kind { .reference }
        func encoded(as principal: Principal) -> Bytes { Bytes(principal.userRecordName.utf8) }
        static func answer(decoding body: Bytes) throws -> Int {
            if body.isEmpty { throw PartitionError.refused(No()) }
            guard body[0] == 1 else { throw WrongVersion() }
            return body.count
        }
    }

    private struct Change: Submittable {
        typealias Refusal = No
        static var family: Command.Kind { .reference }
        var namedDatabase: DatabaseID?
        func encoded() -> Bytes { [7] }
        static func outcome(decoding body: Bytes, detail: Bytes) throws -> Int {
            try Question.answer(decoding: body)
        }
    }

    private struct WrongVersion: Error {}

    /// A router of one partition in process.
    private final class Partition: PartitionRouter {
        let fault = Mutex<RouteError?>(nil)
        let says = Mutex<Bytes>([1])
        let verdict = Mutex(Outcome.Verdict.decided)
        let command = Mutex<(Command, deadline: MonotonicTime, mayRunLater: Bool)?>(nil)
        let query = Mutex<(Query, deadline: MonotonicTime)?>(nil)

        func submit(
            _ command: Command, to address: PartitionAddress, deadline: MonotonicTime,
            mayRunLater: Bool
        ) async throws(RouteError) -> Outcome {
            self.command.withLock { $0 = (command, deadline, mayRunLater) }
            if let fault = self.fault.withLock({ $0 }) { throw fault }
            return Outcome(self.verdict.withLock { $0 }, body: self.says.withLock { $0 })
        }

        func read(_ query: Query, at address: PartitionAddress, deadline: MonotonicTime)
            async throws(RouteError) -> QueryAnswer
        {
            self.query.withLock { $0 = (query, deadline) }
            if let fault = self.fault.withLock({ $0 }) { throw fault }
            return QueryAnswer(body: self.says.withLock { $0 })
        }

        func hasPartition(_ group: GroupID) -> Bool { group.raw == 1 }
    }

    private let world = SimulatedWorld(seed: 3)
    private let partition = Partition()
    private var client: PartitionClient { PartitionClient(self.partition, in: self.world) }
    private static let key = PartitionAddress.account("a")
    private static let life = Limits().commandDeadline

    private func ask(_ caller: Caller = .system()) async -> Result<Int, PartitionError<No>> {
        do throws(PartitionError<No>) {
            return .success(try await self.client.ask(Question(), at: Self.key, as: caller))
        } catch { return .failure(error) }
    }

    private func submit(
        _ caller: Caller = .system(), within: Duration? = nil
    ) async -> Result<Int, PartitionError<No>> {
        do throws(PartitionError<No>) {
            return .success(
                try await self.client.submit(Change(), at: Self.key, as: caller, within: within))
        } catch { return .failure(error) }
    }

    // MARK: Errors

    @Test(
        arguments: [
            (
                RouteError.notExecuted(retryAfter: .seconds(7)),
                PartitionError.notExecuted(
                    retryAfter: .seconds(7))
            ),
            (.outcomeUnknown, .outcomeUnknown), (.upgrading, .upgrading),
            (.refused("too far away"), .unreadable("too far away")),
            (.unreadable("x"), .unreadable("x")),
        ] as [(RouteError, PartitionError<String>)])
    func `what the router says is told as it is`(
        _ fault: RouteError, _ told: PartitionError<String>
    ) async {
        self.partition.fault.withLock { $0 = fault }
        let expected: PartitionError<No> = told.map { _ in No() }
        #expect(await self.ask() == .failure(expected))
        #expect(await self.submit() == .failure(expected))
    }

    @Test func `a partition's refusal is of its own type, and a text for who asks plainly`()
        async
    {
        self.partition.says.withLock { $0 = [] }
        #expect(await self.ask() == .failure(.refused(No())))
        #expect(await self.submit() == .failure(.refused(No())))
        await #expect(throws: RouteError.refused("No()")) {
            try await self.client.plain.ask(Question(), at: Self.key)
        }
    }

    @Test func `what cannot be read is said so, by either side`() async {
        self.partition.says.withLock { $0 = [9] }
        for answer in [await self.ask(), await self.submit()] {
            guard case .failure(.unreadable) = answer else {
                Issue.record("\(answer)")
                continue
            }
        }
        self.partition.says.withLock { $0 = [1] }
        for verdict in [Outcome.Verdict.unreadable, .none] {
            self.partition.verdict.withLock { $0 = verdict }
            #expect(
                await self.submit()
                    == .failure(.unreadable("the partition cannot read the command")))
        }
    }

    @Test func `a command that expired was not executed`() async {
        self.partition.verdict.withLock { $0 = .expired }
        #expect(await self.submit() == .failure(.notExecuted(retryAfter: .seconds(1))))
    }

    // MARK: Times

    @Test func `a command lives for the limit, and its sender waits half a second longer`()
        async throws
    {
        _ = await self.submit()
        let (command, deadline, mayRunLater) = try #require(
            self.partition.command.withLock { $0 })
        let life = Self.life.clampedNanoseconds / 1_000_000
        #expect(command.deadlineMilliseconds == self.world.wallMilliseconds + life)
        #expect(deadline == self.world.now + Self.life + .milliseconds(500))
        #expect(mayRunLater)
        _ = await self.ask()
        #expect(self.partition.query.withLock { $0?.deadline } == self.world.now + Self.life)
    }

    @Test func `a request's own end is waited for, and the command may take longer`()
        async throws
    {
        let caller = Caller.system(until: self.world.now + .seconds(2))
        _ = await self.submit(caller)
        let (command, deadline, _) = try #require(self.partition.command.withLock { $0 })
        let life = Self.life.clampedNanoseconds / 1_000_000
        #expect(command.deadlineMilliseconds == self.world.wallMilliseconds + life)
        #expect(deadline == self.world.now + .seconds(2))
        _ = await self.ask(caller)
        #expect(self.partition.query.withLock { $0?.deadline } == self.world.now + .seconds(2))
    }

    @Test func `a job says how long its command lives`() async throws {
        _ = await self.submit(within: .seconds(5))
        let (command, deadline, _) = try #require(self.partition.command.withLock { $0 })
        #expect(command.deadlineMilliseconds == self.world.wallMilliseconds + 5_000)
        #expect(deadline == self.world.now + .milliseconds(5_500))
    }

    @Test func `a signed command keeps its deadline, and does not run later`() async throws {
        _ = await self.submit(.system().fixed(by: 1_234), within: .seconds(5))
        let (command, _, mayRunLater) = try #require(self.partition.command.withLock { $0 })
        #expect(command.deadlineMilliseconds == 1_234)
        #expect(!mayRunLater)
    }

    // MARK: Envelopes, rooms and turns

    @Test func `a command names its database's container, else the caller's, else its own`()
        async throws
    {
        let shelves = ContainerReference(container: "shelves", environment: .development)
        let lamps = ContainerReference(container: "lamps", environment: .development)
        let database = DatabaseID(container: shelves, scope: .public, owner: "")
        func container(_ change: Change, _ caller: Caller) async throws -> ContainerReference? {
            _ = try await self.client.submit(change, at: Self.key, as: caller)
            return self.partition.command.withLock { $0?.0.container }
        }
        #expect(
            try await container(Change(namedDatabase: database), .system(in: lamps)) == shelves)
        #expect(try await container(Change(), .system(in: lamps)) == lamps)
        #expect(try await container(Change(), .system()) == Change.place)
    }

    @Test func `an answer is counted in its caller's room, and one without room is not given`()
        async
    {
        let size = AnswerBudget.freeSizeMax + 1
        let budget = AnswerBudget(ByteCount(size))
        self.partition.says.withLock { $0 = Bytes(repeating: 1, count: size) }
        var caller = Caller.system()
        let room = AnswerRoom(of: budget)
        caller.room = room
        #expect(await self.ask(caller) == .success(size))
        #expect(budget.size == size)
        #expect(await self.ask(caller) == .failure(.notExecuted(retryAfter: .seconds(1))))
        let other = room.another()
        other.take(over: room)
        room.clear()
        #expect(budget.size == size)
        other.clear()
        #expect(budget.size == 0)
    }

    @Test func `a turn is left before the wait, and taken for a large answer`() async {
        let work = LongWork()
        var caller = Caller.system()
        let turn = LongWork.Turn(at: work, for: "a")
        caller.turn = turn
        #expect(turn.takeAtOnce())
        #expect(await self.ask(caller) == .success(1))
        let other = LongWork.Turn(at: work, for: "b")
        #expect(other.takeAtOnce(), "the turn was not left")
        other.leave()
        self.partition.says.withLock { $0 = Bytes(repeating: 1, count: LongWork.sizeMin) }
        #expect(await self.ask(caller) == .success(LongWork.sizeMin))
        #expect(!other.takeAtOnce(), "the turn was not taken")
    }
}
