import StratusCluster
import StratusGateway
import StratusModel
import Synchronization

/// Tells other nodes which databases this node's polls wait for, and tells those whose polls wait
/// for a database that it has changed.
///
/// One message to each node at a time: what comes up meanwhile goes with the next. What does not
/// arrive is not repeated, but for the whole of the attendance every half minute.
final class PollAttendance: PollObserver {
    /// Databases that one message to a node names as changed. Of more, polls find out by looking.
    static let stirredCountMax = 4_096
    private static let patience = Duration.seconds(1)

    private struct Outbox {
        var isSending = false
        var saysAll = false
        var watched: Set<UInt64> = []
        var stirred: Set<UInt64> = []
        var isEmpty: Bool { !self.saysAll && self.watched.isEmpty && self.stirred.isEmpty }
    }

    private struct State {
        var attendance = Attendance()
        var outboxes: [NodeID: Outbox] = [:]
    }

    private let state = Mutex(State())
    private let polls: HeldRequests
    private let node: NodeID
    private let others: @Sendable () -> [NodeID]
    private let now: @Sendable () -> MonotonicTime
    private let send: @Sendable (NodeQuestion, NodeID) async -> Bool

    /// - Parameter send: false where the node did not answer.
    init(
        _ polls: HeldRequests, of node: NodeID, others: @escaping @Sendable () -> [NodeID],
        now: @escaping @Sendable () -> MonotonicTime,
        send: @escaping @Sendable (NodeQuestion, NodeID) async -> Bool
    ) {
        self.polls = polls
        self.node = node
        self.others = others
        self.now = now
        self.send = send
    }

    convenience init(_ polls: HeldRequests, _ cluster: NodeCluster, in world: any World) {
        self.init(
            polls, of: cluster.replicas.node,
            others: { [directory = cluster.directory] in directory.peers.map(\.node) },
            now: { world.now },
            send: { question, node in
                await cluster.ask(question, of: node, within: Self.patience) == .done(true)
            })
    }

    /// Begins to tell and to hear. Cancel the task to end it.
    func run() -> Task<Void, Never> {
        self.polls.observe(self)
        return Task {
            while !Task.isCancelled {
                self.sayAll()
                try? await Task.sleep(for: Attendance.repeatInterval)
            }
        }
    }

    /// Says the whole attendance to every other node.
    func sayAll() {
        for node in self.others() { self.put(node) { $0.saysAll = true } }
    }

    // MARK: What happens here

    func watched(_ databases: [UInt64]) {
        for node in self.others() { self.put(node) { $0.watched.formUnion(databases) } }
    }

    func stirred(_ database: UInt64) {
        let now = self.now()
        let nodes = self.state.withLock { $0.attendance.listeners(of: database, at: now) }
        for node in nodes where node != self.node {
            self.put(node) { outbox in
                if outbox.stirred.count < Self.stirredCountMax { outbox.stirred.insert(database) }
            }
        }
    }

    // MARK: What others say

    func hear(_ question: NodeQuestion) {
        switch question {
        case .attend(let node, let databases, let isWhole):
            let now = self.now()
            self.state.withLock {
                $0.attendance.heard(from: node, databases, isWhole: isWhole, at: now)
            }
        case .stirred(let databases):
            for database in databases { self.polls.stirred(database, at: self.now()) }
        default: break
        }
    }

    // MARK: Sending

    private func put(_ node: NodeID, _ change: (inout Outbox) -> Void) {
        let begins = self.state.withLock { state in
            var outbox = state.outboxes[node] ?? Outbox()
            change(&outbox)
            let begins = !outbox.isSending && !outbox.isEmpty
            outbox.isSending = outbox.isSending || begins
            state.outboxes[node] = outbox
            return begins
        }
        if begins { Task { await self.empty(node) } }
    }

    private func empty(_ node: NodeID) async {
        while let outbox = self.take(node) {
            if !outbox.stirred.isEmpty {
                _ = await self.send(.stirred(outbox.stirred.sorted()), node)
            }
            var databases = outbox.watched
            if outbox.saysAll { databases = Set(self.polls.watched) }
            guard outbox.saysAll || !databases.isEmpty else { continue }
            let names = databases.sorted().prefix(Attendance.databaseCountMax)
            let isHeard = await self.send(
                .attend(node: self.node, databases: Array(names), isWhole: outbox.saysAll), node)
            // A change that came by way of that node before it knew is looked for now.
            guard isHeard else { continue }
            for database in outbox.watched { self.polls.stirred(database, at: self.now()) }
        }
    }

    private func take(_ node: NodeID) -> Outbox? {
        self.state.withLock { state in
            guard let outbox = state.outboxes[node], !outbox.isEmpty else {
                state.outboxes[node] = nil
                return nil
            }
            var next = Outbox()
            next.isSending = true
            state.outboxes[node] = next
            return outbox
        }
    }
}
