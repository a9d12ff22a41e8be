import StratusCluster
import StratusDoubles
import StratusModel
import StratusStorage
import Testing

/// Some space stays free on a disk, so that a full one can still be emptied.
@Suite struct DiskReserveTests {
    let group = GroupID(1)
    let voters = [NodeID(1), NodeID(2), NodeID(3)]

    /// The values that the tests change and ask.
    private final class Held {
        var reserve: DiskReserve
        private let voters: [NodeID]

        init(_ reserve: DiskReserve, _ voters: [NodeID]) {
            self.reserve = reserve
            self.voters = voters
        }

        func takesIn(_ group: GroupID, _ spare: ByteCount = ByteCount(0)) -> Bool {
            self.reserve.takesIn(group, on: self.voters, spare: spare)
        }

        func note(_ free: UInt64) {
            for node in self.voters { self.reserve.note(free, on: node) }
        }
    }

    private func held(_ free: [UInt64?], size: Int = 100) -> Held {
        var reserve = DiskReserve(size: ByteCount(size))
        for (node, free) in zip(self.voters, free) {
            if let free { reserve.note(free, on: node) }
        }
        return Held(reserve, self.voters)
    }

    @Test(arguments: [
        ([100, 100, 100] as [UInt64?], true), ([99, 100, 100], true), ([99, 99, 100], false),
        ([0, 0, 0], false), ([nil, nil, nil], true), ([99, nil, nil], true),
        ([99, 99, nil], false),
    ])
    func `S-05 a group takes in while a majority of its voters has room`(
        free: [UInt64?], takesIn: Bool
    ) {
        let held = self.held(free)
        #expect(held.takesIn(self.group) == takesIn)
    }

    @Test func `S-05 what was deleted in its own file is room for a group and no other`() {
        let held = self.held([40, 40, 40])
        #expect(held.takesIn(self.group, ByteCount(60)))
        #expect(!held.takesIn(GroupID(2), ByteCount(59)))
    }

    @Test func `S-05 who was short of room waits for a quarter more than the reserve`() {
        let held = self.held([99, 99, 99])
        #expect(!held.takesIn(self.group))
        held.note(124)
        #expect(!held.takesIn(self.group))
        #expect(held.takesIn(GroupID(2)))
        held.note(125)
        #expect(!held.reserve.isNear)
        #expect(held.takesIn(self.group))
        // It is forgotten that it was short.
        held.note(110)
        #expect(held.takesIn(self.group))
    }

    @Test func `a reserve of nothing refuses nothing, and who left counts no more`() {
        let none = self.held([0, 0, 0], size: 0)
        #expect(none.takesIn(self.group))
        #expect(!none.reserve.isNear && !none.reserve.isLow(NodeID(1)))
        let held = self.held([500, 99, 99])
        held.reserve.keep(only: [NodeID(1), NodeID(2)])
        #expect(held.reserve.isLow(NodeID(2)) && !held.reserve.isLow(NodeID(3)))
        #expect(held.takesIn(self.group))
    }

    /// A node over a simulated disk: long values add, short ones do not.
    @Test func `S-05 a node that is low refuses what adds, does what does not, and comes back`()
        throws
    {
        let news = Shared<[Bool]>([])
        let node = try OneNode(seed: 1) {
            $0.reserve = .kibibytes(200)
            $0.adds = { $0.body.count > 1_000 }
            $0.events.reserveChanged = { isLow, _ in news.withLock { $0.append(isLow) } }
        }
        func write(_ size: Int) -> Bool? {
            // What was free a second ago is not asked again.
            node.world.advance(by: .seconds(2))
            let identity = node.world.drawIdentity()
            let result = Shared<Bool?>(nil)
            Task(executorPreference: node.executor) {
                let value = Bytes(repeating: 7, count: size)
                let answer = await node.submit(.write([1], value: value), identity)
                result.withLock {
                    $0 =
                        switch answer {
                        case .success: true
                        case .failure(.notExecuted(let retryAfter)):
                            retryAfter == .seconds(30) ? false : nil
                        case .failure: nil
                        }
                }
            }
            node.executor.run(until: node.world.now + .seconds(2))
            return result.withLock { $0 }
        }
        let files = node.world.simulatedFiles
        #expect(write(5_000) == true && write(10) == true)
        files.setCapacity(ByteCount(files.usedSize.raw + (100 << 10)))
        #expect(write(5_000) == false)
        #expect(write(10) == true)
        #expect(news.withLock { $0 } == [true])
        // More than the reserve, and less than a quarter more.
        files.setCapacity(ByteCount(files.usedSize.raw + (220 << 10)))
        #expect(write(5_000) == false)
        files.setCapacity(nil)
        #expect(write(5_000) == true)
        #expect(news.withLock { $0 } == [true, false])
        #expect(node.replicas.reserveFigures.refusedCount == 2)
        #expect(try node.readNow([1]).get()?.count == 5_000)
    }
}
