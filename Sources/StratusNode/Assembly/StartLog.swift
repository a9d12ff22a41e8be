import StratusModel
import StratusRuntime
import StratusStorage
import Synchronization

/// The log lines of a long start: reading the log back, and bringing the partitions up to it.
final class StartLog: Sendable {
    private let log: Log
    private let world: any World
    private let segmentSize: ByteCount
    private let reading = Mutex(StartProgress())
    private let opening = Mutex(StartProgress())

    init(_ log: Log, in world: any World, segmentSize: ByteCount) {
        self.log = log
        self.world = world
        self.segmentSize = segmentSize
    }

    func read(_ progress: SegmentedLog.RecoveryProgress) {
        let (count, total) = (progress.segmentsRead, progress.segmentCount)
        let word = self.reading.withLock { $0.reached(count, of: total, at: self.world.now) }
        self.say(
            word, "reading the log", "the log is read",
            [
                "segments": .count(count), "of": .count(total),
                "size": .integer(Int64(total * self.segmentSize.raw)),
            ])
    }

    func opened(_ count: Int, of total: Int) {
        let word = self.opening.withLock { $0.reached(count, of: total, at: self.world.now) }
        self.say(
            word, "opening partitions", "all partitions are open",
            ["partitions": .count(count), "of": .count(total)])
    }

    private func say(
        _ word: StartProgress.Word?, _ going: StaticString, _ done: StaticString,
        _ fields: LogFields
    ) {
        switch word {
        case .begun, .underWay: self.log.info(going, fields)
        case .done(let duration):
            var fields = fields
            fields.append("duration", .duration(duration))
            self.log.info(done, fields)
        case nil: break
        }
    }
}
