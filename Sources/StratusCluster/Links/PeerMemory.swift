package import StratusCoding
package import StratusModel
package import StratusPlacement
import StratusStorage
import Synchronization

// The file PEERS in a data directory, version 1
//
// | bytes | what                                                                               |
// | ----- | ---------------------------------------------------------------------------------- |
// | 8     | "STRATUSM"                                                                         |
// | 1     | version, 1                                                                         |
// | count | peers that were met, by name: text name, 8 + 8 identity of its data: high, low     |
// | 4     | CRC-32C of the bytes before                                                        |

/// Which data directory each peer had when it was first met: a node that comes back under its name
/// without its data must not vote again.
///
/// Promises:
/// - What ``meet(_:_:)`` calls known is on disk: no vote and no acknowledgement of a peer counts before.
/// - The first identity stays, until the cluster itself says that the name belongs to another directory.
package final class PeerMemory: Sendable {
    package enum Meeting: Sendable, Equatable {
        /// Met for the first time and noted, or the same as ever.
        case known
        case other(known: RequestIdentity, said: RequestIdentity)
        /// The disk did not take it.
        case notKept(String)
    }

    package struct Refusal: Error, Sendable, Equatable, CustomStringConvertible {
        package let description: String
    }

    package static let path: DiskPath = "PEERS"
    private static let frame = FileFrame("STRATUSM")
    private static let sizeMax = 1 << 20

    private let files: any Files
    private let peers: Mutex<[String: RequestIdentity]>

    package init(in world: any World) throws(Refusal) {
        self.files = world.files
        do {
            var peers: [String: RequestIdentity] = [:]
            if try world.files.exists(Self.path) {
                let bytes = try world.files.contents(of: Self.path, limit: Self.sizeMax)
                peers = try Self.decode(bytes)
                // An earlier process may have died between renaming it and this.
                try world.files.syncDirectory(.root)
            }
            self.peers = Mutex(peers)
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
        self.peers.withLock { peers in
            if let known = peers[name] {
                return known == said ? .known : .other(known: known, said: said)
            }
            var all = peers
            all[name] = said
            do throws(DiskError) { try self.files.replace(Self.path, with: Self.encode(all)) } catch
            {
                return .notKept(error.description)
            }
            peers = all
            return .known
        }
    }

    /// What the cluster committed counts for more than who was met first: a name that was removed and given
    /// to another node is met anew.
    package func follow(_ view: ClusterView) throws(DiskError) {
        func isStale(_ name: String, _ known: RequestIdentity) -> Bool {
            let directory = max(1, known.high)
            return view.nodes.contains { node in
                guard node.name == name, node.directory != 0 else { return false }
                return node.isMember
                    ? node.directory != directory : node.directory == directory
            }
        }
        try self.peers.withLock { (peers) throws(DiskError) in
            let stale = peers.filter { isStale($0.key, $0.value) }
            guard !stale.isEmpty else { return }
            let kept = peers.filter { stale[$0.key] == nil }
            try self.files.replace(Self.path, with: Self.encode(kept))
            peers = kept
        }
    }

    package static func encode(_ peers: [String: RequestIdentity]) -> Bytes {
        Self.frame.encode { writer in
            writer.write(count: peers.count)
            for (name, data) in peers.sorted(by: { $0.key < $1.key }) {
                writer.write(text: name)
                writer.write(fixed: data.high)
                writer.write(fixed: data.low)
            }
        }
    }

    package static func decode(_ bytes: Bytes) throws(DecodingError) -> [String: RequestIdentity] {
        try Self.frame.decode(bytes) { (reader, _) throws(DecodingError) in
            var peers: [String: RequestIdentity] = [:]
            for _ in 0..<(try reader.count(minimumSize: 17)) {
                let name = try reader.text()
                peers[name] = RequestIdentity(
                    high: try reader.fixed64(), low: try reader.fixed64())
            }
            return peers
        }
    }
}
