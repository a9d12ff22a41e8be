import StratusModel
import StratusPlacement
import StratusRows
import Testing

/// One system partition, and short words to drive it.
struct SystemBench {
    let rows = Rows()
    var state = SystemState()
    var milliseconds: Int64 = 1_700_000_000_000
    private var index: UInt64 = 0

    static let cluster = ClusterID(high: 0xC1, low: 0x05)
    static let token = Bytes(repeating: 7, count: 32)

    static func peer(_ number: UInt32, rack: String = "") -> ClusterNode {
        ClusterNode(
            id: NodeID(number), name: "n\(number)", address: "10.0.0.\(number):7400", rack: rack)
    }

    static func newcomer(_ number: UInt32) -> ClusterNode {
        var node = Self.peer(number)
        node.key = Bytes(repeating: UInt8(truncatingIfNeeded: number), count: 32)
        return node
    }

    static func formation(
        nodes: Int = 3, partitionCount: Int = 8, replicaCount: Int = 3
    ) -> Formation {
        Formation(
            cluster: Self.cluster, partitionCount: partitionCount, replicaCount: replicaCount,
            nodes: (1...nodes).map { Self.peer(UInt32($0)) })
    }

    init() {}

    init(formed nodes: Int, partitionCount: Int = 8, replicaCount: Int = 3) throws {
        let outcome = try self.apply(
            .form(
                Self.formation(
                    nodes: nodes, partitionCount: partitionCount, replicaCount: replicaCount)))
        try #require(outcome == .done(revision: 1))
    }

    @discardableResult
    mutating func apply(_ command: SystemCommand, as kind: Principal.Kind = .system) throws
        -> SystemOutcome
    {
        self.index += 1
        self.milliseconds += 10
        let envelope = try SystemCommand(decoding: command.encoded()).enveloped(
            identity: RequestIdentity(high: 0, low: self.index), deadlineMilliseconds: .max,
            principal: Principal(kind: kind))
        let outcome = try self.state.apply(
            envelope,
            at: EntryPosition(
                index: LogIndex(self.index), time: HybridTime(milliseconds: self.milliseconds)),
            over: self.rows)
        #expect(outcome.verdict == .decided)
        return try SystemOutcome(decoding: outcome.body)
    }

    /// The refusal's reason; nil when it was done.
    mutating func refusal(_ command: SystemCommand, as kind: Principal.Kind = .system) throws
        -> SystemRefusal.Reason?
    {
        if case .refused(let refusal) = try self.apply(command, as: kind) {
            return refusal.reason
        }
        return nil
    }

    func ask(_ query: SystemQuery) throws -> SystemAnswer {
        let body = try SystemQuery(decoding: query.encoded()).encoded()
        let answer = try self.state.answer(Query(kind: .system, body: body), over: self.rows.view)
        return try SystemAnswer(decoding: answer.body)
    }

    var view: ClusterView {
        get throws {
            guard case .view(let view?) = try self.ask(.view) else {
                throw SystemRefusal(.notFormed)
            }
            return view
        }
    }

    /// A token, and a node admitted by it that has announced itself.
    mutating func join(_ number: UInt32) throws -> NodeID {
        var hash = Self.token
        hash[0] = UInt8(truncatingIfNeeded: number)
        try self.apply(.addToken(hash: hash, expiresMilliseconds: .max))
        var node = Self.newcomer(number)
        guard case .joined(let id, _) = try self.apply(.join(node, tokenHash: hash)) else {
            throw SystemRefusal(.badRequest)
        }
        node = ClusterNode(
            id: id, name: node.name, address: node.address,
            incarnation: NodeIncarnation(UInt64(number)), directory: UInt64(number), key: node.key)
        try #require(try self.refusal(.announce(node)) == nil)
        return id
    }
}
