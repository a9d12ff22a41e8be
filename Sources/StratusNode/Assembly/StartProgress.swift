package import StratusModel

/// The messages of a long part of a start: that it begins, now and then how far it is, and that it
/// is done.
///
/// A pure decision: the code that does the work reports its progress, as often as it likes, and
/// writes down what is returned.
package struct StartProgress: Sendable {
    package enum Word: Sendable, Equatable {
        case begun
        case underWay
        case done(after: Duration)
    }

    /// Between two words on the way.
    package static let interval = Duration.seconds(1)

    private var begunAt: MonotonicTime?
    private var saidAt: MonotonicTime?
    private var isDone = false

    package init() {}

    /// - Parameter total: does not change. Nothing is said of nothing.
    /// - Returns: what is to be said now, if anything.
    package mutating func reached(_ count: Int, of total: Int, at now: MonotonicTime) -> Word? {
        guard total > 0, !self.isDone else { return nil }
        guard let begunAt = self.begunAt, let saidAt = self.saidAt else {
            self.begunAt = now
            self.saidAt = now
            return .begun
        }
        if count >= total {
            self.isDone = true
            return .done(after: now - begunAt)
        }
        guard now - saidAt >= Self.interval else { return nil }
        self.saidAt = now
        return .underWay
    }
}
