import Synchronization

/// Work submitted to a thread from other threads, and whether the thread must be woken for it.
///
/// A thread that is awake looks here before it sleeps, so only a sleeping one costs its submitter a
/// system call, and a batch costs one: the first submitter takes the duty to wake with it.
///
/// Its submitters bound it: every job belongs to a task, and the requests, replicas and connections
/// that start tasks bound those.
struct Inbox: ~Copyable, Sendable {
    enum Work: Sendable {
        case job(UnownedJob)
        case block(@Sendable () -> Void)
    }

    /// Not private: Swift 6.3 emits broken code for a private type in the layout of a noncopyable
    /// one.
    struct State {
        var work: [Work] = []
        var isParked = false
        var isClosed = false
    }

    private let state = SystemMutex(State())
    /// Lets a busy thread pass by without the lock. A stale "empty" is repaired by ``park()``.
    private let isFilled = Atomic(false)

    /// - Returns: whether the caller must wake the owner now.
    func submit(_ work: consuming Work) -> Bool {
        let work = work
        return self.state.withLock { state in
            // The owner has ended. A task that would resume now never continues, as if the process
            // had ended.
            guard !state.isClosed else { return false }
            state.work.append(work)
            self.isFilled.store(true, ordering: .releasing)
            defer { state.isParked = false }
            return state.isParked
        }
    }

    /// Adds what was submitted to `queue`.
    func take(into queue: inout [Work]) {
        guard self.isFilled.load(ordering: .acquiring) else { return }
        self.state.withLock { state in
            if queue.isEmpty {
                swap(&state.work, &queue)
            } else {
                queue += state.work
                state.work.removeAll(keepingCapacity: true)
            }
            self.isFilled.store(false, ordering: .releasing)
        }
    }

    /// Says that the owner is about to sleep.
    /// - Returns: false when there is work, and it must not.
    func park() -> Bool {
        self.state.withLock { state in
            state.isParked = state.work.isEmpty
            return state.isParked
        }
    }

    /// Says that the owner woke by itself.
    func unpark() {
        self.state.withLock { $0.isParked = false }
    }

    /// Refuses what comes from now on.
    /// - Returns: false when work arrived first; take it and try again.
    func close() -> Bool {
        self.state.withLock { state in
            state.isClosed = state.work.isEmpty
            return state.isClosed
        }
    }
}
