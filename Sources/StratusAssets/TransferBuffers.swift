package import StratusModel
package import StratusRuntime
import Synchronization

/// The memory that uploads and downloads of a node may take together: `assets.bufferSizeMax`.
///
/// One user has an eighth of it at most, so that nobody keeps the others waiting. A quarter of it is
/// kept for containers that have less than that. A transfer that finds no room is not read from
/// until there is some.
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

    /// The part that is sure to one container, and kept for those that have less.
    private static let containerPart = 4

    private let bounds: PlaceBounds
    /// A place is a byte.
    private let places = Mutex(Places())

    /// - Parameter sizeMax: less than eight transfers' worth counts as that much.
    package init(_ sizeMax: ByteCount) {
        let total = max(sizeMax.raw, Self.userPart * Self.uploadSize)
        self.bounds = PlaceBounds(
            total: total, containerPart: Self.containerPart, share: total / Self.userPart,
            most: total / Self.userPart, kept: total / Self.containerPart)
    }

    /// Bytes taken now.
    package var size: Int { self.places.withLock { $0.size } }

    /// A part of the memory, given back with the last reference to it.
    package final class Share: Sendable {
        private let place: UInt64
        private let buffers: TransferBuffers

        fileprivate init(_ place: UInt64, of buffers: TransferBuffers) {
            self.place = place
            self.buffers = buffers
        }

        deinit { self.buffers.places.withLock { $0.leave(self.place) } }
    }

    /// The memory that the upload of a body takes; nil stands for a body of unknown size.
    package static func uploadSize(of bodySize: UInt64?) -> Int {
        guard let bodySize, bodySize < UInt64(Self.uploadSize) / 3 else { return Self.uploadSize }
        return 3 * Int(bodySize) + 4_096
    }

    /// Nil: there is no room now.
    package func share(_ size: Int, for user: PlaceHolder) -> Share? {
        let entrance = self.places.withLock {
            try? $0.enter(user, size: max(1, size), within: self.bounds)
        }
        return entrance.map { Share($0.number, of: self) }
    }

    /// Waits until there is room. Nil: there was none for ten seconds, or the task was cancelled.
    package func wait(
        for size: Int, of user: PlaceHolder, now: @Sendable () -> MonotonicTime,
        sleep: @Sendable (Duration) async -> Void
    ) async -> Share? {
        let end = now() + Self.patience
        while true {
            if let share = self.share(size, for: user) { return share }
            guard now() < end, !Task.isCancelled else { return nil }
            await sleep(Self.lookInterval)
        }
    }
}
