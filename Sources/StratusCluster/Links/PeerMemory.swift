package import StratusCoding
package import StratusModel
package import StratusPlacement
import StratusStorage
import Synchronization

// The file PEERS in a data directory
//
// | bytes | what                                                                               |
// | ----- | ---------------------------------------------------------------------------------- |
// | 8     | "STRATUSM"                                                                         |
// | 1     | version, 1                                                                         |
// | count | peers that were met, by name: text name, 8 + 8 identity of its data: high, low     |
// | 4     | CRC-32C of the bytes before                                                        |
//
// The file HEARD beside it, which builds that do not know of starts leave alone
//
// | bytes | what                                                                               |
// | ----- | ---------------------------------------------------------------------------------- |
// | 8     | "STRATUSH"                                                                         |
// | 1     | version, 1                                                                         |
// | count | peers that were heard, by name: text name, 8 + 8 identity of its data: high, low,  |
// |       | 8 number and 8 incarnation of the last start                                       |
// | 4     | CRC-32C of the bytes before                                                        |
//
// What HEARD says counts as long as PEERS names the same data.

/// Remembers each peer's data directory from the first meeting, and its last start that was heard
/// of. A node that comes back under its name without its data, or with an older copy, must not vote
/// again.
///
/// Promises:
/// - An identity that ``meet(_:_:)`` calls known is on disk: no vote and no acknowledgement of a
///   peer counts before.
/// - The first identity stays, until the cluster itself says that the name belongs to another
///   directory.
/// - A directory that has seen all starts heard of is accepted, however its node ended.
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
        /// The disk has not taken the last start that was heard.
        var isBehind = false
    }

    package struct Refusal: Error, Sendable, Equatable, CustomStringConvertible {
        package let description: String
    }

    package static let path: DiskPath = "PEERS"
    package static let heardPath: DiskPath = "HEARD"
    private static let frame = FileFrame("STRATUSM")
    private static let heardFrame = FileFrame("STRATUSH")
    private static let sizeMax = 1 << 20

    private let files: any Files
    private let state: Mutex<State>

    package init(in world: any World) throws(Refusal) {
        self.files = world.files
        var peers = try Self.read(Self.path, in: world, Self.decode) ?? [:]
        for (name, heard) in try Self.read(Self.heardPath, in: world, Self.decodeHeard) ?? [:]
        where peers[name]?.data == heard.data {
            peers[name] = heard
        }
        self.state = Mutex(State(peers: peers))
    }

    private static func read(
        _ path: DiskPath, in world: any World,
        _ decode: (Bytes) throws(DecodingError) -> [String: Peer]
    ) throws(Refusal) -> [String: Peer]? {
        do {
            guard try world.files.exists(path) else { return nil }
            let peers = try decode(try world.files.contents(of: path, limit: Self.sizeMax))
            // An earlier process may have died between renaming it and this.
            try world.files.syncDirectory(.root)
            return peers
        } catch let error as DecodingError {
            throw Refusal(
                description:
                    "the file \(path) in the data directory is damaged: \(error). Without it this node "
                    + "cannot tell whether a peer lost its data. \(DataDirectory.rejoin)")
        } catch { throw Refusal(description: "the file \(path) in the data directory: \(error)") }
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

    /// Compares the starts of a peer's directory with those heard of, and notes its present start
    /// on disk. If the disk refuses, the start is written with the next one: until then only this
    /// process knows of it.
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
            do throws(DiskError) {
                try self.files.replace(Self.heardPath, with: Self.encodeHeard(state.peers))
                state.isBehind = false
            } catch {}
            return .known
        }
    }

    /// The last start of a peer that was heard.
    package func start(of name: String) -> NodeStart? {
        self.state.withLock { $0.peers[name]?.start }
    }

    private func keep(_ peers: [String: Peer], _ state: inout State) throws(DiskError) {
        try self.files.replace(Self.path, with: Self.encode(peers))
        state.peers = peers
    }

    /// Adopts the cluster's view: it counts for more than the first meeting. A name that was
    /// removed and given to another node is met anew.
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
        Self.frame.encode { writer in
            writer.write(count: peers.count)
            for (name, peer) in peers.sorted(by: { $0.key < $1.key }) {
                Self.write(name, peer, to: &writer)
            }
        }
    }

    /// The encoded starts of the peers that were heard.
    package static func encodeHeard(_ peers: [String: Peer]) -> Bytes {
        let heard = peers.sorted(by: { $0.key < $1.key }).compactMap { name, peer in
            peer.start.map { (name, peer, $0) }
        }
        return Self.heardFrame.encode { writer in
            writer.write(count: heard.count)
            for (name, peer, start) in heard {
                Self.write(name, peer, to: &writer)
                writer.write(fixed: start.number)
                writer.write(fixed: start.incarnation.raw)
            }
        }
    }

    private static func write(_ name: String, _ peer: Peer, to writer: inout ByteWriter) {
        writer.write(text: name)
        writer.write(fixed: peer.data.high)
        writer.write(fixed: peer.data.low)
    }

    package static func decode(_ bytes: Bytes) throws(DecodingError) -> [String: Peer] {
        try Self.frame.decode(bytes) { (reader, _) throws(DecodingError) in
            var peers: [String: Peer] = [:]
            for _ in 0..<(try reader.count(minimumSize: 17)) {
                let name = try reader.text()
                peers[name] = Peer(data: try Self.data(reading: &reader))
            }
            return peers
        }
    }

    package static func decodeHeard(_ bytes: Bytes) throws(DecodingError) -> [String: Peer] {
        try Self.heardFrame.decode(bytes) { (reader, _) throws(DecodingError) in
            var peers: [String: Peer] = [:]
            for _ in 0..<(try reader.count(minimumSize: 33)) {
                let name = try reader.text()
                let data = try Self.data(reading: &reader)
                let number = try reader.fixed64()
                peers[name] = Peer(
                    data: data,
                    start: NodeStart(
                        number: number, incarnation: NodeIncarnation(try reader.fixed64())))
            }
            return peers
        }
    }

    private static func data(reading reader: inout ByteReader) throws(DecodingError)
        -> RequestIdentity
    {
        RequestIdentity(high: try reader.fixed64(), low: try reader.fixed64())
    }
}
