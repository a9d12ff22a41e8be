package import StratusModel
import Synchronization

/// When a partition's rows go from memory to its file.
///
/// Many rows in one flush change few pages more than some do, so they wait for each other. They are
/// bounded because a start applies again what was in memory.
package struct FlushRules: Sendable, Equatable {
    /// So many changed rows go once they are `ageMin` old.
    package var countMax = 12_000
    package var ageMin = Duration.milliseconds(20)
    /// So many bytes go at once.
    package var sizeMax = ByteCount.mebibytes(4)
    /// However few there are, they wait no longer than this.
    package var ageMax = Duration.seconds(1)
    /// Rows that are written before other work has its turn.
    package var sliceCount = 256
    package init() {}

    /// Twice the bounds: nothing more is applied.
    func isFull(_ count: Int, _ size: Int) -> Bool {
        count >= 2 * self.countMax || size >= 2 * self.sizeMax.raw
    }

    /// When rows go of which the first was applied at `start`.
    func due(_ count: Int, _ size: Int, from start: MonotonicTime) -> MonotonicTime {
        if size >= self.sizeMax.raw || self.isFull(count, size) { return start }
        return start + (count >= self.countMax ? self.ageMin : self.ageMax)
    }
}

/// What the flushes of a node's partitions share: one goes on at a time, since the pages that it
/// changes stay in memory until its COMMIT, and the rows of all partitions have a bound.
package final class FlushTurns: Sendable {
    private struct State {
        var isTaken = false
        var shareCount = 0
        var rowCount = 0
        var size = 0
    }
    private let state = Mutex(State())
    private let countMax: Int
    private let sizeMax: ByteCount

    package init(countMax: Int = 24_000, sizeMax: ByteCount = .mebibytes(64)) {
        self.countMax = countMax
        self.sizeMax = sizeMax
    }

    /// The right to flush, given back with the last reference to it.
    final class Turn: Sendable {
        private let turns: FlushTurns
        fileprivate init(of turns: FlushTurns) { self.turns = turns }
        deinit { self.turns.state.withLock { $0.isTaken = false } }
    }

    /// What one partition has in memory, as far as it has said so.
    final class Share {
        private let turns: FlushTurns
        private var rowCount = 0
        private var size = 0

        fileprivate init(of turns: FlushTurns) { self.turns = turns }

        func note(_ rowCount: Int, _ size: Int) {
            self.turns.state.withLock { state in
                state.rowCount += rowCount - self.rowCount
                state.size += size - self.size
            }
            (self.rowCount, self.size) = (rowCount, size)
        }

        /// The node has too much, and this partition no less of it than the average.
        var isTooMuch: Bool {
            let all = self.turns.state.withLock { $0 }
            return
                (all.rowCount > self.turns.countMax
                && self.rowCount * all.shareCount >= all.rowCount)
                || (all.size > self.turns.sizeMax.raw && self.size * all.shareCount >= all.size)
        }

        deinit {
            self.note(0, 0)
            self.turns.state.withLock { $0.shareCount -= 1 }
        }
    }

    func share() -> Share {
        self.state.withLock { $0.shareCount += 1 }
        return Share(of: self)
    }

    /// Nil: another partition has it.
    func take() -> Turn? {
        let isFree = self.state.withLock { state in
            defer { state.isTaken = true }
            return !state.isTaken
        }
        return isFree ? Turn(of: self) : nil
    }
}

extension FlushTurns: Equatable {
    package static func == (one: FlushTurns, other: FlushTurns) -> Bool { one === other }
}
