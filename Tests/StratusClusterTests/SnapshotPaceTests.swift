import StratusDoubles
import StratusModel
import Testing

@testable import StratusCluster

/// A node's snapshots take their time, so that what else it does takes none of its own.
@Suite struct SnapshotPaceTests {
    @Test func `slices are due as the rate says, whoever does them`() {
        let pace = SnapshotPace(rate: .kibibytes(1_000))
        var now = MonotonicTime(nanoseconds: 5_000_000_000)
        let start = now
        #expect(pace.opensAt == nil)
        for _ in 0..<100 {
            pace.spend(.kibibytes(100), at: now)
            // A timer is late, and that is made up for.
            now = max(now, (pace.opensAt ?? now) + .milliseconds(3))
        }
        let took = now - start
        #expect(took >= .milliseconds(9_900) && took <= .milliseconds(10_100), "\(took)")
        // What nobody used for an hour is not saved up.
        now = now + .seconds(3_600)
        for _ in 0..<10 { pace.spend(.kibibytes(100), at: now) }
        #expect(pace.opensAt.map { $0 - now >= .milliseconds(900) } == true)
        pace.rate = ByteCount(0)
        pace.spend(.kibibytes(100), at: now)
        #expect(pace.opensAt == nil)
    }

    @Test func `the pause between installations that fail doubles, up to a bound`() throws {
        var pause = SnapshotPause()
        #expect(pause.endsAt == nil)
        let now = MonotonicTime(nanoseconds: 7_000_000_000)
        var lengths: [Duration] = []
        for _ in 0..<6 {
            pause.fail(at: now)
            lengths.append(try #require(pause.endsAt) - now)
        }
        #expect(lengths == [0.5, 1, 2, 4, 8, 8].map { .seconds($0) })
    }

    @Test func `a replica whose snapshot could not be synced installs the next one`() throws {
        let three = try ThreeNodes(seed: 6) { setup in
            setup.tuning.trailingEntryCount = 0
            setup.tuning.retainedSizeMax = ByteCount(0)
            setup.checkpointSize = .kibibytes(16)
        }
        let leader = try #require(three.leader())
        let slow = try #require(three.nodes.first { $0.id != leader.id })
        three.hang(slow)
        for number in 0..<75 {
            #expect(three.write([1, UInt8(number)], Bytes(repeating: UInt8(number), count: 8_000)))
        }
        let last = try #require(three.status(of: leader)).applied
        slow.files.plan(
            DiskFault(
                at: slow.files.operationCount + 1, .fail(.io), isSticky: true, kinds: [.sync],
                prefix: "partitions/00001/unfinished.db"))
        three.hearAgain()
        three.run(for: .seconds(20))
        #expect(try #require(three.status(of: slow)).applied < last)
        let alarms = three.alarms.withLock { $0 }
        #expect(alarms.contains { $0.contains("the state refuses to work") }, "\(alarms)")
        slow.files.clearFaults()
        three.run(for: .seconds(20))
        #expect(try #require(three.status(of: slow)).applied >= last)
        #expect(three.value([1, 74], at: slow)?.count == 8_000)
    }

    @Test func `a snapshot takes as long as the rate says, and the group goes on meanwhile`() throws
    {
        let three = try ThreeNodes(seed: 5) { setup in
            setup.tuning.trailingEntryCount = 0
            setup.tuning.retainedSizeMax = ByteCount(0)
            setup.checkpointSize = .kibibytes(16)
            setup.snapshotRate = .kibibytes(64)
        }
        let leader = try #require(three.leader())
        let slow = try #require(three.nodes.first { $0.id != leader.id })
        three.hang(slow)
        // 600 KiB: three slices or more at either end.
        for number in 0..<75 {
            #expect(three.write([1, UInt8(number)], Bytes(repeating: UInt8(number), count: 8_000)))
        }
        let last = try #require(three.status(of: leader)).applied
        #expect(try #require(three.status(of: slow)).applied < last)
        three.hearAgain()
        let start = three.clock.now
        var writeCount: UInt8 = 0
        while let status = three.status(of: slow), status.applied < last,
            three.clock.now - start < .seconds(120)
        {
            #expect(three.write([2], [writeCount]), "while a snapshot is on its way")
            writeCount += 1
            three.run(for: .milliseconds(200))
        }
        let took = three.clock.now - start
        // 600 KiB at 64 KiB a second, twice, except for the last slice of each, which nothing waits
        // for.
        #expect(took > .seconds(10) && took < .seconds(60), "\(took)")
        #expect(writeCount > 10)
        three.run(for: .seconds(5))
        #expect(three.value([1, 74], at: slow)?.count == 8_000)
        #expect(three.value([2], at: slow) == [writeCount - 1])
    }

    /// Core audit 7: the copy that is sent stands on the leader's disk beside the rows.
    @Test func `S-05 a snapshot that does not fit is not begun, and comes when there is room`()
        throws
    {
        let three = try ThreeNodes(seed: 6) { setup in
            setup.tuning.trailingEntryCount = 0
            setup.tuning.retainedSizeMax = ByteCount(0)
            setup.checkpointSize = .kibibytes(16)
        }
        let leader = try #require(three.leader())
        let slow = try #require(three.nodes.first { $0.id != leader.id })
        three.hang(slow)
        for number in 0..<75 {
            #expect(three.write([1, UInt8(number)], Bytes(repeating: UInt8(number), count: 8_000)))
        }
        let last = try #require(three.status(of: leader)).applied
        three.run(for: .seconds(2))
        let used = leader.files.usedSize.raw
        // Half of what the copy takes.
        leader.files.setCapacity(ByteCount(used + 300_000))
        three.hearAgain()
        var most = used
        for _ in 0..<100 {
            three.run(for: .milliseconds(100))
            most = max(most, leader.files.usedSize.raw)
        }
        #expect(most < used + 150_000, "\(most - used) bytes were written to a disk without room")
        let problem = try #require(three.status(of: leader)).problem
        #expect(problem?.contains("a snapshot for") == true, "\(problem ?? "nothing is said")")
        let alarms = three.alarms.withLock { $0 }.count { $0.contains("a snapshot for") }
        #expect(alarms == 1)
        leader.files.setCapacity(nil)
        three.run(for: .seconds(30))
        #expect(try #require(three.status(of: slow)).applied >= last)
        #expect(try #require(three.status(of: leader)).problem == nil)
    }
}
