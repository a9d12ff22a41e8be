import StratusModel
import Synchronization

/// Looks now and then how much each part of the data directory occupies, for metrics.
final class DataSizes: Sendable {
    /// The directories that hold data, and the label of each.
    static let parts = [("log", "log"), ("rows", "partitions"), ("files", "assets")]

    private static let interval = Duration.seconds(30)

    private let directory: String
    private let sizes = Mutex<[String: UInt64]>([:])

    init(_ directory: String) { self.directory = directory }

    func size(of part: String) -> UInt64 { self.sizes.withLock { $0[part] ?? 0 } }

    func run() -> Task<Void, Never> {
        Task.detached(priority: .low) {
            while !Task.isCancelled {
                for (part, name) in Self.parts {
                    let size = DirectorySize.of(self.directory + "/" + name)
                    self.sizes.withLock { $0[part] = size }
                }
                try? await Task.sleep(for: Self.interval)
            }
        }
    }
}
