package import StratusCoding
package import StratusModel

// System outcome, version 1: the body of an `Outcome`
//
// | bytes  | what                                                               |
// | ------ | ------------------------------------------------------------------ |
// | 1      | version, 1                                                         |
// | 1      | 1 done: varint revision; 2 joined: 4 bytes node, varint revision;  |
// |        | 3 refused: 1 reason, varint count, varint limit                    |

/// An answer of the system partition.
package enum SystemOutcome: Sendable, Equatable {
    /// It is so, whether this command made it so or it was before.
    case done(revision: UInt64)
    case joined(NodeID, revision: UInt64)
    case refused(SystemRefusal)
}

/// Why the system partition changed nothing.
package struct SystemRefusal: Error, Sendable, Equatable {
    package enum Reason: UInt8, Sendable, CaseIterable {
        /// Neither an administrator nor Stratus itself asked.
        case notAllowed = 1
        case notFormed
        /// Another formation was committed first.
        case alreadyFormed
        /// The command makes no sense: see `SystemCommand`.
        case badRequest
        case unknownNode
        case nodeRemoved
        case nameTaken
        case addressTaken
        case tokenUnknown
        case tokenExpired
        case tokenUsed
        /// The node came back with a data directory that is not its own.
        case anotherDirectory
        /// `count` is the node's feature level, `limit` the cluster's.
        case featureLevelTooLow
        /// Only `count` of `limit` replicas would be possible. May be accepted by naming `count`.
        case tooFewNodes
        /// It is the only node that may hold replicas.
        case lastNode
        /// The node holds `count` replicas. `limit` groups would lose their majority with it; an
        /// operator accepts the removal by naming that number.
        case holdsReplicas
        case moveInProgress
        case noSuchMove
        /// The move does not fit the group's replicas, or its newcomer may hold none.
        case moveImpossible
        /// More than `limit` nodes, tokens or bytes.
        case tooMany
    }
    package var reason: Reason
    package var count: Int
    package var limit: Int

    package init(_ reason: Reason, count: Int = 0, limit: Int = 0) {
        self.reason = reason
        self.count = count
        self.limit = limit
    }

    /// For people: what is so, and what may be done.
    package var explanation: String {
        switch self.reason {
        case .notAllowed: "only administrators may change the cluster"
        case .notFormed: "the cluster is not formed yet"
        case .alreadyFormed: "the cluster was formed from another list of peers"
        case .badRequest: "the request is invalid"
        case .unknownNode: "there is no such node"
        case .nodeRemoved:
            "the node was removed: to come back, it must join anew with an empty data directory"
        case .nameTaken: "another node has this name"
        case .addressTaken: "another node has this address"
        case .tokenUnknown: "the join token is unknown"
        case .tokenExpired: "the join token has expired"
        case .tokenUsed: "the join token was used by another node"
        case .anotherDirectory:
            "the node's data directory is not the one it had, so it may not vote under its "
                + "old name: replace it"
        case .featureLevelTooLow:
            "feature level \(self.count) is below the cluster's \(self.limit)"
        case .tooFewNodes:
            "only \(self.count) of \(self.limit) replicas would be possible on the nodes that remain"
        case .lastNode: "no other node may hold replicas"
        case .holdsReplicas:
            self.limit == 0
                ? "the node still holds \(self.count) replicas; each of their groups would keep "
                    + "its majority, but one replica less until it is replaced"
                : "the node still holds \(self.count) replicas, and \(self.limit) groups would "
                    + "lose their majority: they could neither be read nor written"
        case .moveInProgress: "the partition already moves a replica"
        case .noSuchMove: "no such move is in progress"
        case .moveImpossible: "the move does not match where the replicas are now"
        case .tooMany: "more than \(self.limit)"
        }
    }
}

extension SystemOutcome {
    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 16)
        writer.write(1 as UInt8)
        switch self {
        case .done(let revision):
            writer.write(1 as UInt8)
            writer.write(varint: revision)
        case .joined(let node, let revision):
            writer.write(2 as UInt8)
            writer.write(fixed: node.raw)
            writer.write(varint: revision)
        case .refused(let refusal):
            writer.write(3 as UInt8)
            writer.write(refusal.reason.rawValue)
            writer.write(count: refusal.count)
            writer.write(count: refusal.limit)
        }
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        switch try reader.byte() {
        case 1: self = .done(revision: try reader.varint())
        case 2:
            self = .joined(NodeID(try reader.fixed32()), revision: try reader.varint())
        case 3:
            guard let reason = SystemRefusal.Reason(rawValue: try reader.byte()) else {
                throw DecodingError(.malformed, at: reader.offset - 1)
            }
            self = .refused(
                SystemRefusal(
                    reason, count: Int(try reader.number(max: .max)),
                    limit: Int(try reader.number(max: .max))))
        default: throw DecodingError(.malformed, at: 1)
        }
        try reader.finish()
    }
}
