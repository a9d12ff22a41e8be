import StratusModel
import StratusStorage

/// The snapshots that leave and arrive at one replica, a chunk at a time.
///
/// Invariants:
/// - A stream is bound to the term it is received in and to the whole identity: a chunk of another
///   stream starts anew or is ignored, and never joins.
/// - Chunks join in the order of their numbers, each once.
struct SnapshotStreams {
    private struct Outgoing {
        let node: NodeID
        let identity: SnapshotIdentity
        let source: any SnapshotSource
        var sequence: UInt32
        var current: Bytes
        /// Read ahead, so that the last chunk can say that it is the last. Nil when none follows.
        var following: Bytes?
        /// The chunk the receiver waits for.
        var wanted: UInt32 = 0
    }

    private struct Incoming {
        let identity: SnapshotIdentity
        let term: Term
        var chunks: [Bytes] = []
        var isComplete = false
    }

    private var outgoing: [Outgoing] = []
    private var incoming: Incoming?

    // MARK: Outgoing

    /// The oldest snapshot that is being sent: its receiver needs every entry after it.
    var oldestOutgoing: LogIndex? { self.outgoing.map(\.identity.index).min() }

    func isSending(to node: NodeID) -> Bool { self.outgoing.contains { $0.node == node } }

    mutating func open(
        to node: NodeID, _ identity: SnapshotIdentity, from source: any SnapshotSource
    ) throws(StoreError) {
        let first = try source.next() ?? []
        self.outgoing.append(
            Outgoing(
                node: node, identity: identity, source: source, sequence: 0, current: first,
                following: try source.next()))
    }

    mutating func stop(to node: NodeID) { self.outgoing.removeAll { $0.node == node } }

    /// The receiver has the chunks before `next`. Returns whether that is news: late and repeated
    /// acknowledgements send nothing, or duplicates would multiply.
    mutating func acknowledged(by node: NodeID, index: LogIndex, next: UInt32) -> Bool {
        guard let position = self.outgoing.firstIndex(where: { $0.node == node }),
            self.outgoing[position].identity.index == index
        else { return false }
        if next > self.outgoing[position].sequence, next > self.outgoing[position].wanted {
            // Perhaps by more than one: the receiver may have chunks of an earlier stream of the same
            // snapshot.
            self.outgoing[position].wanted = next
            return true
        }
        if next == 0, self.outgoing[position].sequence > 0 {
            // It began again, or is another process: so does the stream.
            self.outgoing.remove(at: position)
            return true
        }
        return false
    }

    /// The chunk to send now: the last one wanted, or the end of the stream.
    mutating func chunk(for node: NodeID) throws(StoreError) -> SnapshotChunk? {
        guard let position = self.outgoing.firstIndex(where: { $0.node == node }) else {
            return nil
        }
        while self.outgoing[position].sequence < self.outgoing[position].wanted,
            let following = self.outgoing[position].following
        {
            self.outgoing[position].current = following
            self.outgoing[position].sequence += 1
            self.outgoing[position].following = try self.outgoing[position].source.next()
        }
        let stream = self.outgoing[position]
        return SnapshotChunk(
            identity: stream.identity, sequence: stream.sequence,
            isLast: stream.following == nil, bytes: stream.current)
    }

    // MARK: Incoming

    /// Takes a chunk in and returns the number of the one that is wanted next.
    mutating func receive(_ chunk: SnapshotChunk, in term: Term, mixes: Bool) -> UInt32 {
        let isSame = self.incoming.map { $0.identity == chunk.identity && $0.term == term } ?? false
        if !isSame {
            guard chunk.sequence == 0 || mixes else { return 0 }
            let kept = mixes ? self.incoming?.chunks ?? [] : []
            self.incoming = Incoming(identity: chunk.identity, term: term, chunks: kept)
        }
        guard let next = self.incoming?.chunks.count else { return 0 }
        if Int(chunk.sequence) == next, self.incoming?.isComplete == false {
            self.incoming?.chunks.append(chunk.bytes)
            self.incoming?.isComplete = chunk.isLast
        }
        return UInt32(self.incoming?.chunks.count ?? 0)
    }

    var isComplete: Bool { self.incoming?.isComplete ?? false }

    mutating func takeComplete(_ identity: SnapshotIdentity) -> (any SnapshotSource)? {
        guard let incoming, incoming.isComplete, incoming.identity == identity else { return nil }
        self.incoming = nil
        return ReceivedSnapshot(incoming.chunks)
    }
}

/// Chunks that have all arrived, handed to the state one by one.
private final class ReceivedSnapshot: SnapshotSource {
    private var chunks: [Bytes]
    private var position = 0

    init(_ chunks: [Bytes]) { self.chunks = chunks }

    func next() -> Bytes? {
        guard self.position < self.chunks.count else { return nil }
        defer { self.position += 1 }
        return self.chunks[self.position]
    }
}
