import CShims
import StratusModel
import Synchronization

/// Unpredictable numbers from the kernel, drawn a page at a time: a system call per number would
/// cost more than the rest of a small request's bookkeeping.
///
/// A number handed out is wiped from the page, so that a later look at this memory tells nothing.
struct RealRandom: ~Copyable, Sendable {
    /// Not private: see ``Inbox/State``.
    struct Pool {
        var numbers = InlineArray<64, UInt64>(repeating: 0)
        var remaining = 0
    }

    private let pool = Mutex(Pool())

    func next() -> UInt64 {
        self.pool.withLock { pool in
            if pool.remaining == 0 {
                Self.fill(&pool.numbers)
                pool.remaining = 64
            }
            pool.remaining -= 1
            defer { pool.numbers[pool.remaining] = 0 }
            return pool.numbers[pool.remaining]
        }
    }

    private static func fill(_ numbers: inout InlineArray<64, UInt64>) {
        var span = numbers.mutableSpan
        span.withUnsafeMutableBytes { bytes in
            // Up to 256 bytes come whole or not at all; more may be interrupted by a signal.
            var filled = 0
            while filled < bytes.count {
                let drawn = stratus_getrandom(
                    bytes.baseAddress! + filled, min(bytes.count - filled, 256))
                precondition(drawn > 0, "the system has no random numbers (\(drawn))")
                filled += drawn
            }
        }
    }
}
