package import StratusModel
import Synchronization

/// The memory that uploads and downloads of a node may take together: `assets.bufferSizeMax`.
///
/// One user has an eighth of it at most, so that nobody keeps the others waiting. A transfer that
/// finds no room is not read from until there is some.
package final class TransferBuffers: Sendable {
    /// The memory of an upload: four sealed chunks, and what is gathered and sealed of the next.
    package static let uploadSize = 6 * Int(AssetLimits.chunkSizeDefault)
    /// The memory of a download: the chunks it reads ahead.
    package static let downloadSize = 4 * Int(AssetLimits.chunkSizeDefault)
    /// How long a transfer waits for room.
    package static let patience = Duration.seconds(10)
    private static let lookInterval = Duration.milliseconds(50)
    /// The part that one user may take.
    private static let userPart = 8

    private struct State {
        var size = 0
        var byUser: [String: Int] = [:]
    }

    private let sizeMax: Int
    private let state = Mutex(State())

    /// - Parameter sizeMax: less than eight transfers' worth counts as that much.
    package init(_ sizeMax: ByteCount) {
        self.sizeMax = max(sizeMax.raw, Self.userPart * Self.uploadSize)
    }

    /// Bytes taken now.
    package var size: Int { self.state.withLock { $0.size } }

    /// A part of the memory, given back with the last reference to it.
    package final class Share: Sendable {
        private let user: String
        private let size: Int
        private let buffers: TransferBuffers

        fileprivate init(_ size: Int, of buffers: TransferBuffers, for user: String) {
            self.size = size
            self.buffers = buffers
            self.user = user
        }

        deinit { self.buffers.give(self.size, by: self.user) }
    }

    /// The memory that the upload of a body takes; nil stands for a body of unknown size.
    package static func uploadSize(of bodySize: UInt64?) -> Int {
        guard let bodySize, bodySize < UInt64(Self.uploadSize) / 3 else { return Self.uploadSize }
        return 3 * Int(bodySize) + 4_096
    }

    /// Nil: there is no room now.
    package func share(_ size: Int, for user: String) -> Share? {
        let isTaken = self.state.withLock { state in
            let own = state.byUser[user] ?? 0
            guard state.size + size <= self.sizeMax,
                own + size <= self.sizeMax / Self.userPart
            else { return false }
            state.size += size
            state.byUser[user] = own + size
            return true
        }
        return isTaken ? Share(size, of: self, for: user) : nil
    }

    /// Waits until there is room. Nil: there was none for ten seconds, or the task was cancelled.
    package func wait(
        for size: Int, of user: String, now: @Sendable () -> MonotonicTime,
        sleep: @Sendable (Duration) async -> Void
    ) async -> Share? {
        let end = now() + Self.patience
        while true {
            if let share = self.share(size, for: user) { return share }
            guard now() < end, !Task.isCancelled else { return nil }
            await sleep(Self.lookInterval)
        }
    }

    private func give(_ size: Int, by user: String) {
        self.state.withLock { state in
            state.size -= size
            let rest = (state.byUser[user] ?? 0) - size
            state.byUser[user] = rest > 0 ? rest : nil
        }
    }
}
