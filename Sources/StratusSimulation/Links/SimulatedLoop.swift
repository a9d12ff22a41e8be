import StratusCluster
import StratusModel

/// The loop of one process' links, and their access to the simulated network. Once the process has
/// ended nothing runs on it.
///
/// `Sendable` is unchecked: a simulation and all that belongs to it run in one thread.
final class SimulatedLoop: LinkWorld, @unchecked Sendable {
    unowned let streams: SimulatedStreams
    let node: SimulatedNode
    let life: UInt64
    private var waiting: [UInt64: () -> Void] = [:]
    private var count: UInt64 = 0
    private var isOver = false

    init(of node: SimulatedNode, over streams: SimulatedStreams) {
        self.streams = streams
        self.node = node
        self.life = node.incarnation
    }

    func end() {
        self.isOver = true
        self.waiting = [:]
    }

    func run(_ turn: UInt64) { self.waiting.removeValue(forKey: turn)?() }

    private func add(_ action: @escaping () -> Void, at time: Int64) {
        if self.isOver { return }
        self.count += 1
        self.waiting[self.count] = action
        self.streams.simulation.queue.add(
            .process(.linkTurn(self.count), self.node.id, life: self.life), at: time)
    }

    // MARK: LinkWorld

    var now: MonotonicTime { self.node.local(self.streams.simulation.now) }

    func schedule(at time: MonotonicTime, _ action: @escaping () -> Void) {
        self.add(action, at: max(self.streams.simulation.now, self.node.global(time)))
    }

    func submit(_ block: @escaping @Sendable () -> Void) {
        self.add(block, at: self.streams.simulation.now)
    }

    func perform(_ block: @escaping @Sendable () -> Void) {
        if !self.isOver { block() }
    }

    func connect(to peer: PeerAddress, within patience: Duration, user: any LinkStreamUser)
        -> any LinkStream
    {
        self.streams.connect(self, to: peer, within: patience, user: user)
    }
}

/// The links of one simulated process.
final class ProcessLinks {
    let loop: SimulatedLoop
    let peers: PeerLinks
    let memory: PeerMemory
    /// With whom it talks, by the view that it goes by.
    private(set) var members: [NodeID] = []

    init(loop: SimulatedLoop, peers: PeerLinks, memory: PeerMemory) {
        self.loop = loop
        self.peers = peers
        self.memory = memory
    }

    func setPeers(_ addresses: [PeerAddress]) {
        self.members = addresses.map(\.node)
        self.peers.setPeers(addresses)
    }
}
