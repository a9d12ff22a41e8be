import CShims

/// A thread that sleeps while it has nothing to do.
protocol WakeableThread: AnyObject {
    func rouse()
}

/// The threads that this thread has given work to and will wake together.
///
/// A thread woken at once may take the core from the thread that wakes it, and finds one piece of
/// work where a moment later there would be many. So an event loop wakes others when its round
/// ends, and code that submits several pieces of work wakes them after the last.
package final class HeldWakes {
    private var asleep: [any WakeableThread] = []

    init() {}

    private static var current: HeldWakes? {
        stratus_thread_mark().map { Unmanaged<HeldWakes>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Wakes `thread` now, or when this thread has released what it holds.
    static func wake(_ thread: some WakeableThread) {
        if let held = Self.current { held.asleep.append(thread) } else { thread.rouse() }
    }

    /// Threads that `body` gives work to are woken when it is done.
    package static func during(_ body: () -> Void) {
        guard Self.current == nil else { return body() }
        let held = HeldWakes()
        held.begin()
        body()
        held.end()
    }

    /// Holds this thread's wake-ups from now on, until ``end()``. The owner must keep this object
    /// until then.
    func begin() { stratus_set_thread_mark(Unmanaged.passUnretained(self).toOpaque()) }

    func end() {
        stratus_set_thread_mark(nil)
        self.release()
    }

    func release() {
        guard !self.asleep.isEmpty else { return }
        for thread in self.asleep { thread.rouse() }
        self.asleep.removeAll(keepingCapacity: true)
    }
}
