import StratusModel
import Synchronization

/// The sizes of databases' parts when this gateway last looked. It divides a database's quota among
/// its parts by them.
///
/// A bucket's log decides exactly about what the bucket itself holds. Of the others it knows
/// nothing, so that together they may pass the quota by what is saved between two looks.
final class BucketUses: Sendable {
    private struct Entry {
        /// Bytes, by the part's number.
        var sizes: [UInt64]
        var readAt: MonotonicTime
        /// Somebody is looking.
        var askedAt: MonotonicTime?
    }

    /// How long a look is believed, and how long others wait for who is looking before they look
    /// themselves.
    private static let lifetime = Duration.seconds(1)
    static let patience = Duration.seconds(2)

    private let entries = Mutex<[SpreadParts: Entry]>([:])
    private let countMax: Int

    init(countMax: Int = 1_024) { self.countMax = countMax }

    /// Nil: the caller is to look, and to say what it saw by ``keep(_:of:at:)``. Everybody else
    /// goes by the last look meanwhile.
    func sizes(of database: SpreadParts, at now: MonotonicTime) -> [UInt64]? {
        self.entries.withLock { entries in
            guard let entry = entries[database] else { return nil }
            if now < entry.readAt + Self.lifetime { return entry.sizes }
            if let askedAt = entry.askedAt, now < askedAt + Self.patience { return entry.sizes }
            entries[database]?.askedAt = now
            return nil
        }
    }

    /// - Parameter sizes: nil where a bucket did not answer: what it held before counts, and
    ///   nothing where nobody ever knew.
    /// - Returns: what is known now.
    func keep(_ sizes: [UInt64?], of database: SpreadParts, at now: MonotonicTime) -> [UInt64] {
        self.entries.withLock { entries in
            let known = entries[database]?.sizes ?? sizes.map { _ in 0 }
            let all = zip(sizes, known).map { $0 ?? $1 }
            if entries.count >= self.countMax, entries[database] == nil { entries = [:] }
            entries[database] = Entry(sizes: all, readAt: now)
            return all
        }
    }

    /// Returns the bytes that each bucket may hold, so that all of them together, with what is
    /// added, hold at most `quota`. Never 0, which would be no quota.
    static func bounds(of sizes: [UInt64], quota: UInt64) -> [UInt64] {
        let sum = sizes.reduce(0, +)
        return sizes.map { size in
            let others = sum - size
            return quota > others ? quota - others : 1
        }
    }
}
