import StratusCompression
import StratusConsensus
import StratusModel
import StratusStorage

// A chunk of a snapshot on its way, version 1
//
// | bytes | what                                                      |
// | ----- | --------------------------------------------------------- |
// | 1     | version, 1                                                |
// | rest  | one zstd frame, with its size and checksum: a frame of the state's snapshot |

/// The snapshots that leave and arrive at one replica, a chunk at a time. Only a chunk or two of
/// each are in memory; the state spools the rest.
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
        /// Answers in a row that ask for a chunk before the one sent.
        var behindCount = 0
    }

    /// The number of answers behind the stream that are taken for late or repeated ones. More come
    /// from a receiver that began again after a late answer had put it further ahead. Then the
    /// stream must go back, or it stands still for ever.
    private static let behindCountMax = 3

    private struct Incoming {
        let identity: SnapshotIdentity
        let term: Term
        let spool: any SnapshotSpool
        var count: UInt32 = 0
        var isComplete = false
    }

    /// More than the largest frame of a snapshot can become.
    static let frameSizeMax = 64 << 20

    private let encoder = ZstdEncoder()

    private var outgoing: [Outgoing] = []
    private var incoming: Incoming?

    // MARK: Outgoing

    /// The snapshots that are being sent: the receiver of each needs every entry after it.
    var sent: [RaftGroup.FollowerNeed] {
        self.outgoing.map { RaftGroup.FollowerNeed(node: $0.node, after: $0.identity.index) }
    }

    func isSending(to node: NodeID) -> Bool { self.outgoing.contains { $0.node == node } }

    mutating func open(
        to node: NodeID, _ identity: SnapshotIdentity, from source: any SnapshotSource
    ) throws(StoreError) {
        let first = try self.next(of: source) ?? []
        self.outgoing.append(
            Outgoing(
                node: node, identity: identity, source: source, sequence: 0, current: first,
                following: try self.next(of: source)))
    }

    private func next(of source: any SnapshotSource) throws(StoreError) -> Bytes? {
        guard let frame = try source.next() else { return nil }
        return [1] + self.encoder.frame(of: frame)
    }

    mutating func stop(to node: NodeID) { self.outgoing.removeAll { $0.node == node } }

    /// The receiver has the chunks before `next`. Returns whether that is news: late and repeated
    /// acknowledgements send nothing, or duplicates would multiply.
    mutating func acknowledged(by node: NodeID, index: LogIndex, next: UInt32) -> Bool {
        guard let position = self.outgoing.firstIndex(where: { $0.node == node }),
            self.outgoing[position].identity.index == index
        else { return false }
        if next > self.outgoing[position].sequence, next > self.outgoing[position].wanted {
            // Perhaps by more than one: the receiver may have chunks of an earlier stream of the
            // same snapshot.
            self.outgoing[position].wanted = next
            self.outgoing[position].behindCount = 0
            return true
        }
        guard next < self.outgoing[position].sequence else { return false }
        self.outgoing[position].behindCount += 1
        if next == 0 || self.outgoing[position].behindCount >= Self.behindCountMax {
            // It began again, or is another process, so the stream begins again too. Chunks that
            // the receiver already has are skipped.
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
            self.outgoing[position].following = try self.next(
                of: self.outgoing[position].source)
        }
        let stream = self.outgoing[position]
        return SnapshotChunk(
            identity: stream.identity, sequence: stream.sequence,
            isLast: stream.following == nil, bytes: stream.current)
    }

    // MARK: Incoming

    /// Takes a chunk in and returns the number of the one that is wanted next.
    ///
    /// - Throws: what the spool reported. Nothing of the stream is kept: it begins again.
    mutating func receive(
        _ chunk: SnapshotChunk, in term: Term, of state: any PartitionState, mixes: Bool
    ) throws(StoreError) -> UInt32 {
        let isSame = self.incoming.map { $0.identity == chunk.identity && $0.term == term } ?? false
        if !isSame {
            guard chunk.sequence == 0 || mixes else { return 0 }
            let kept = mixes ? self.incoming : nil
            let spool: any SnapshotSpool
            if let kept { spool = kept.spool } else { spool = try state.makeSpool() }
            self.incoming = Incoming(
                identity: chunk.identity, term: term, spool: spool, count: kept?.count ?? 0)
        }
        guard let incoming else { return 0 }
        if chunk.sequence == incoming.count, !incoming.isComplete {
            do throws(StoreError) { try incoming.spool.append(chunk.bytes) } catch {
                self.incoming = nil
                throw error
            }
            self.incoming?.count += 1
            self.incoming?.isComplete = chunk.isLast
        }
        return self.incoming?.count ?? 0
    }

    /// Gives back the room of what has arrived. The stream begins again.
    mutating func dropArrival() { self.incoming = nil }

    var isComplete: Bool { self.incoming?.isComplete ?? false }

    mutating func takeComplete(_ identity: SnapshotIdentity) throws(StoreError) -> (
        any SnapshotSource
    )? {
        guard let incoming, incoming.isComplete, incoming.identity == identity else { return nil }
        self.incoming = nil
        return ReceivedSnapshot(try incoming.spool.source())
    }
}

/// Chunks that have all arrived, expanded and handed to the state one by one.
private final class ReceivedSnapshot: SnapshotSource {
    private let chunks: any SnapshotSource

    init(_ chunks: any SnapshotSource) { self.chunks = chunks }

    func next() throws(StoreError) -> Bytes? {
        guard let chunk = try self.chunks.next() else { return nil }
        guard chunk.first == 1 else {
            throw StoreError(.unreadable, "a snapshot chunk of version \(chunk.first ?? 0)")
        }
        do throws(Zstd.Failure) {
            return try Zstd.expand(Bytes(chunk.dropFirst()), sizeMax: SnapshotStreams.frameSizeMax)
        } catch {
            throw StoreError(.corrupt, "a snapshot chunk does not expand: \(error)")
        }
    }
}
