/// How long a read may hold its thread: whoever reads asks it where work is counted, and ends the page when it is over.
///
/// A state machine never asks a clock; what a read answers depends on no state, so that it may be cut short.
package struct ReadTime {
    private let end: MonotonicTime
    private let clock: () -> MonotonicTime

    package init(until end: MonotonicTime, clock: @escaping () -> MonotonicTime) {
        self.end = end
        self.clock = clock
    }

    package var isOver: Bool { self.clock() >= self.end }
}
