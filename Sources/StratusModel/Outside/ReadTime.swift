/// How long a read may hold its thread. A reader asks it where work is counted, and ends the page
/// once the time is over.
///
/// A state machine never asks a clock. A read may, because its answer changes nothing that is
/// replicated, so it may stop early.
package struct ReadTime {
    private let end: MonotonicTime
    private let clock: () -> MonotonicTime

    package init(until end: MonotonicTime, clock: @escaping () -> MonotonicTime) {
        self.end = end
        self.clock = clock
    }

    package var now: MonotonicTime { self.clock() }
    package var isOver: Bool { self.now >= self.end }
}
