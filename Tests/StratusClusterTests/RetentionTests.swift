import StratusCluster
import StratusDoubles
import StratusModel
import StratusStorage
import Testing

/// A leader's log keeps entries for followers that are behind: core audit 1.
@Suite struct RetentionTests {
    private func hasSnapshot(_ node: ThreeNodes.Node) throws -> Bool {
        try node.files.list("partitions/00001").contains { $0.raw == "rows-2.db" }
    }

    @Test
    func `M-24 C-31 a node that was away gets what it missed from the log, while others write`()
        throws
    {
        let three = try ThreeNodes(seed: 11) { setup in
            setup.tuning.trailingEntryCount = 0
            setup.checkpointSize = .kibibytes(16)
        }
        let leader = try #require(three.leader())
        let slow = try #require(three.nodes.first { $0.id != leader.id })
        // It has a file: a snapshot would bring another.
        #expect(three.write([9], [1]))
        three.run(for: .seconds(1))
        three.hang(slow)
        for number in 0..<75 {
            #expect(three.write([1, UInt8(number)], Bytes(repeating: UInt8(number), count: 8_000)))
        }
        three.run(for: .seconds(3))
        // Three are allowed for the leader's own sake.
        #expect(leader.log.segmentCount > 8, "\(leader.log.segmentCount) segments")
        let last = try #require(three.status(of: leader)).applied
        three.hearAgain()
        var count: UInt8 = 0
        let start = three.clock.now
        while let status = three.status(of: slow), status.applied < last,
            three.clock.now - start < .seconds(30)
        {
            #expect(three.write([2], Bytes(repeating: count, count: 4_000)))
            count += 1
        }
        #expect(three.clock.now - start < .seconds(10))
        #expect(try #require(three.status(of: slow)).applied >= last)
        #expect(try !self.hasSnapshot(slow), "it got a snapshot, and the log had what it needed")
        #expect(three.alarms.withLock { $0 } == [])
        // And then the log lets go.
        for number in 0..<20 {
            #expect(three.write([3], Bytes(repeating: UInt8(number), count: 8_000)))
            three.run(for: .milliseconds(300))
        }
        #expect(leader.log.segmentCount <= 6, "\(leader.log.segmentCount) segments")
        #expect(leader.replicas.retentionFigures.givenUpCount == 0)
    }

    @Test func `C-31 beyond the bound a follower is given up, loudly, and gets a snapshot`() throws
    {
        let three = try ThreeNodes(seed: 12) { setup in
            setup.tuning.trailingEntryCount = 0
            setup.tuning.retainedSizeMax = .kibibytes(200)
            setup.checkpointSize = .kibibytes(16)
        }
        let leader = try #require(three.leader())
        let slow = try #require(three.nodes.first { $0.id != leader.id })
        // It has a file: a snapshot would bring another.
        #expect(three.write([9], [1]))
        three.run(for: .seconds(1))
        three.hang(slow)
        three.run(for: .seconds(5))
        for number in 0..<150 {
            #expect(
                three.write([1, UInt8(number % 75)], Bytes(repeating: UInt8(number), count: 8_000)))
        }
        three.run(for: .seconds(3))
        #expect(leader.log.segmentCount <= 10, "\(leader.log.segmentCount) segments")
        let alarms = three.alarms.withLock { $0 }
        #expect(alarms.count { $0.contains("which the log no longer keeps") } == 1, "\(alarms)")
        #expect(leader.replicas.retentionFigures.givenUpCount > 0)
        let problem = try #require(three.status(of: leader)).problem
        #expect(problem?.contains("fell behind") == true)
        let last = try #require(three.status(of: leader)).applied
        three.hearAgain()
        three.run(for: .seconds(20))
        #expect(try #require(three.status(of: slow)).applied >= last)
        #expect(try self.hasSnapshot(slow))
    }

    /// The bound of the node, whoever filled it: 16 segments of 64 KiB.
    @Test func `C-31 a log that has reached its bound keeps nothing for followers`() throws {
        let three = try ThreeNodes(seed: 13) { setup in
            setup.tuning.trailingEntryCount = 0
            setup.retainedLogSizeMax = .kibibytes(1_024)
            setup.checkpointSize = .kibibytes(16)
        }
        let leader = try #require(three.leader())
        let slow = try #require(three.nodes.first { $0.id != leader.id })
        three.hang(slow)
        three.run(for: .seconds(5))
        var most = 0
        for number in 0..<300 {
            #expect(
                three.write(
                    [1, UInt8(number % 75)], Bytes(repeating: UInt8(number & 255), count: 8_000)))
            most = max(most, leader.log.segmentCount)
        }
        #expect(most > 12 && most <= 22, "\(most) segments")
        #expect(leader.replicas.retentionFigures.givenUpCount > 0)
    }
}
