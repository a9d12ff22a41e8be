package import StratusCoding
package import StratusModel
package import StratusPlacement
import StratusStorage
import Synchronization

// The file PEERS in a data directory, version 2
//
// | bytes | what                                                                               |
// | ----- | ---------------------------------------------------------------------------------- |
// | 8     | "STRATUSM"                                                                         |
// | 1     | version, 2                                                                         |
// | count | peers that were met, by name: text name, 8 + 8 identity of its data: high, low,    |
// |       | 8 number and 8 incarnation of the last start that was heard, 0 and 0 when none was |
// | 4     | CRC-32C of the bytes before                                                        |
//
// Version 1 has no starts.

/// Which data directory each peer had when it was first met, and the last start of it that was heard: a node
/// that comes back under its name without its data, or with an older copy, must not vote again.
///
/// Promises:
/// - What ``meet(_:_:)`` calls known is on disk: no vote and no acknowledgement of a peer counts before.
/// - The first identity stays, until the cluster itself says that the name belongs to another directory.
/// - A directory that has seen all starts that were heard of is heard, whatever end its node came to.
package final class PeerMemory: Sendable {
    package enum Meeting: Sendable, Equatable {
        /// Met for the first time and noted, or the same as ever.
        case known
        case other(known: RequestIdentity, said: RequestIdentity)
        /// The disk did not take it.
        case notKept(String)
    }

    package enum Hearing: Sendable, Equatable {
        case known
        case older(heard: NodeStart, said: NodeStart)
    }

    package struct Peer: Sendable, Equatable {
        package var data: RequestIdentity
        /// The last one that was heard; nil of a build that told none.
        package var start: NodeStart?

        package init(data: RequestIdentity, start: NodeStart? = nil) {
            self.data = data
            self.start = start
        }
    }

    private struct State {
        var peers: [String: Peer]
        /// The disk has not taken the last change.
        var isBehind = false
    }

    package struct Refusal: Error, Sendable, Equatable, CustomStringConvertible {
        package let description: String
    }

    package static let path: DiskPath = "PEERS"
    private static let frame = FileFrame("STRATUSM", versions: 1...2)
    private static let sizeMax = 1 << 20

    private let files: any Files
    private let state: Mutex<State>

    package init(in world: any World) throws(Refusal) {
        self.files = world.files
        do {
            var peers: [String: Peer] = [:]
            if try world.files.exists(Self.path) {
                let bytes = try world.files.contents(of: Self.path, limit: Self.sizeMax)
                peers = try Self.decode(bytes)
                // An earlier process may have died between renaming it and this.
                try world.files.syncDirectory(.root)
            }
            self.state = Mutex(State(peers: peers))
        } catch let error as DecodingError {
            throw Refusal(
                description:
                    "the file PEERS in the data directory is damaged: \(error); without it "
                    + "this node cannot tell a peer that lost its data, so bring it back from a backup "
                    + "of this node")
        } catch { throw Refusal(description: "the file PEERS in the data directory: \(error)") }
    }

    /// Compares, and notes on disk who is met for the first time: one sync for each peer, ever.
    package func meet(_ name: String, _ said: RequestIdentity) -> Meeting {
        self.state.withLock { state in
            if let known = state.peers[name]?.data {
                return known == said ? .known : .other(known: known, said: said)
            }
            var all = state.peers
            all[name] = Peer(data: said)
            do throws(DiskError) { try self.keep(all, &state) } catch {
                return .notKept(error.description)
            }
            return .known
        }
    }

    /// Compares what a peer's directory has seen with what was heard of it, and notes its present start on disk.
    /// Where the disk does not take it, it is noted with the next: until then only this process knows of it.
    package func hear(_ name: String, _ starts: NodeStarts) -> Hearing {
        self.state.withLock { state in
            // A view may have made the name another's since the hello.
            guard var peer = state.peers[name] else { return .known }
            if let heard = peer.start, starts.lacks(heard) {
                return .older(heard: heard, said: starts.latest)
            }
            guard state.isBehind || peer.start != starts.latest else { return .known }
            peer.start = starts.latest
            state.peers[name] = peer
            state.isBehind = true
            do throws(DiskError) { try self.keep(state.peers, &state) } catch {}
            return .known
        }
    }

    /// The last start of a peer that was heard.
    package func start(of name: String) -> NodeStart? {
        self.state.withLock { $0.peers[name]?.start }
    }

    private func keep(_ peers: [String: Peer], _ state: inout State) throws(DiskError) {
        try self.files.replace(Self.path, with: Self.encode(peers))
        state = State(peers: peers)
    }

    /// What the cluster committed counts for more than who was met first: a name that was removed and given
    /// to another node is met anew.
    package func follow(_ view: ClusterView) throws(DiskError) {
        func isStale(_ name: String, _ known: Peer) -> Bool {
            let directory = max(1, known.data.high)
            return view.nodes.contains { node in
                guard node.name == name, node.directory != 0 else { return false }
                return node.isMember
                    ? node.directory != directory : node.directory == directory
            }
        }
        try self.state.withLock { (state) throws(DiskError) in
            let kept = state.peers.filter { !isStale($0.key, $0.value) }
            if kept.count < state.peers.count { try self.keep(kept, &state) }
        }
    }

    package static func encode(_ peers: [String: Peer]) -> Bytes {
        Self.frame.encode(version: 2) { writer in
            writer.write(count: peers.count)
            for (name, peer) in peers.sorted(by: { $0.key < $1.key }) {
                writer.write(text: name)
                writer.write(fixed: peer.data.high)
                writer.write(fixed: peer.data.low)
                writer.write(fixed: peer.start?.number ?? 0)
                writer.write(fixed: peer.start?.incarnation.raw ?? 0)
            }
        }
    }

    package static func decode(_ bytes: Bytes) throws(DecodingError) -> [String: Peer] {
        try Self.frame.decode(bytes) { (reader, version) throws(DecodingError) in
            var peers: [String: Peer] = [:]
            for _ in 0..<(try reader.count(minimumSize: version == 1 ? 17 : 33)) {
                let name = try reader.text()
                var peer = Peer(
                    data: RequestIdentity(high: try reader.fixed64(), low: try reader.fixed64()))
                if version > 1 {
                    let number = try reader.fixed64()
                    let incarnation = NodeIncarnation(try reader.fixed64())
                    if number > 0 {
                        peer.start = NodeStart(number: number, incarnation: incarnation)
                    }
                }
                peers[name] = peer
            }
            return peers
        }
    }
}
