import StratusConsensus
import StratusDoubles
import StratusModel
import StratusStorage
import Testing

@testable import StratusCluster

/// what one partition has to do does not keep a node from the others.
@Suite struct WorkTurnTests {
    @Test func `a turn is so many pieces, or so long, and one at least`() {
        var now = MonotonicTime(nanoseconds: 5)
        var turn = WorkTurn(countMax: 3, timeMax: .milliseconds(2), clock: nil)
        #expect((0..<4).map { _ in turn.begins() } == [true, true, true, false])

        turn = WorkTurn(countMax: 100, timeMax: .milliseconds(2)) { now }
        let begun = (0..<4).map { _ in
            defer { now = now + .milliseconds(1) }
            return turn.begins()
        }
        #expect(begun == [true, true, false, false])

        // The first piece may take as long as it takes.
        turn = WorkTurn(countMax: 0, timeMax: .zero) { now }
        #expect((0..<2).map { _ in turn.begins() } == [true, false])
    }

    private static let noisy = GroupID(1)
    private static let quiet = GroupID(2)

    /// Submits forty questions for one partition and then one for another, all before the node
    /// handles the first.
    /// - Returns: the groups in the order of their answers.
    private static func order(
        _ seed: UInt64, _ body: (OneNode, UInt64) -> PeerRequest.Body
    ) throws -> [GroupID] {
        let node = try OneNode(seed: seed, groupCount: 2) {
            $0.tuning.turnCountMax = 2
            $0.tuning.applySizeMax = ByteCount(1)
        }
        func ask(_ groups: [GroupID], from first: UInt64) -> [GroupID] {
            let order = Shared<[GroupID]>([])
            for (number, group) in groups.enumerated() {
                let isTaken = node.inbox.ask(
                    ReplicaInbox.Question(
                        group: group, body: body(node, first + UInt64(number)),
                        deadline: node.deadline,
                        asker: .here { answer in
                            switch answer {
                            case .outcome, .answer: order.withLock { $0.append(group) }
                            default: break
                            }
                        }), countMax: 1_000, sizeMax: 1_000_000)
                #expect(isTaken)
            }
            node.settle()
            return order.withLock { $0 }
        }
        // Nobody leads yet: this opens both, and they elect themselves.
        _ = ask([Self.noisy, Self.quiet], from: 1)
        return ask(Array(repeating: Self.noisy, count: 40) + [Self.quiet], from: 100)
    }

    @Test(arguments: 0..<5 as Range<UInt64>)
    func `one read waits for a turn of another partition's forty, not for all of them`(
        seed: UInt64
    ) throws {
        let order = try Self.order(seed) { _, _ in .query(RegisterQuery.value([1]).query) }
        #expect(order.count == 41)
        #expect(try #require(order.firstIndex(of: Self.quiet)) < 10, "\(seed)")
    }

    @Test(arguments: 0..<5 as Range<UInt64>)
    func `one save waits for a turn of another partition's forty, not for all of them`(
        seed: UInt64
    ) throws {
        let order = try Self.order(seed) { node, number in
            .command(
                node.command(.write([1], value: [2]), RequestIdentity(high: 7, low: number)))
        }
        #expect(order.count == 41)
        #expect(try #require(order.firstIndex(of: Self.quiet)) < 10, "\(seed)")
    }

    /// Many who save again as soon as they are answered: there is always another entry to apply.
    @Test(arguments: 0..<5 as Range<UInt64>)
    func `a read has its turn while entries keep coming`(seed: UInt64) throws {
        let node = try OneNode(seed: seed) {
            $0.tuning.turnCountMax = 1
            $0.tuning.applySizeMax = ByteCount(1)
        }
        _ = node.readNow([1])
        let saves = Endless(node)
        let savedBefore = Shared<Int?>(nil)
        for _ in 0..<Endless.width { saves.next() }
        saves.at(Endless.width) {
            saves.ask(.query(RegisterQuery.value([1]).query)) {
                savedBefore.withLock { $0 = saves.answered }
            }
        }
        node.settle()
        #expect(saves.answered == Endless.countMax)
        // What was committed when it was asked comes first, and a little.
        let before = try #require(savedBefore.withLock { $0 })
        #expect(before < 3 * Endless.width, "\(seed)")
    }

    private final class Endless: Sendable {
        static let width = 64
        static let countMax = 2_000
        private struct State {
            var asked: UInt64 = 0
            var answered = 0
            var then: (count: Int, body: @Sendable () -> Void)?
        }
        private let node: OneNode
        private let state = Shared(State())
        var answered: Int { self.state.withLock { $0.answered } }

        init(_ node: OneNode) { self.node = node }

        func at(_ count: Int, _ body: @escaping @Sendable () -> Void) {
            self.state.withLock { $0.then = (count, body) }
        }

        func ask(_ body: PeerRequest.Body, _ done: @escaping @Sendable () -> Void) {
            let isTaken = self.node.inbox.ask(
                ReplicaInbox.Question(
                    group: GroupID(1), body: body, deadline: self.node.deadline,
                    asker: .here { answer in
                        switch answer {
                        case .outcome, .answer: done()
                        default: break
                        }
                    }), countMax: 1_000, sizeMax: 1_000_000)
            #expect(isTaken)
        }

        func next() {
            let number = self.state.withLock { state in
                state.asked += 1
                return state.asked
            }
            guard number <= Self.countMax else { return }
            let command = self.node.command(
                .write([1], value: [2]), RequestIdentity(high: 9, low: number))
            self.ask(.command(command)) {
                let then = self.state.withLock { state in
                    state.answered += 1
                    return state.then?.count == state.answered ? state.then?.body : nil
                }
                then?()
                self.next()
            }
        }
    }
}
