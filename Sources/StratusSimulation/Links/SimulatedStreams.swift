import StratusCluster
import StratusDoubles
import StratusModel

/// An event of a simulated connection.
enum StreamEvent {
    /// Its first packet arrives.
    case knock(Int)
    /// The handshake ends, as this side sees it.
    case shake(Int, side: Int)
    /// Something written at this side may arrive at the other.
    case step(Int, side: Int)
    /// This side notices that the connection is broken.
    case sever(Int, side: Int, LinkEnd)
}

/// The connections between the processes of a simulation. They carry bytes in order and unaltered,
/// in pieces of any size. Pieces may be late, stalled by cuts, or lost with their connection, and
/// sometimes nobody tells its ends.
final class SimulatedStreams {
    unowned let simulation: Simulation
    let shape: StreamShape
    var random: SeededGenerator
    var connections: [Int: SimulatedConnection] = [:]
    var connectionCount = 0
    var ledger: LinkLedger
    /// The end at which something arrives just now.
    var current: SimulatedStream?
    /// Strangers that connected lately and must not be heard.
    var strangers: [Stranger] = []
    /// When a node's last connection to another ended.
    private var endedAt: [NodeID: [NodeID: Int64]] = [:]
    /// The links of processes that ended while some of their work was still running.
    var buried: [ProcessLinks] = []

    init(_ simulation: Simulation, seed: UInt64, _ options: SimulationOptions, bugs: PlantedBugs) {
        self.simulation = simulation
        var random = SeededGenerator(seed: seed ^ 0x6C69_6E6B_7300_0001)
        let shape = StreamShape(options, bugs: bugs, &random)
        self.random = random
        self.shape = shape
        self.ledger = LinkLedger(shape.tuning)
    }

    static let strangersLife = UInt64.max

    /// A node tries again that has waited as long as it ever does.
    func countPatience(of host: NodeID, with target: NodeID) {
        guard let ended = self.endedAt[host]?[target],
            self.simulation.now - ended >= 900_000_000
        else { return }
        self.count("backed off to the most")
    }

    var isFaulty: Bool { self.simulation.phase == .safety }

    func has(_ fault: SimulationOptions.Fault) -> Bool {
        self.isFaulty && self.simulation.options.faults.contains(fault)
    }

    func draw(_ count: UInt64) -> UInt64 { self.random.next() % count }

    func drawTime(_ milliseconds: ClosedRange<Int64>) -> Int64 {
        Int64.random(
            in: milliseconds.lowerBound * 1_000_000...milliseconds.upperBound * 1_000_000,
            using: &self.random)
    }

    func latency() -> Int64 {
        let options = self.simulation.options
        return Int64.random(
            in: options.delayMin.clampedNanoseconds...options.delayMax.clampedNanoseconds,
            using: &self.random)
    }

    func count(_ what: String) { self.simulation.report.linkCounts[what, default: 0] += 1 }

    func add(_ event: StreamEvent, after delay: Int64) {
        self.simulation.queue.add(.link(.stream(event)), at: self.simulation.now + delay)
    }

    func handle(_ event: StreamEvent) {
        switch event {
        case .knock(let number):
            if let connection = self.connections[number] { self.knock(connection) }
        case .shake(let number, let side):
            if let connection = self.connections[number] { self.shake(connection, side) }
        case .step(let number, let side):
            if let connection = self.connections[number] { self.step(connection, side) }
        case .sever(let number, let side, let end):
            guard let connection = self.connections[number], side < connection.ends.count else {
                return
            }
            self.end(connection.ends[side], end)
        }
    }

    // MARK: Where things are

    /// Whether a packet from one machine arrives at another.
    func passes(from one: NodeID, to other: NodeID) -> Bool {
        !self.simulation.cuts.contains { $0.from == one && $0.to == other } && self.hasPower(other)
    }

    private func hasPower(_ id: NodeID) -> Bool {
        let node = self.simulation.node(id)
        return node.isUp || node.end == .processCrash
    }

    /// - Returns: when the process goes on; nil when it runs.
    func pause(of id: NodeID) -> Int64? {
        let until = self.simulation.node(id).pausedUntil
        return until > self.simulation.now ? until : nil
    }

    // MARK: Calling into processes

    func call(_ stream: SimulatedStream, _ body: (any LinkStreamUser) -> Void) {
        let node = self.simulation.node(stream.host)
        guard let user = stream.user else { return }
        if stream.life == Self.strangersLife { return body(user) }
        guard node.isUp, node.incarnation == stream.life else { return }
        let outer = self.current
        self.current = stream
        body(user)
        self.current = outer
        _ = self.simulation.hasEnded(node)
    }

    /// The connection is over for this end, and its user is told.
    func end(_ stream: SimulatedStream, _ end: LinkEnd) {
        guard stream.phase != .gone, let connection = self.connections[stream.connection] else {
            return
        }
        if let until = self.pause(of: stream.host) {
            return self.add(
                .sever(stream.connection, side: stream.side, end),
                after: until - self.simulation.now)
        }
        stream.phase = .gone
        if stream.side == 0 {
            self.endedAt[stream.host, default: [:]][connection.target] = self.simulation.now
        }
        // Bytes that have left may still arrive, even beside those that its process sends on
        // another connection.
        connection.pipes[stream.side].stalledSince = nil
        if end == .closed {
            connection.pipes[stream.side].clear()
        } else if !connection.isDead {
            self.loseTail(of: connection, stream.side)
        }
        self.simulation.mix(
            14, stream.host.raw, UInt32(stream.side), UInt64(stream.connection), 0)
        self.call(stream) { $0.ended(end) }
        stream.forgetUser()
        self.dropIfOver(connection)
    }

    /// Loses the end of the bytes under way. Some of them arrive, now or long after their
    /// connection was replaced.
    func loseTail(of connection: SimulatedConnection, _ side: Int) {
        connection.pipes[side].cut(&self.random)
        if self.isFaulty, self.draw(4) == 0 {
            connection.pipes[side].delay(by: self.drawTime(0...2_000))
        }
    }

    func dropIfOver(_ connection: SimulatedConnection) {
        guard connection.isOver else { return }
        self.connections[connection.number] = nil
        self.ledger.forget(connection.number)
    }

    // MARK: Processes that end

    /// Closes or abandons the connections of an ended process, as the system of its machine does.
    func processEnded(_ node: SimulatedNode, losesPower: Bool) {
        self.endedAt[node.id] = nil
        for number in self.connections.keys.sorted() {
            guard let connection = self.connections[number] else { continue }
            for stream in connection.ends
            where stream.host == node.id && stream.phase != .gone {
                self.abandon(stream, of: connection, losesPower: losesPower)
            }
        }
    }

    private func abandon(
        _ stream: SimulatedStream, of connection: SimulatedConnection, losesPower: Bool
    ) {
        stream.phase = .gone
        stream.forgetUser()
        let (side, due) = (stream.side, self.simulation.now + self.latency())
        if losesPower || self.draw(3) == 0 { self.loseTail(of: connection, side) }
        switch losesPower ? 6 : self.draw(6) {
        case 0:
            self.count("left without a word")
            connection.die()
        case 1: connection.pipes[side].add(.reset, due: due)
        case 6: self.count("left without power")
        default: connection.pipes[side].add(.goodbye, due: due)
        }
        self.schedule(connection, side)
        self.dropIfOver(connection)
    }
}
