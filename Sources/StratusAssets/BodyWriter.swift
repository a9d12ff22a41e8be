package import StratusModel

/// Brings the sealed chunks of one body to a majority of the members.
///
/// A state machine: it is told what happened and says what to do, in order. Time is told too.
///
/// - Each chunk goes to every member. It is *done* when a majority of each voter set has it; at
///   most ``Limits/undoneCountMax`` are not done.
/// - A member that lags by more than ``Limits/lagMax`` chunks, refuses, or stays silent several
///   times is given up.
/// - The body is stored when a majority of each voter set has **all** of it: chunks on different
///   majorities would leave fewer members with the whole.
/// - A writer that ends without that tells every member to drop the body. After
///   ``Action/stored(_:)`` it never does: the pin may have been said.
package struct BodyWriter: Sendable {
    package struct Limits: Sendable, Equatable {
        package var undoneCountMax = 4
        package var lagMax = 8
        /// Tries of one chunk at one member.
        package var triesMax = 4
        /// Before the second try; twice as long before each other.
        package var retryDelay = Duration.milliseconds(50)
        package init() {}
    }

    package enum Failure: Error, Sendable, Equatable {
        /// So many members were given up that no majority is left.
        case noMajority
        case deadline
        case cancelled
    }

    package enum Action: Sendable, Equatable {
        case put(StoredCopy, on: NodeID)
        case drop(on: NodeID)
        /// A majority has all of it, synced: who, and since which index of theirs.
        case stored([CopyHolding])
        case failed(Failure)
    }

    private struct Try: Sendable, Equatable {
        var count = 1
        /// Nil: it is under way.
        var againAt: MonotonicTime?
    }

    private struct Member: Sendable, Equatable {
        var isGivenUp = false
        /// Chunks that are on their way, or that wait for another try.
        var open: [UInt32: Try] = [:]
        var storedCount: UInt32 = 0
        var least: LogIndex?
    }

    private let limits: Limits
    package let body: BodyID
    private let orphanAfterMilliseconds: Int64
    private let voterSets: [Set<NodeID>]
    private let deadline: MonotonicTime
    private var members: [NodeID: Member]
    /// Chunks that some member still lacks.
    private var chunks: [UInt32: StoredCopy] = [:]
    private var holders: [UInt32: Set<NodeID>] = [:]
    private var nextOrdinal: UInt32 = 0
    private var undone: Set<UInt32> = []
    private var hasEnded = false
    package private(set) var isOver = false

    /// - Parameters:
    ///   - members: who gets the body: every voter, and who is to become one.
    ///   - voterSets: the voters; in a joint configuration the incoming ones as a second set.
    package init(
        _ body: BodyID, orphanAfterMilliseconds: Int64, members: Set<NodeID>,
        voterSets: [Set<NodeID>], deadline: MonotonicTime, limits: Limits = Limits()
    ) {
        precondition(!voterSets.isEmpty && voterSets.allSatisfy { !$0.isEmpty }, "no voters")
        self.body = body
        self.orphanAfterMilliseconds = orphanAfterMilliseconds
        self.voterSets = voterSets
        self.deadline = deadline
        self.limits = limits
        let all = voterSets.reduce(members) { $0.union($1) }
        self.members = Dictionary(uniqueKeysWithValues: all.map { ($0, Member()) })
    }

    /// Whether another chunk is taken now. Who has none to give waits until it is.
    package var wantsChunk: Bool {
        !self.isOver && !self.hasEnded
            && self.undone.count < self.limits.undoneCountMax
            && self.chunks.count <= self.limits.lagMax
    }

    /// Sealed chunks that are held in memory.
    package var chunkCount: Int { self.chunks.count }

    /// When ``tick(_:)`` has something to do.
    package var nextWake: MonotonicTime? {
        if self.isOver { return nil }
        var next = self.deadline
        for member in self.members.values where !member.isGivenUp {
            for attempt in member.open.values {
                if let at = attempt.againAt { next = min(next, at) }
            }
        }
        return next
    }

    // MARK: What happens

    /// The next chunk, in order. Only while ``wantsChunk``.
    package mutating func add(_ bytes: Bytes) -> [Action] {
        if self.isOver { return [] }
        precondition(!self.hasEnded, "a chunk behind the end of its body")
        let copy = StoredCopy(
            name: CopyName(body: self.body, ordinal: self.nextOrdinal),
            orphanAfterMilliseconds: self.orphanAfterMilliseconds, bytes: bytes)
        let ordinal = self.nextOrdinal
        self.nextOrdinal += 1
        self.chunks[ordinal] = copy
        self.holders[ordinal] = []
        self.undone.insert(ordinal)
        var actions: [Action] = []
        for node in self.nodes where self.members[node]!.isGivenUp == false {
            self.members[node]!.open[ordinal] = Try()
            actions.append(.put(copy, on: node))
        }
        return actions + self.settle()
    }

    /// All chunks were given.
    package mutating func end() -> [Action] {
        self.hasEnded = true
        return self.settle()
    }

    /// A member answered a put. Answers may come twice, late, or out of order.
    package mutating func answered(
        _ answer: CopyAnswer, to ordinal: UInt32, by node: NodeID, at now: MonotonicTime
    ) -> [Action] {
        guard !self.isOver, let member = self.members[node], !member.isGivenUp,
            let attempt = member.open[ordinal]
        else { return [] }
        switch answer {
        case .stored(let index):
            self.members[node]!.open[ordinal] = nil
            self.members[node]!.storedCount += 1
            self.members[node]!.least = min(member.least ?? index, index)
            self.holders[ordinal]?.insert(node)
            if let holders = self.holders[ordinal], self.isMajority(holders) {
                self.undone.remove(ordinal)
            }
        case .refused(let refusal) where refusal != .busy: self.giveUp(node)
        case .refused, .silent:
            // One that waits already was answered twice.
            guard attempt.againAt == nil else { return [] }
            self.members[node]!.open[ordinal] = self.again(attempt, now)
            if self.members[node]!.open[ordinal] == nil { self.giveUp(node) }
        }
        return self.settle()
    }

    package mutating func tick(_ now: MonotonicTime) -> [Action] {
        if self.isOver { return [] }
        if now >= self.deadline { return self.fail(.deadline) }
        var actions: [Action] = []
        for node in self.nodes where self.members[node]!.isGivenUp == false {
            for (ordinal, attempt) in self.members[node]!.open.sorted(by: { $0.key < $1.key }) {
                guard let at = attempt.againAt, at <= now, let copy = self.chunks[ordinal] else {
                    continue
                }
                self.members[node]!.open[ordinal]!.againAt = nil
                actions.append(.put(copy, on: node))
            }
        }
        return actions
    }

    /// The client went away, or what it wanted is not wanted any more.
    package mutating func cancel() -> [Action] {
        self.isOver ? [] : self.fail(.cancelled)
    }

    // MARK: What follows

    /// Nothing depends on the order of a dictionary.
    private var nodes: [NodeID] { self.members.keys.sorted() }

    private func isMajority(_ nodes: Set<NodeID>) -> Bool {
        self.voterSets.allSatisfy { $0.intersection(nodes).count * 2 > $0.count }
    }

    private func hasAll(_ node: NodeID) -> Bool {
        guard let member = self.members[node] else { return false }
        return !member.isGivenUp && member.storedCount == self.nextOrdinal
    }

    private func again(_ attempt: Try, _ now: MonotonicTime) -> Try? {
        // What would be sent at the deadline or later is not sent: nobody would wake for it.
        let time = now + self.limits.retryDelay * (1 << (attempt.count - 1))
        guard attempt.count < self.limits.triesMax, time < self.deadline else { return nil }
        return Try(count: attempt.count + 1, againAt: time)
    }

    private mutating func giveUp(_ node: NodeID) {
        self.members[node]!.isGivenUp = true
        self.members[node]!.open = [:]
    }

    private mutating func settle() -> [Action] {
        self.giveUpLaggards()
        let active = Set(self.nodes.filter { self.members[$0]!.isGivenUp == false })
        guard self.isMajority(active) else { return self.fail(.noMajority) }
        for ordinal in self.chunks.keys
        where active.allSatisfy({ self.holders[ordinal]!.contains($0) }) {
            self.chunks[ordinal] = nil
            self.holders[ordinal] = nil
        }
        guard self.hasEnded, !self.isOver else { return [] }
        // An empty body is nowhere, and so on every member.
        let holdings = self.nodes.filter(self.hasAll)
            .map { CopyHolding(node: $0, at: self.members[$0]!.least ?? .zero) }
        guard self.isMajority(Set(holdings.map(\.node))) else { return [] }
        self.isOver = true
        self.chunks = [:]
        self.holders = [:]
        return [.stored(holdings)]
    }

    /// Only for those that a majority can do without: the slowest of a majority sets the pace.
    private mutating func giveUpLaggards() {
        let doneCount = Int(self.nextOrdinal) - self.undone.count
        for node in self.nodes where self.members[node]!.isGivenUp == false {
            let lag = doneCount - Int(self.members[node]!.storedCount)
            if lag > self.limits.lagMax { self.giveUp(node) }
        }
    }

    private mutating func fail(_ failure: Failure) -> [Action] {
        self.isOver = true
        self.chunks = [:]
        self.holders = [:]
        return self.nodes.map { .drop(on: $0) } + [.failed(failure)]
    }
}
