import StratusCluster
import StratusCoding
import StratusModel

/// A stranger that connects to a node and must not be heard: it has a certificate of the cluster,
/// but is not what it claims to be.
final class Stranger: LinkStreamUser {
    enum Lie: CaseIterable {
        case otherCluster, otherNode, otherName, otherReceiver, otherData, olderCopy
        case noHello, noStarts, noise, silence
    }

    private let own: PeerIdentity
    private unowned let target: SimulatedNode
    private let lie: Lie
    private var stream: SimulatedStream?
    private var speech: Bytes = []

    init(_ lie: Lie, from own: PeerIdentity, to target: SimulatedNode) {
        self.lie = lie
        self.own = own
        self.target = target
    }

    func begin(on stream: SimulatedStream) { self.stream = stream }

    private func prepareSpeech() {
        var own = self.own
        var target = self.target.id
        var lie = self.lie
        // If nothing was heard of the node yet, any copy is as good as another.
        if lie == .olderCopy, self.target.links?.memory.start(of: own.name) == nil {
            lie = .noStarts
        }
        switch lie {
        case .otherCluster: own.cluster = ClusterID(high: 2, low: own.cluster.low)
        case .otherNode: own.node = NodeID(own.node.raw + 1)
        case .otherName: own.name = "node\(target.raw)"
        case .otherReceiver: target = NodeID(target.raw + 1)
        case .otherData: own.data.low += 1
        case .olderCopy: own.starts = NodeStarts(first: NodeIncarnation(.max))
        case .noHello, .noStarts: break
        case .noise: return self.speech = Bytes(repeating: 0x7F, count: 100)
        case .silence: return
        }
        var frames = PeerFrameQueue()
        if lie != .noHello {
            _ = frames.add(
                PeerMessage.hello(PeerGreeting.hello(from: own, to: target)).encoded(), .vital)
        }
        if lie == .olderCopy {
            _ = frames.add(PeerMessage.starts(own.starts).encoded(), .vital)
        }
        // Does not wait for a welcome.
        let heartbeat = NodeHeartbeat(
            incarnation: own.incarnation, sequence: .max, unsyncedMilliseconds: 0,
            wallMilliseconds: 0, declinesLeadership: false, resigned: [])
        _ = frames.add(PeerMessage.heartbeat(heartbeat).encoded(), .vital)
        frames.fill(&self.speech, sizeMax: .max)
    }

    // MARK: LinkStreamUser

    func opened(by certificate: LinkCertificate?) {
        self.prepareSpeech()
        self.stream?.wantsToSend()
    }

    func received(_ bytes: Bytes) {}

    func fill(_ output: inout Bytes) { swap(&output, &self.speech) }

    func ended(_ end: LinkEnd) { self.stream = nil }
}

extension SimulatedStreams {
    /// Now and then somebody knocks who must not be let in.
    func sendStranger() {
        let nodes = self.simulation.nodes
        let host = nodes[Int(self.draw(UInt64(nodes.count)))]
        let target = nodes[Int(self.draw(UInt64(nodes.count)))]
        var lie = Stranger.Lie.allCases[Int(self.draw(UInt64(Stranger.Lie.allCases.count)))]
        // A node that has met nobody trusts the first that comes.
        if lie == .otherData, target.links?.peers.isOpen(to: host.id) != true { lie = .noHello }
        guard host.id != target.id else { return }
        self.count("strangers")
        let own = PeerIdentity(
            cluster: ClusterID(high: 1, low: self.simulation.report.seed), node: host.id,
            name: "node\(host.id.raw)", data: RequestIdentity(high: UInt64(host.id.raw), low: 1),
            starts: NodeStarts(first: NodeIncarnation(.max)))
        let stranger = Stranger(lie, from: own, to: target)
        self.strangers.append(stranger)
        if self.strangers.count > 16 { self.strangers.removeFirst() }
        stranger.begin(on: self.connect(stranger, on: host, to: target.id))
    }
}
