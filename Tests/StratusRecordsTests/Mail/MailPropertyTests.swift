import Foundation
import StratusCluster
import StratusDoubles
import StratusModel
import StratusQuery
import StratusRecords
import StratusRows
import Testing

/// Mail is received once and in order, whatever happens to its couriers. `STRATUS_SEEDS` sets the
/// number of seeds.
@Suite struct MailPropertyTests {
    static let seedCount =
        ProcessInfo.processInfo.environment["STRATUS_SEEDS"].flatMap { UInt64($0) } ?? 60

    @Test func `what is posted arrives once, in order, through loss, repetition, delay and death`()
        throws
    {
        var refusedCount = 0
        var twiceCount = 0
        for seed in 0..<Self.seedCount {
            var world = LetterWorld(seed: seed)
            for round in 0..<300 {
                if Int.random(in: 0..<4, using: &world.random) == 0 { try world.write() }
                if Int.random(in: 0..<30, using: &world.random) == 0 { try world.work() }
                try world.step()
                if round.isMultiple(of: 50) {
                    try world.expectNothingOutOfOrder("seed \(seed), round \(round)")
                }
            }
            try world.settle()
            try world.expectAllArrived("seed \(seed)")
            #expect(world.alarms.isEmpty, "seed \(seed): \(world.alarms)")
            refusedCount += world.refusedCount
            twiceCount += world.deliveredTwiceCount
        }
        #expect(refusedCount > 0, "no outbox was ever full")
        #expect(twiceCount > 0, "nothing was ever delivered twice")
    }

    @Test func `the same entries over empty rows give the same mail`() throws {
        for seed in 0..<10 as Range<UInt64> {
            var world = LetterWorld(seed: seed)
            for _ in 0..<200 {
                if Bool.random(using: &world.random) { try world.write() }
                try world.step()
            }
            for partition in world.partitions {
                let rows = Rows()
                var state = world.state
                for (command, position) in partition.log {
                    _ = try state.apply(command, at: position, over: rows)
                }
                #expect(
                    rows.contents == partition.rows.contents, "seed \(seed), \(partition.group)")
            }
        }
    }

    /// "All entries up to a time" is a cut of the cluster at which no mail is lost. The sender had
    /// posted all that the receiver has, and the receiver has all that the sender has released.
    @Test func `a cluster restored to any time goes on with the mail of that time, and no other`()
        throws
    {
        for seed in 0..<Self.seedCount {
            var world = LetterWorld(seed: seed)
            var times: [HybridTime] = []
            for _ in 0..<3 {
                for _ in 0..<150 {
                    if Int.random(in: 0..<3, using: &world.random) == 0 { try world.write() }
                    if Int.random(in: 0..<30, using: &world.random) == 0 { try world.work() }
                    try world.step()
                }
                times = world.partitions.flatMap { $0.log.map(\.position.time) }.sorted()
                let cut = times[
                    Int.random(in: (times.count / 2)..<times.count, using: &world.random)]
                try world.restore(to: cut)
                try world.expectNothingOutOfOrder("seed \(seed), cut at \(cut)")
            }
            for _ in 0..<100 { try world.step() }
            try world.write()
            try world.settle()
            try world.expectAllArrived("seed \(seed)")
            #expect(world.alarms.isEmpty, "seed \(seed): \(world.alarms)")
        }
    }
}
