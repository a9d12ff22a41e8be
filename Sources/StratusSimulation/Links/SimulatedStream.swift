import StratusCluster
import StratusModel

/// One end of a simulated connection.
///
/// `Sendable` is unchecked: a simulation and all that belongs to it run in one thread.
final class SimulatedStream: LinkStream, @unchecked Sendable {
    enum Phase { case connecting, open, gone }

    unowned let streams: SimulatedStreams
    let connection: Int
    /// 0: it has opened the connection.
    let side: Int
    let host: NodeID
    let life: UInt64
    private(set) weak var user: (any LinkStreamUser)?
    var phase = Phase.connecting
    /// Its user has something to send, or may have.
    var isAsked = false
    /// The time that its written bytes may stay without an answer.
    let patience: Int64

    init(
        _ streams: SimulatedStreams, _ connection: Int, side: Int, of host: NodeID, life: UInt64,
        patience: Int64, user: any LinkStreamUser
    ) {
        self.streams = streams
        self.connection = connection
        self.side = side
        self.host = host
        self.life = life
        self.patience = patience
        self.user = user
    }

    func forgetUser() { self.user = nil }

    // MARK: LinkStream

    func wantsToSend() {
        guard self.phase == .open else { return }
        self.isAsked = true
        self.streams.write(self)
    }

    func close() { self.streams.close(self) }
}

/// A connection between two processes, and what is under way on it.
final class SimulatedConnection {
    let number: Int
    let target: NodeID
    /// The second one stands once somebody has taken the connection.
    var ends: [SimulatedStream] = []
    var pipes = [StreamPipe(), StreamPipe()]
    /// Something in between has forgotten it: nothing passes any more, and nobody says so.
    var isDead = false

    init(_ number: Int, to target: NodeID) {
        self.number = number
        self.target = target
    }

    func other(than side: Int) -> SimulatedStream? {
        self.ends.count == 2 ? self.ends[1 - side] : nil
    }

    /// Another one of the same two nodes, which the receiver still takes for sound.
    func isBeside(_ other: SimulatedConnection) -> Bool {
        self.number != other.number && self.target == other.target
            && self.ends[0].host == other.ends[0].host && self.other(than: 0)?.phase == .open
    }

    var isOver: Bool { self.ends.allSatisfy { $0.phase == .gone } }

    /// Ends the connection: only pieces already under way still arrive. Bytes written later are
    /// lost.
    func die() {
        if self.isDead { return }
        self.isDead = true
        for side in 0...1 { self.pipes[side].passCount = self.pipes[side].pieces.count }
    }
}

/// A connection that waits at a listener.
struct SimulatedSeed: LinkSeed {
    let streams: SimulatedStreams
    let connection: SimulatedConnection
    let origin: String

    func open(within patience: Duration, user: any LinkStreamUser) throws(LinkFailure)
        -> any LinkStream
    {
        self.streams.take(self.connection, within: patience, user: user)
    }
}
