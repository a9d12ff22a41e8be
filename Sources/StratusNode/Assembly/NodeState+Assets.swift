import StratusAdmin
import StratusAssets
import StratusModel
import StratusRuntime

/// The files of records as administrators see them.
extension NodeState {
    func copies() async -> CopyStatus {
        let figures = self.cluster.copies.figures
        var status = CopyStatus()
        status.packBytes = figures.packBytes
        status.liveBytes = figures.liveBytes
        status.missingCount = figures.missingCount
        status.unnamedCount = figures.unnamedCount
        status.damagedCount = figures.damagedCount
        status.lostCount = figures.lostCount
        status.repairedCount = figures.repairedCount
        status.removedCount = figures.removedCount
        status.lackingCount = figures.lackingCount
        status.failingCount = figures.failingCount
        status.readingBackCount = figures.readingBackCount
        status.comparingCount = figures.comparingCount
        return status
    }

    func verifyCopies() async -> Int { await self.cluster.copies.verify() }

    func checkCopies(of body: BodyID, _ ordinals: Range<UInt32>, in group: GroupID) async
        -> CopyChecking
    { await self.cluster.copies.check(body, ordinals, of: group) }

    func auditCopies() async -> Int { await self.cluster.copies.audit() }

    func copyDifferences(after last: CopyDifference?, limit: Int) async -> [CopyDifference] {
        await self.cluster.copies.keeper.differences(after: last, limit: limit)
    }
}

extension NodeMetrics {
    static func registerAssets(_ state: NodeState) {
        let (metrics, copies) = (state.metrics, state.cluster.copies)
        metrics.gauge(
            "stratus_asset_copies_missing", "Copies of files that records hold and this node lacks"
        ) { Double(copies.figures.missingCount) }
        metrics.gauge(
            "stratus_asset_partitions_lacking",
            "Partitions that have lacked copies of files for over a minute"
        ) { Double(copies.figures.lackingCount) }
        metrics.gauge(
            "stratus_asset_partitions_failing",
            "Partitions whose copies of files cannot be read or written"
        ) { Double(copies.figures.failingCount) }
        metrics.gauge(
            "stratus_asset_copies_unnamed",
            "Copies that no row names: uploads under way, and what they left"
        ) { Double(copies.figures.unnamedCount) }
        metrics.counter(
            "stratus_asset_bodies_lost_total", "Files that no node had a sound copy of"
        ) { Double(copies.figures.lostCount) }
        metrics.counter(
            "stratus_asset_copies_damaged_total", "Copies of files that were found damaged"
        ) { Double(copies.figures.damagedCount) }
        metrics.counter(
            "stratus_asset_copies_repaired_total", "Copies of files brought from other nodes"
        ) { Double(copies.figures.repairedCount) }
        metrics.counter(
            "stratus_asset_copies_removed_total", "Copies of files that were let go"
        ) { Double(copies.figures.removedCount) }
        let name = "stratus_asset_pack_bytes"
        let help = "Bytes of packs: of copies, and of those that were removed"
        metrics.gauge(name, help, ["state": "live"]) { Double(copies.figures.liveBytes) }
        metrics.gauge(name, help, ["state": "garbage"]) {
            Double(copies.figures.packBytes - copies.figures.liveBytes)
        }
        metrics.gauge(
            "stratus_asset_queue_bytes", "Bytes of copies that wait to be written to packs"
        ) { Double(copies.figures.queueBytes) }
        metrics.gauge(
            "stratus_asset_buffer_bytes", "Memory that uploads and downloads hold"
        ) { Double(copies.buffers.size) }
    }
}
