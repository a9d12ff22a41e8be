import StratusModel
import Synchronization
import Testing

@testable import StratusGateway

/// Who has the seat of a token, and who is woken by a change.
@Suite struct PollSeatsTests {
    private static let database = DatabaseID(
        container: ContainerReference(container: "iCloud.x", environment: .development),
        scope: .private, owner: "_me")
    private static let start = MonotonicTime(nanoseconds: 1_000)

    private static func eventually(_ condition: () -> Bool) async throws {
        for _ in 0..<10_000 where !condition() { try await Task.sleep(for: .milliseconds(1)) }
        #expect(condition())
    }

    @Test func `a seat is free when its poll has ended, and the newest of those who wait has it`()
        async throws
    {
        let seats = PollSeats()
        var first = await seats.take([1])
        #expect(first?.isTold == false && seats.count == 1)
        let second = Task { await seats.take([1]) != nil }
        try await Self.eventually { first?.isTold == true }
        let third = Task { await seats.take([1])?.isTold == false }
        // The second gives way to the third.
        #expect(await second.value == false)
        // A poll that is told to end does not sleep.
        await first?.wait(for: .seconds(100))
        first = nil
        #expect(await third.value)
        #expect(seats.count == 0)
    }

    @Test func `a seat counts by the questions of a look`() async throws {
        let seats = PollSeats()
        var seat = await seats.take([1])
        seat?.watch([Self.database])
        #expect(seats.watchCount == 1)
        // Many zones of one database.
        seat?.watch([Self.database], questionCount: 16)
        #expect(seats.watchCount == 16)
        seat?.watch([Self.database], questionCount: 2)
        #expect(seats.watchCount == 2)
        seat = nil
        #expect(seats.watchCount == 0)
    }

    @Test func `a change wakes who watches, before its sleep too, and nobody else`() async throws {
        let seats = PollSeats()
        let seat = try #require(await seats.take([1]))
        let other = try #require(await seats.take([2]))
        seat.watch([Self.database])
        seats.stirred(Self.database, at: Self.start)
        await seat.wait(for: .seconds(100))
        let isWoken = Mutex(false)
        let sleeper = Task {
            await other.wait(for: .seconds(100))
            isWoken.withLock { $0 = true }
        }
        let watcher = Task { await seat.wait(for: .seconds(100)) }
        try await Task.sleep(for: .milliseconds(20))
        seats.stirred(Self.database, at: Self.start)
        await watcher.value
        let wasWoken = isWoken.withLock { $0 }
        #expect(!wasWoken)
        sleeper.cancel()
        await sleeper.value
        // After its patience.
        await seat.wait(for: .milliseconds(5))
    }

    @Test func `each sleep ends after its own patience, whichever began first`() async throws {
        let seats = PollSeats()
        let long = try #require(await seats.take([1]))
        let short = try #require(await seats.take([2]))
        let sleeper = Task { await long.wait(for: .seconds(100)) }
        try await Task.sleep(for: .milliseconds(20))
        for _ in 0..<3 { await short.wait(for: .milliseconds(5)) }
        // As many as end at the same time.
        let others = (3..<40 as Range<UInt8>).map { number in
            Task { await seats.take([number])?.wait(for: .milliseconds(30)) }
        }
        for other in others { await other.value }
        #expect(seats.count == 2)
        sleeper.cancel()
        await sleeper.value
    }

    @Test func `many polls of a database are woken no oftener than they can look`() async throws {
        let seats = PollSeats()
        var all: [PollSeat] = []
        let count = 2 * PollSeats.freeWatcherCount
        for number in 0..<count {
            let seat = try #require(await seats.take([UInt8(number)]))
            seat.watch([Self.database])
            all.append(seat)
        }
        /// How many a change wakes that have looked at the one before.
        func wokenCount(at time: MonotonicTime) async -> Int {
            seats.stirred(Self.database, at: time)
            let count = seats.wokenCount
            if count > 0 { for seat in all { await seat.wait(for: .seconds(100)) } }
            return count
        }
        #expect(await wokenCount(at: Self.start) == count)
        #expect(await wokenCount(at: Self.start + .milliseconds(10)) == 0)
        let rested = Self.start + PollSeats.pausePerWatcher * count
        #expect(await wokenCount(at: rested) == count)
    }
}
