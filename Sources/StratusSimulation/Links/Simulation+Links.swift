import StratusCluster
import StratusCoding
import StratusModel
import StratusPlacement
import StratusStorage

// Clusters whose nodes talk by the real links.
extension Simulation {
    private static let responseDelay = Duration.milliseconds(100)

    // MARK: A process begins and ends

    /// Nil where messages go from process to process as they are.
    func makeLinks(of node: SimulatedNode) throws -> ProcessLinks? {
        guard let streams else { return nil }
        let starts = try StartFile.begin(
            in: node.world, as: NodeIncarnation(node.incarnation), bugs: self.bugs)
        let memory = try PeerMemory(in: node.world)
        let loop = SimulatedLoop(of: node, over: streams)
        let (id, life) = (node.id, node.incarnation)
        let simulated = UncheckedSimulation(self)
        let links = PeerLinks(
            PeerIdentity(
                cluster: ClusterID(high: 1, low: self.report.seed), node: id,
                name: "node\(id.raw)", data: RequestIdentity(high: UInt64(id.raw), low: 1),
                starts: starts),
            memory: memory, over: loop, tuning: streams.shape.tuning,
            events: PeerLinks.Events(
                received: { from, message, receipt in
                    simulated.value.heard(message, from: from, receipt, by: id, life: life)
                },
                linkChanged: { other, isOpen in
                    simulated.value.linkChanged(id, other, isOpen: isOpen)
                },
                returned: { other in
                    let node = simulated.value.node(id)
                    if node.incarnation == life, node.isUp { node.shells?.lost(other) }
                },
                processEnded: { other in
                    let node = simulated.value.node(id)
                    guard node.incarnation == life, node.isUp else { return }
                    simulated.value.processEnded(other, for: node)
                },
                refused: { other, refusal in
                    simulated.value.streams?.count("refused: \(refusal.reason)")
                    simulated.value.note("\(id) is refused by \(other): \(refusal.text)")
                    // Nobody puts an older copy back here, and no end may look like one.
                    if refusal.reason == .olderCopy {
                        simulated.value.invariants.report(
                            "S-17 no older copy", "\(id), by \(other): \(refusal.text)")
                    }
                },
                trouble: { peer, what in
                    simulated.value.countTrouble(what)
                    simulated.value.note("\(id) link of \(peer): \(what)")
                }))
        return ProcessLinks(loop: loop, peers: links, memory: memory)
    }

    func startLinks(of node: SimulatedNode) {
        node.links?.setPeers(self.addresses(for: node))
        _ = self.hasEnded(node)
    }

    private func addresses(for node: SimulatedNode) -> [PeerAddress] {
        if let directory = node.shells?.directory { return directory.peers }
        return self.nodes.map { other in
            PeerAddress(
                node: other.id, name: "node\(other.id.raw)", host: "node\(other.id.raw)", port: 1)
        }
    }

    /// Makes a node's links and memory follow a view.
    func followLinks(on node: SimulatedNode) {
        guard let links = node.links, let directory = node.shells?.directory else { return }
        do throws(DiskError) { try links.memory.follow(directory.view) } catch {
            self.note("\(node.id) PEERS: \(error)")
        }
        links.setPeers(directory.peers)
    }

    private func countTrouble(_ what: String) {
        if what.hasPrefix("was silent") { self.streams?.count("half-open, silent") }
        if what.hasPrefix("did not answer our hello") { self.streams?.count("hello not answered") }
        if what.hasPrefix("was refused") { self.streams?.count("turned a stranger away") }
    }

    func endLinks(of node: SimulatedNode) {
        guard let streams, let links = node.links else { return }
        links.loop.end()
        // Something of them may be what runs just now.
        streams.buried.append(links)
        node.links = nil
    }

    // MARK: Talking

    /// - Returns: false when the link has not taken it.
    func say(_ message: PeerMessage, _ node: SimulatedNode, to other: NodeID) -> Bool {
        guard let streams, let links = node.links?.peers else { return false }
        guard links.send(message, to: other) else {
            streams.count(links.isOpen(to: other) ? "not taken: full" : "not taken: not open")
            return false
        }
        if let violation = streams.ledger.says(
            message.encoded(), message.priority, node, to: other)
        {
            self.invariants.report(violation.rule, violation.text)
        }
        return true
    }

    /// The answer to a request is said once more where the link back is a moment behind.
    func sayTwice(_ message: PeerMessage, _ node: SimulatedNode, to other: NodeID) -> Bool {
        if self.say(message, node, to: other) { return true }
        guard case .response = message, let loop = node.links?.loop else { return false }
        let simulated = UncheckedSimulation(self)
        let id = node.id
        loop.schedule(at: loop.now + Self.responseDelay) {
            let simulation = simulated.value
            _ = simulation.say(message, simulation.node(id), to: other)
        }
        return false
    }

    /// Tells a node that the process of another has ended. Its links found that out, or the network
    /// in their place.
    func processEnded(_ other: NodeID, for node: SimulatedNode) {
        self.note("\(node.id) finds that the process of \(other) has ended")
        self.mix(16, node.id.raw, other.raw, 0, 0)
        self.report.linkCounts["processes found ended", default: 0] += 1
        self.enter(node) { host, now, effects in
            host.peerEnded(other, at: now, into: &effects)
        }
    }

    private func linkChanged(_ id: NodeID, _ other: NodeID, isOpen: Bool) {
        guard let streams else { return }
        self.note("\(id) link with \(other) \(isOpen ? "is open" : "broke")")
        streams.count(isOpen ? "opened" : "broke")
        if isOpen, let current = streams.current {
            streams.ledger.opens(current.connection, from: id, to: other)
        } else {
            self.node(id).shells?.lost(other)
        }
    }

    private func heard(
        _ message: PeerMessage, from: NodeID, _ receipt: PeerReceipt, by id: NodeID, life: UInt64
    ) {
        let node = self.node(id)
        guard let streams, let current = streams.current, node.isUp, node.incarnation == life
        else { return }
        let bytes = message.encoded()
        let opener = streams.connections[current.connection]?.ends.first
        if let violation = streams.ledger.hears(
            bytes, message.priority, from: from, by: node, at: current, opener: opener)
        {
            self.invariants.report(violation.rule, violation.text)
        }
        if node.links?.members.contains(from) != true {
            self.invariants.report("members only", "\(id) hears \(from), which is no member there")
        }
        self.settle(receipt, bytes.count, message.priority, current, node)
        switch message {
        case .heartbeat(let heartbeat):
            self.mix(2, from.raw, id.raw, heartbeat.sequence, 0)
            self.enter(node) { host, now, effects in
                host.receive(
                    heartbeat, from: from, node.vitals(self.now), at: now, into: &effects)
            }
        case .consensus(let group, let message):
            self.mix(1, from.raw, id.raw, message.term.raw, UInt64(group.raw))
            self.deliver(message, of: group, from: from, to: node)
        case .response(let response) where node.parcels[response.number] != nil:
            self.answered(response.number, response.answer, on: node)
        default: self.hear(message, from: from, to: node)
        }
    }

    /// At once, or when the receiver gets to it.
    private func settle(
        _ receipt: PeerReceipt, _ size: Int, _ priority: PeerMessage.Priority,
        _ stream: SimulatedStream, _ node: SimulatedNode
    ) {
        guard priority != .vital, let streams, let loop = node.links?.loop else { return }
        let connection = stream.connection
        let most = streams.shape.settleDelayMax
        let delay = most > 0 ? Int64.random(in: 0...most, using: &streams.random) : 0
        guard delay > 0 else {
            streams.ledger.settles(size, connection)
            return receipt.settle()
        }
        loop.schedule(at: loop.now + .nanoseconds(delay)) { [weak streams] in
            streams?.ledger.settles(size, connection)
            receipt.settle()
        }
    }

    func linkTurn(_ node: SimulatedNode, _ turn: UInt64) {
        node.links?.loop.run(turn)
        _ = self.hasEnded(node)
    }

    func handle(_ event: LinkEvent) {
        switch event {
        case .stream(let event): self.streams?.handle(event)
        case .stranger: self.stranger()
        }
    }

    private func stranger() {
        guard let streams, self.phase == .safety else { return }
        streams.sendStranger()
        self.queue.add(.link(.stranger), at: self.now + streams.drawTime(200...4_000))
    }

    // MARK: Coming right

    /// A link that members have not opened; nil where there is none, or no links.
    func findLinksProblem() -> String? {
        guard self.streams != nil else { return nil }
        for node in self.nodes {
            guard let links = node.links?.peers, self.isMember(node.id) else { continue }
            for peer in self.addresses(for: node)
            where peer.node != node.id && self.node(peer.node).isUp && self.isMember(peer.node) {
                if !links.isOpen(to: peer.node) {
                    return "the link from \(node.id) to \(peer.node) is not open"
                }
            }
        }
        return nil
    }

    /// Whether the node is a member. A removed node need not know that it was removed: nobody talks
    /// to it any more.
    private func isMember(_ id: NodeID) -> Bool {
        guard let view = self.placed?.view else { return true }
        return view.node(id)?.isMember == true
    }
}

/// For closures that must be `Sendable`.
///
/// `@unchecked`: they run in the simulation's thread only.
private struct UncheckedSimulation: @unchecked Sendable {
    unowned let value: Simulation
    init(_ value: Simulation) { self.value = value }
}
