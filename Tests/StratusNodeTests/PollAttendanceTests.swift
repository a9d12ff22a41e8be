import StratusCluster
import StratusGateway
import StratusModel
import StratusRuntime
import Synchronization
import Testing

@testable import StratusNode

/// What nodes tell each other of polls.
@Suite struct PollAttendanceTests {
    /// Two nodes, the messages between them, and whether they arrive.
    private final class Street: Sendable {
        let polls = [HeldRequests(), HeldRequests()]
        let sent = Mutex<[String]>([])
        let arrives = Mutex(true)
        private let all = Mutex<[PollAttendance]>([])

        init() {
            for number in 0..<2 {
                let node = NodeID(UInt32(number + 1))
                let other = NodeID(UInt32(2 - number))
                let attendance = PollAttendance(
                    self.polls[number], of: node, others: { [other] },
                    now: { MonotonicTime(nanoseconds: 1) },
                    send: { [unowned self] question, to in
                        self.sent.withLock { $0.append("\(question) to \(to)") }
                        guard self.arrives.withLock({ $0 }) else { return false }
                        self.node(to).hear(question)
                        return true
                    })
                self.all.withLock { $0.append(attendance) }
            }
        }

        func node(_ id: NodeID) -> PollAttendance {
            self.all.withLock { $0[Int(id.raw) - 1] }
        }
    }

    private static func eventually(_ condition: () -> Bool) async throws {
        for _ in 0..<10_000 where !condition() { try await Task.sleep(for: .milliseconds(1)) }
        #expect(condition())
    }

    @Test func `a change is told to the node whose polls wait for it, and to no other`()
        async throws
    {
        let street = Street()
        let (one, two) = (street.node(NodeID(1)), street.node(NodeID(2)))
        two.stirred(5)
        try await Task.sleep(for: .milliseconds(10))
        #expect(street.sent.withLock { $0 } == [])
        one.watched([5, 7])
        try await Self.eventually { street.sent.withLock { $0.count } == 1 }
        two.stirred(5)
        two.stirred(6)
        try await Self.eventually { street.sent.withLock { $0.count } == 2 }
        let last = street.sent.withLock { $0.last }
        #expect(last == "\(NodeQuestion.stirred([5])) to \(NodeID(1))")
        // Nothing is watched there now.
        one.sayAll()
        try await Self.eventually { street.sent.withLock { $0.count } == 3 }
        two.stirred(5)
        try await Task.sleep(for: .milliseconds(10))
        #expect(street.sent.withLock { $0.count } == 3)
    }

    @Test func `what does not arrive is not repeated, and sending goes on`() async throws {
        let street = Street()
        let (one, two) = (street.node(NodeID(1)), street.node(NodeID(2)))
        street.arrives.withLock { $0 = false }
        one.watched([5])
        try await Self.eventually { street.sent.withLock { $0.count } == 1 }
        street.arrives.withLock { $0 = true }
        two.stirred(5)
        one.watched([6])
        try await Self.eventually { street.sent.withLock { $0.count } == 2 }
        two.stirred(6)
        try await Self.eventually { street.sent.withLock { $0.count } == 3 }
    }

    @Test func `one message to a node is under way at a time, and what is named is bounded`()
        async throws
    {
        let polls = HeldRequests()
        let sent = Mutex<[NodeQuestion]>([])
        let gate = Mutex<CheckedContinuation<Void, Never>?>(nil)
        let attendance = PollAttendance(
            polls, of: NodeID(1), others: { [NodeID(2)] },
            now: { MonotonicTime(nanoseconds: 1) },
            send: { question, _ in
                sent.withLock { $0.append(question) }
                if sent.withLock({ $0.count }) == 1 {
                    await withCheckedContinuation { waiter in gate.withLock { $0 = waiter } }
                }
                return true
            })
        let count = UInt64(PollAttendance.stirredCountMax)
        attendance.hear(.attend(node: NodeID(2), databases: Array(0...count), isWhole: true))
        attendance.stirred(0)
        try await Self.eventually { gate.withLock { $0 != nil } }
        for database in 0...count { attendance.stirred(database) }
        #expect(sent.withLock { $0.count } == 1)
        gate.withLock { $0.take() }?.resume()
        try await Self.eventually { sent.withLock { $0.count } == 2 }
        guard case .stirred(let named)? = sent.withLock({ $0.last }) else {
            Issue.record("another message")
            return
        }
        #expect(named.count == PollAttendance.stirredCountMax)
    }
}
