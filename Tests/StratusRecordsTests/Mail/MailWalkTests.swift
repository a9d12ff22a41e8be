import Foundation
import StratusDoubles
import StratusModel
import StratusRecords
import Testing

/// Mail from partition to partition through the real log, consensus, rows and router, with the
/// process ending at every single operation of its disk.
@Suite struct MailWalkTests {
    /// Two starts of the process, with letters written in between. Returns what was acknowledged.
    private static func script(over world: SimulatedWorld, seed: UInt64) -> (
        acknowledged: [String], operationCount: Int
    ) {
        var acknowledged: [String] = []
        for start in 0..<2 {
            guard let node = try? LetterNode(over: world, seed: seed &+ UInt64(start)) else {
                break
            }
            for round in 0..<3 {
                for sender in LetterNode.groups {
                    let receiver = LetterNode.groups[(Int(sender.raw) + round) % 3]
                    let text = "ask \(start).\(round).\(sender.raw)"
                    let answer = node.submit(
                        .write([LetterState.Wish.Line(receiver: receiver, text: text)]),
                        to: sender)
                    if answer == LetterState.done {
                        acknowledged.append("\(sender)→\(receiver) \(text)")
                    }
                }
                _ = node.submit(.work, to: LetterNode.groups[round])
            }
            // Nobody says goodbye: the process just ends.
        }
        return (acknowledged, world.simulatedFiles.operationCount)
    }

    /// Everything acknowledged has arrived, once and in order, and nothing waits any more.
    private static func verify(
        _ acknowledged: [String], over world: SimulatedWorld, _ situation: String
    ) throws {
        let node = try LetterNode(over: world, seed: 77)
        node.run(for: .seconds(20))
        for _ in 0..<3 {
            for group in LetterNode.groups { _ = node.submit(.work, to: group) }
            node.run(for: .seconds(2))
        }
        var found: Set<String> = []
        for sender in LetterNode.groups {
            for receiver in LetterNode.groups {
                let posted = try #require(node.lines(0, of: sender, with: receiver))
                let received = try #require(node.lines(1, of: receiver, with: sender))
                #expect(posted == received, "\(situation): \(sender)→\(receiver)")
                found.formUnion(received.map { "\(sender)→\(receiver) \($0)" })
            }
        }
        for letter in acknowledged {
            #expect(found.contains(letter), "\(situation): '\(letter)' is gone")
        }
        node.stop()
    }

    @Test(arguments: [DiskRestart.processCrash, .powerLossLosingAll])
    func `a crash at any file operation loses no mail and repeats none`(restart: DiskRestart)
        throws
    {
        let calm = Self.script(over: SimulatedWorld(seed: 1), seed: 2)
        #expect(calm.acknowledged.count == 18)
        #expect(calm.operationCount > 50, "the walk hardly touches the disk")
        let isWhole = ProcessInfo.processInfo.environment["STRATUS_SWEEP"] == "all"
        let step = isWhole ? 1 : max(1, calm.operationCount / 25)
        let first = restart == .processCrash ? 1 : 1 + step / 2
        for number in stride(from: first, through: calm.operationCount, by: step) {
            let world = SimulatedWorld(seed: UInt64(number))
            world.simulatedFiles.plan(DiskFault(at: number, .crash))
            let run = Self.script(over: world, seed: 2)
            world.simulatedFiles.restart(after: restart)
            world.simulatedFiles.clearFaults()
            try Self.verify(
                run.acknowledged, over: world,
                "crash at operation \(number) of \(calm.operationCount)")
        }
    }

    /// The count by which a courier hears of mail must not begin again: the second letter writes as
    /// many rows as the first.
    @Test func `mail of a partition that was closed in between leaves too`() throws {
        let node = try LetterNode(over: SimulatedWorld(seed: 4), seed: 4, openPartitionCountMax: 0)
        var sent: [String] = []
        for round in 0..<4 {
            sent.append("tell \(round)")
            let line = LetterState.Wish.Line(receiver: GroupID(2), text: sent[round])
            #expect(node.submit(.write([line]), to: GroupID(1)) == LetterState.done)
            node.run(for: .seconds(1))
            // Whoever works now closes what others left open.
            for _ in 0..<3 {
                _ = node.submit(.work, to: GroupID(3))
                node.run(for: .seconds(1))
            }
            #expect(node.lines(1, of: GroupID(2), with: GroupID(1)) == sent)
        }
        node.stop()
    }

    @Test func `mail is received at once while clients are turned away`() throws {
        var limits = Limits()
        limits.pendingCommandCountMax = 0
        let world = SimulatedWorld(seed: 1)
        do {
            let node = try LetterNode(over: world, seed: 1, carries: false)
            let line = LetterState.Wish.Line(receiver: GroupID(2), text: "tell")
            #expect(node.submit(.write([line]), to: GroupID(1)) == LetterState.done)
            #expect(node.lines(1, of: GroupID(2), with: GroupID(1)) == [])
            node.stop()
        }
        // A queue that has room for nobody.
        let full = try LetterNode(over: world, seed: 2, limits: limits)
        full.run(for: .seconds(5))
        #expect(
            full.submit(
                .write([LetterState.Wish.Line(receiver: GroupID(3), text: "no")]), to: GroupID(1))
                == nil)
        full.stop()
        let after = try LetterNode(over: world, seed: 3)
        after.run(for: .seconds(1))
        #expect(after.lines(1, of: GroupID(2), with: GroupID(1)) == ["tell"])
        #expect(after.lines(1, of: GroupID(3), with: GroupID(1)) == [])
        after.stop()
    }
}
