import StratusCluster
import StratusModel
import StratusPlacement
import StratusRecords
import Synchronization

/// Counts now and then the records of the partitions that this node leads, for metrics.
///
/// The rows of zones hold the numbers, so a look reads a row for each zone and no record. Between
/// two looks at rows others have the storage thread.
final class HeldCounts: Sendable {
    /// Between two rounds; shorter at first, while partitions are opened one after the other.
    private static let interval = Duration.seconds(60)
    private static let firstInterval = Duration.seconds(2)
    private static let breath = Duration.milliseconds(20)

    private let replicas: NodeReplicas
    private let counted = Mutex(StorageUse.none)

    init(_ replicas: NodeReplicas) { self.replicas = replicas }

    /// What the last whole round found.
    var use: StorageUse { self.counted.withLock { $0 } }

    func run() -> Task<Void, Never> {
        Task.detached(priority: .low) {
            var interval = Self.firstInterval
            while !Task.isCancelled {
                try? await Task.sleep(for: interval)
                await self.look()
                interval = min(interval * 2, Self.interval)
            }
        }
    }

    private func look() async {
        var use = StorageUse.none
        for group in await self.replicas.observations().map(\.group) where group != .system {
            use = use + (await self.held(in: group))
            if Task.isCancelled { return }
        }
        self.counted.withLock { [use] in $0 = use }
    }

    /// Nothing where the replica cannot be read: it is not led here any more.
    private func held(in group: GroupID) async -> StorageUse {
        var use = StorageUse.none
        var after: Bytes?
        repeat {
            let query = RecordQuery(
                principal: Principal(kind: .system), .heldRecords(HeldRecordsAsk(after: after)))
            guard let answer = await self.replicas.peek(query.enveloped(), in: group),
                case .heldRecords(let page)? = try? RecordAnswer(decoding: answer.body)
            else { return .none }
            use = use + page.use
            after = page.next
            if after != nil { try? await Task.sleep(for: Self.breath) }
        } while after != nil && !Task.isCancelled
        return use
    }
}
