import Glibc
import StratusModel
import Synchronization
import Testing

@testable import StratusRuntime

@Suite struct ExecutorTests {
    private actor Resident {
        let loop: EventLoop
        var visits = 0
        init(_ loop: EventLoop) { self.loop = loop }
        nonisolated var unownedExecutor: UnownedSerialExecutor {
            self.loop.asUnownedSerialExecutor()
        }
        func visit() -> Bool {
            self.visits += 1
            return self.loop.isCurrent
        }
    }

    private actor Blocking {
        let worker: WorkerThread
        var sum = 0
        init(_ worker: WorkerThread) { self.worker = worker }
        nonisolated var unownedExecutor: UnownedSerialExecutor {
            self.worker.asUnownedSerialExecutor()
        }
        func add(_ number: Int) -> Bool {
            self.sum += number
            return self.worker.isCurrent
        }
        func total() -> Int { self.sum }
    }

    @Test func `a task comes back to the loop it prefers after every await`() async {
        let loop = EventLoop(name: "test")
        let worker = WorkerThread(name: "worker")
        defer { loop.stop() }
        defer { worker.stop() }
        let blocking = Blocking(worker)
        let resident = Resident(loop)
        let isAlwaysHome = await Task(executorPreference: loop) {
            var isAlwaysHome = loop.isCurrent
            for number in 0..<100 {
                isAlwaysHome = await blocking.add(number) && loop.isCurrent && isAlwaysHome
                isAlwaysHome = await resident.visit() && loop.isCurrent && isAlwaysHome
                await Task.yield()
                isAlwaysHome = loop.isCurrent && isAlwaysHome
            }
            return isAlwaysHome
        }.value
        #expect(isAlwaysHome)
        #expect(await blocking.total() == 4_950)
    }

    @Test func `what many threads submit runs once each and in each sender's order`() async {
        let loop = EventLoop(name: "test")
        defer { loop.stop() }
        let senders = (0..<4).map { WorkerThread(name: "sender-\($0)") }
        defer { for sender in senders { sender.stop() } }
        let seen = Mutex<[[Int]]>(Array(repeating: [], count: senders.count))
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            let remaining = Atomic(senders.count * 1_000)
            Self.flood(loop, from: senders) { sender, number in
                seen.withLock { $0[sender].append(number) }
                if remaining.subtract(1, ordering: .relaxed).newValue == 0 { done.resume() }
            }
        }
        #expect(seen.withLock { $0 } == senders.map { _ in Array(0..<1_000) })
    }

    @Test func `a worker that yields has a smaller share of the processor than the others`() async {
        let workers = [false, true].map { WorkerThread(name: "share", yields: $0) }
        defer { for worker in workers { worker.stop() } }
        var shares: [Int32] = []
        for worker in workers {
            shares.append(await worker.run { getpriority(Int32(PRIO_PROCESS.rawValue), 0) })
        }
        #expect(shares[1] == min(shares[0] + 10, 19))
    }

    private static func flood(
        _ loop: EventLoop, from senders: [WorkerThread],
        _ body: @escaping @Sendable (Int, Int) -> Void
    ) {
        for (index, sender) in senders.enumerated() {
            sender.submit {
                for number in 0..<1_000 { loop.submit { body(index, number) } }
            }
        }
    }

    @Test func `jobs that submit jobs for ever do not keep timers from firing`() async throws {
        let loop = EventLoop(name: "test")
        defer { loop.stop() }
        let stop = Flag()
        Task(executorPreference: loop) {
            try? await loop.sleep(for: .milliseconds(5))
            stop.raise()
        }
        await withCheckedContinuation { ended in
            Self.spin(on: loop, until: { stop.isRaised }, then: { ended.resume() })
        }
        #expect(stop.isRaised)
    }

    private static func spin(
        on loop: EventLoop, until isOver: @escaping @Sendable () -> Bool,
        then end: @escaping @Sendable () -> Void
    ) {
        loop.submit { isOver() ? end() : self.spin(on: loop, until: isOver, then: end) }
    }

    @Test func `a sleep ends at its time, not before`() async throws {
        let loop = EventLoop(name: "test")
        defer { loop.stop() }
        let before = RealClock.now
        try await loop.sleep(for: .milliseconds(3))
        #expect(RealClock.now - before >= .milliseconds(3))
    }

    @Test func `a cancelled sleep throws, cancelled before or while it lasts`() async {
        let loop = EventLoop(name: "test")
        defer { loop.stop() }
        let sleeper = Task(executorPreference: loop) {
            do {
                try await loop.sleep(for: .seconds(3_600))
                return false
            } catch { return true }
        }
        try? await loop.sleep(for: .milliseconds(2))
        sleeper.cancel()
        #expect(await sleeper.value)
        let early = Task(executorPreference: loop) {
            withUnsafeCurrentTask { $0?.cancel() }
            do {
                try await loop.sleep(for: .seconds(3_600))
                return false
            } catch { return true }
        }
        #expect(await early.value)
    }

    @Test func `what was submitted before the stop runs`() async {
        let worker = WorkerThread(name: "worker")
        let count = Atomic(0)
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            Self.submit(100, to: worker) {
                if count.add(1, ordering: .relaxed).newValue == 100 { done.resume() }
            }
            worker.stop()
        }
        let ran = count.load(ordering: .relaxed)
        #expect(ran == 100)
    }

    private static func submit(
        _ count: Int, to worker: WorkerThread, _ block: @escaping @Sendable () -> Void
    ) {
        for _ in 0..<count { worker.submit(block) }
    }
}
