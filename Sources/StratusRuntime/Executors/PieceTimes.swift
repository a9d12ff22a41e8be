import Synchronization

/// How long threads work on one thing before another may have them, in time of the processor, so
/// that a busy machine does not matter. What takes long is kept by the name of its work until
/// somebody takes it.
///
/// Executors measure while they are given one of these. Only a build with `STRATUS_TURNS` gives
/// them one: reading a thread's clock is a system call, two for each job.
package final class PieceTimes: Sendable {
    /// Pieces of the same work on the same thread that were too long.
    package struct Long: Sendable, Equatable {
        package var thread: String
        package var work: String
        package var longest: Duration
        package var count: Int

        package init(thread: String, work: String, longest: Duration, count: Int) {
            self.thread = thread
            self.work = work
            self.longest = longest
            self.count = count
        }
    }

    /// What a piece may take on a thread that requests wait for, and on one of bulk work.
    package static let timeMax = Duration.milliseconds(20)
    package static let bulkTimeMax = Duration.milliseconds(40)
    /// More works than this have one name together.
    static let workCountMax = 256

    #if STRATUS_TURNS
        package static let ofProcess: PieceTimes? = PieceTimes { RealClock.threadTime }
    #else
        package static var ofProcess: PieceTimes? { nil }
    #endif

    private struct Work: Hashable {
        var thread: String
        var name: String
    }

    fileprivate let clock: @Sendable () -> Duration
    private let long = Mutex<[Work: (longest: Duration, count: Int)]>([:])
    private let threads = Mutex<[UInt: ThreadPieces]>([:])
    private let tasks = Mutex<[UInt: String]>([:])

    /// - Parameter clock: the time of the processor that the calling thread has had.
    package init(clock: @escaping @Sendable () -> Duration) { self.clock = clock }

    /// Gives out what was too long since the last time, in the order of threads and works.
    package func take() -> [Long] {
        let all = self.long.withLock { long in
            defer { long = [:] }
            return long
        }
        return all.map { work, times in
            Long(
                thread: work.thread, work: work.name, longest: times.longest, count: times.count)
        }.sorted { ($0.thread, $0.work) < ($1.thread, $1.work) }
    }

    fileprivate func note(_ name: String, on thread: String, _ took: Duration) {
        self.long.withLock { long in
            var work = Work(thread: thread, name: name)
            if long[work] == nil, long.count >= Self.workCountMax { work.name = "others" }
            let known = long[work] ?? (.zero, 0)
            long[work] = (max(known.longest, took), known.count + 1)
        }
    }

    // MARK: Threads

    /// The calling thread's pieces, measured from now on.
    func join(_ name: String, isBulk: Bool) -> ThreadPieces {
        let pieces = ThreadPieces(
            name, timeMax: isBulk ? Self.bulkTimeMax : Self.timeMax, of: self)
        self.threads.withLock { $0[ThreadIdentity.ofCaller] = pieces }
        return pieces
    }

    /// The calling thread ends.
    func leave() { self.threads.withLock { $0[ThreadIdentity.ofCaller] = nil } }

    private var current: ThreadPieces? {
        self.threads.withLock { $0[ThreadIdentity.ofCaller] }
    }

    /// From here on the calling thread works on something of its own, until ``endPart()``.
    package func beginPart(_ name: @escaping () -> String) { self.current?.beginPart(name) }

    package func endPart() { self.current?.endPart() }

    // MARK: Tasks

    /// A job and the task that it continues are the same object. So a loop can tell whose job it
    /// runs, which the task itself could only say while it runs.
    struct TaskMark: Sendable {
        fileprivate var address: UInt
    }

    /// The current task's jobs have this name until ``forget(_:)``.
    func name(_ name: String) -> TaskMark? {
        self.current?.rename(name)
        return withUnsafeCurrentTask { task in
            guard let task else { return nil }
            let address = unsafeBitCast(task, to: UInt.self)
            self.tasks.withLock { $0[address] = name }
            return TaskMark(address: address)
        }
    }

    func forget(_ mark: TaskMark) { self.tasks.withLock { $0[mark.address] = nil } }

    func name(of job: UnownedJob) -> String {
        let address = unsafeBitCast(job, to: UInt.self)
        return self.tasks.withLock { $0[address] } ?? "a task"
    }
}

/// The pieces of one thread, one after the other. A part of a piece that has a name of its own is a
/// piece by itself, and what is before and after it are two others.
///
/// `@unchecked`: touched only by the thread that joined.
final class ThreadPieces: @unchecked Sendable {
    private let thread: String
    private let timeMax: Duration
    private unowned let times: PieceTimes
    private var began = Duration.zero
    private var name: () -> String = { "" }
    private var outer: (() -> String)?

    init(_ thread: String, timeMax: Duration, of times: PieceTimes) {
        self.thread = thread
        self.timeMax = timeMax
        self.times = times
    }

    func begin(_ name: @autoclosure @escaping () -> String) {
        self.name = name
        self.began = self.times.clock()
    }

    func begin(_ job: UnownedJob) {
        let name = self.times.name(of: job)
        self.begin(name)
    }

    func end() {
        let took = self.times.clock() - self.began
        if took > self.timeMax { self.times.note(self.name(), on: self.thread, took) }
    }

    /// The piece is found to be something in particular.
    func rename(_ name: String) { self.name = { name } }

    func beginPart(_ name: @escaping () -> String) {
        self.end()
        self.outer = self.name
        self.name = name
        self.began = self.times.clock()
    }

    func endPart() {
        guard let outer = self.outer else { return }
        self.end()
        self.outer = nil
        self.name = outer
        self.began = self.times.clock()
    }
}
