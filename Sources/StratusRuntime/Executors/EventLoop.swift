import CShims
import Glibc
package import StratusModel
import Synchronization

/// One thread that waits for sockets, timers and jobs, and runs what they bring.
///
/// A loop is a `SerialExecutor` and a `TaskExecutor`: an actor can live on it, and a task that
/// prefers it comes back to it after every `await`. The common request is read, answered and
/// written on one loop without leaving its thread.
///
/// - Nothing on a loop may block or compute for longer than a millisecond; that belongs on a
///   ``WorkerThread``.
/// - Work from other threads is taken in batches; a batch costs at most one wake, and none if the
///   loop is awake. Threads that the loop gives work to are woken when its round ends.
/// - Jobs cannot starve sockets: after a bounded number of rounds the loop looks at them again.
/// - A loop lives until ``stop()``. What is submitted later never runs.
///
/// `@unchecked`: every stored variable is touched only on the loop's own thread, which each method
/// that does so demands (`assertCurrent`); the rest is immutable or in ``Inbox``. The compiler has
/// no notion of "this thread only"; an actor would be one, but its synchronous entry from
/// `epoll_wait` costs a check of the executor per event. Removing this needs a way to state thread
/// confinement.
package final class EventLoop: SerialExecutor, TaskExecutor, WakeableThread, @unchecked Sendable {
    package let name: String
    private let inbox = Inbox()
    private let signal = WakeSignal(blocking: false)
    private let stopping = Flag()
    private let identity = ThreadIdentity()
    private let times: PieceTimes?
    private var pieces: ThreadPieces?

    private var registrations: Registrations
    private var timers = TimerQueue<() -> Void>()
    /// Waits for the next round of jobs, and what runs in this one.
    private var local: [Inbox.Work] = []
    private var running: [Inbox.Work] = []
    /// The time when this round began: near enough for deadlines, and free.
    private var roundTime = RealClock.now
    /// When the round began that is under way, nanoseconds; zero while the loop waits. Read by
    /// other threads.
    private let roundBegan = Atomic<Int64>(0)

    /// Rounds of jobs before the sockets get their turn again, and how long they may take unless
    /// one does by itself.
    private static let jobRoundCountMax = 16
    private static let jobTimeMax = Duration.milliseconds(1)
    /// Sockets served before those wake who can begin with what they brought: there may be a core
    /// for them.
    private static let heldEventCountMax = 64

    /// OpenSSL writes to sockets without asking to be spared the signal, which would end the
    /// process.
    private static let ignoreBrokenPipes: Void = { _ = Glibc.signal(SIGPIPE, SIG_IGN) }()

    package init(name: String, times: PieceTimes? = .ofProcess) {
        self.name = name
        self.times = times
        Self.ignoreBrokenPipes
        self.registrations = Registrations(signal: self.signal.descriptor)
        OwnedThread.start(named: name) { [self] in self.run() }
    }

    /// The loops of a node: one per core unless told otherwise.
    package static func group(count: Int, name: String = "loop") -> [EventLoop] {
        (0..<count).map { EventLoop(name: "\(name)-\($0)") }
    }

    // MARK: Executor

    package func enqueue(_ job: consuming ExecutorJob) {
        self.add(.job(UnownedJob(job)))
    }

    /// Runs `block` on the loop, after what waits there already.
    package func submit(_ block: @escaping @Sendable () -> Void) {
        self.add(.block(block))
    }

    /// Runs `block` now when this is the loop's thread, soon otherwise.
    package func perform(_ block: @escaping @Sendable () -> Void) {
        if self.isCurrent { block() } else { self.submit(block) }
    }

    /// Runs `body` on the loop and answers with its result.
    package func run<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result {
        if self.isCurrent { return body() }
        return await withCheckedContinuation { continuation in
            self.submit { continuation.resume(returning: body()) }
        }
    }

    package var isCurrent: Bool { self.identity.isCurrent }

    package func isIsolatingCurrentContext() -> Bool? { self.isCurrent }
    package func checkIsolated() {
        precondition(self.isCurrent, "not on the event loop \(self.name)")
    }
    package func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        UnownedSerialExecutor(ordinary: self)
    }
    package func asUnownedTaskExecutor() -> UnownedTaskExecutor {
        UnownedTaskExecutor(ordinary: self)
    }

    /// Ends the thread once everything submitted has run. Its users have ended before.
    package func stop() {
        guard !self.stopping.raise() else { return }
        self.signal.raise()
    }

    package func assertCurrent() {
        assert(self.isCurrent, "not on the event loop \(self.name)")
    }

    /// Since when one round of the loop lasts; nil while it waits. From any thread.
    package var busySince: MonotonicTime? {
        let began = self.roundBegan.load(ordering: .relaxed)
        return began == 0 ? nil : MonotonicTime(nanoseconds: began)
    }

    // MARK: Timers

    package struct Timer: Sendable, Hashable {
        fileprivate let token: TimerQueue<() -> Void>.Token
    }

    /// When this round of the loop began. Only on the loop.
    package var now: MonotonicTime {
        self.assertCurrent()
        return self.roundTime
    }

    /// Calls `action` on the loop at or soon after `time`. Only on the loop.
    package func schedule(at time: MonotonicTime, _ action: @escaping () -> Void) -> Timer {
        self.assertCurrent()
        return Timer(token: self.timers.insert(at: time, action))
    }

    /// - Returns: false when it has fired or was cancelled.
    @discardableResult
    func move(_ timer: Timer, to time: MonotonicTime) -> Bool {
        self.assertCurrent()
        return self.timers.move(timer.token, to: time)
    }

    package func cancel(_ timer: Timer) {
        self.assertCurrent()
        self.timers.remove(timer.token)
    }

    // MARK: Sockets

    /// Watches `descriptor` and holds `channel` until ``deregister(_:)``. Only on the loop.
    ///
    /// Readiness is told as long as it lasts (level-triggered): a channel that does not want to
    /// hear of it says so by ``watch(_:for:)``.
    func register(
        _ descriptor: Int32, for interest: Readiness, _ channel: any Channel
    ) throws(SocketError) -> Registration {
        self.assertCurrent()
        return try self.registrations.add(descriptor, for: interest, channel)
    }

    func watch(_ registration: Registration, for interest: Readiness) {
        self.assertCurrent()
        self.registrations.change(registration, to: interest)
    }

    /// `channel` hears of the socket from now on.
    func replace(_ registration: Registration, with channel: any Channel) {
        self.assertCurrent()
        self.registrations.replace(registration, with: channel)
    }

    /// Forgets the channel; events already fetched for it are dropped. Call before closing.
    func deregister(_ registration: Registration) {
        self.assertCurrent()
        self.registrations.remove(registration)
    }

    // MARK: The thread

    private func add(_ work: consuming Inbox.Work) {
        if self.isCurrent {
            self.local.append(work)
        } else if self.inbox.submit(work) {
            HeldWakes.wake(self)
        }
    }

    func rouse() { self.signal.raise() }

    private func run() {
        self.identity.claim()
        self.pieces = self.times?.join(self.name, isBulk: false)
        defer { self.times?.leave() }
        let events = EventBuffer()
        let wakes = HeldWakes()
        wakes.begin()
        defer { wakes.end() }
        while true {
            self.roundBegan.store(self.roundTime.nanoseconds, ordering: .relaxed)
            let isIdle = self.runJobs()
            self.roundTime = RealClock.now
            self.fireTimers()
            wakes.release()
            let mayWait = isIdle && self.local.isEmpty && self.inbox.park()
            if mayWait && self.stopping.isRaised && self.inbox.close() { return }
            if mayWait { self.roundBegan.store(0, ordering: .relaxed) }
            let count = events.wait(
                on: self.registrations, milliseconds: mayWait ? self.patience() : 0)
            if mayWait { self.inbox.unpark() }
            self.roundTime = RealClock.now
            self.roundBegan.store(self.roundTime.nanoseconds, ordering: .relaxed)
            for index in 0..<count {
                if index % Self.heldEventCountMax == 0 { wakes.release() }
                let (registration, readiness) = events[index]
                // The wake-up itself has nothing more to say.
                guard registration != .signal else { continue }
                self.pieces?.begin("a socket")
                self.registrations.channel(of: registration)?.becameReady(readiness)
                self.pieces?.end()
            }
        }
    }

    /// - Returns: whether nothing is left to run.
    private func runJobs() -> Bool {
        let end = RealClock.now + Self.jobTimeMax
        for round in 0..<Self.jobRoundCountMax {
            self.inbox.take(into: &self.local)
            if self.local.isEmpty { return true }
            if round > 0, RealClock.now >= end { return false }
            swap(&self.local, &self.running)
            for index in self.running.indices {
                switch self.running[index] {
                case .job(let job):
                    self.pieces?.begin(job)
                    job.runSynchronously(
                        isolatedTo: self.asUnownedSerialExecutor(),
                        taskExecutor: self.asUnownedTaskExecutor())
                case .block(let block):
                    self.pieces?.begin("a block")
                    block()
                }
                self.pieces?.end()
            }
            self.running.removeAll(keepingCapacity: true)
        }
        return false
    }

    /// At most once around: a timer that sets itself again for now waits for the next round.
    private func fireTimers() {
        for _ in 0..<self.timers.count {
            guard let action = self.timers.popDue(at: self.roundTime) else { return }
            self.pieces?.begin("a timer")
            action()
            self.pieces?.end()
        }
    }

    /// How long nothing can be due. Rounded up: waking early would only go round once more.
    private func patience() -> Int32 {
        guard let next = self.timers.first else { return -1 }
        let nanoseconds = next.nanoseconds - self.roundTime.nanoseconds
        if nanoseconds <= 0 { return 0 }
        return Int32(clamping: (nanoseconds - 1) / 1_000_000 + 1)
    }
}
