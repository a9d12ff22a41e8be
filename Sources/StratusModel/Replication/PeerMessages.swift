/// Names one cluster for ever: drawn from the peer list and the secret it was formed with.
package struct ClusterID: Sendable, Hashable, CustomStringConvertible {
    package var high: UInt64
    package var low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    package var description: String { RequestIdentity(high: self.high, low: self.low).description }
}

/// The first message on a link, from the side that opened it.
///
/// Its layout never changes, because two versions find out by it whether they can talk at all.
package struct PeerHello: Sendable, Equatable {
    package var cluster: ClusterID
    package var node: NodeID
    /// The name in the node's certificate.
    package var name: String
    package var incarnation: NodeIncarnation
    /// The node that the sender believes it is talking to.
    package var receiver: NodeID
    /// The versions of the link's protocol that the sender speaks.
    package var protocolMin: UInt16
    package var protocolMax: UInt16
    /// The newest kinds of entries the sender can apply.
    package var featureLevel: UInt32
    /// Which data directory the sender works on.
    package var data: RequestIdentity

    package init(
        cluster: ClusterID, node: NodeID, name: String, incarnation: NodeIncarnation,
        receiver: NodeID, protocolMin: UInt16, protocolMax: UInt16, featureLevel: UInt32,
        data: RequestIdentity
    ) {
        self.cluster = cluster
        self.node = node
        self.name = name
        self.incarnation = incarnation
        self.receiver = receiver
        self.protocolMin = protocolMin
        self.protocolMax = protocolMax
        self.featureLevel = featureLevel
        self.data = data
    }
}

/// The answer to a hello that is good.
package struct PeerWelcome: Sendable, Equatable {
    /// The version both speak from here on.
    package var protocolVersion: UInt16
    package var incarnation: NodeIncarnation
    package var featureLevel: UInt32
    /// Which data directory the answering node works on, as in ``PeerHello/data``.
    package var data: RequestIdentity

    package init(
        protocolVersion: UInt16, incarnation: NodeIncarnation, featureLevel: UInt32,
        data: RequestIdentity
    ) {
        self.protocolVersion = protocolVersion
        self.incarnation = incarnation
        self.featureLevel = featureLevel
        self.data = data
    }
}

/// The answer to a hello that is not.
package struct PeerRefusal: Error, Sendable, Equatable {
    package enum Reason: UInt8, Sendable, Equatable {
        case otherCluster = 1
        /// The sender thinks this is another node.
        case otherNode = 2
        /// The sender is not a member, or its certificate is another node's.
        case unknownNode = 3
        case noCommonProtocol = 4
        /// The receiver's log cannot be trusted any more: it takes no part.
        case fenced = 5
        /// The sender works on another data directory than the one it was met with: its votes and
        /// acknowledgements are not those of the node that is known here.
        case otherData = 6
        /// The cluster has decided that the sender may not join, by the token it showed.
        case notAdmitted = 7
        /// The sender's data directory lacks a start that this node has heard of: it was restored
        /// from an older copy.
        case olderCopy = 8
    }
    package var reason: Reason
    /// For the operator who reads the other node's log.
    package var text: String

    package init(_ reason: Reason, _ text: String) {
        self.reason = reason
        self.text = text
    }
}

/// The first thing said on a connection by a node that wants to become a member.
package struct PeerJoin: Sendable, Equatable {
    /// The name in the node's certificate.
    package var name: String
    /// The address at which peers will reach it: `host:port`.
    package var address: String
    package var weight: UInt32
    package var rack: String
    package var featureLevel: UInt32
    /// The token from an administrator, in clear: the connection is encrypted.
    package var token: Bytes

    package init(
        name: String, address: String, weight: UInt32, rack: String, featureLevel: UInt32,
        token: Bytes
    ) {
        self.name = name
        self.address = address
        self.weight = weight
        self.rack = rack
        self.featureLevel = featureLevel
        self.token = token
    }
}

/// The answer to a join that is good.
package struct PeerAdmission: Sendable, Equatable {
    /// The node's number from here on.
    package var node: NodeID
    /// The cluster it is in, as the system partition writes its view.
    package var view: Bytes

    package init(node: NodeID, view: Bytes) {
        self.node = node
        self.view = view
    }
}

/// A request that one node sends another for a client, because it believes that the other leads the
/// group.
package struct PeerRequest: Sendable, Equatable {
    package enum Body: Sendable, Equatable {
        case command(Command)
        case query(Query)
        /// A request to the node itself, whatever the group: a question of membership, which its
        /// owner reads.
        case node(Bytes)
    }
    /// The sender's number for it, given back with the response.
    package var number: UInt64
    package var group: GroupID
    /// The epoch of the sender's placement table.
    package var epoch: UInt64
    /// How much of the deadline is left: clocks of two machines cannot be compared.
    package var remainingMilliseconds: UInt32
    package var body: Body

    package init(
        number: UInt64, group: GroupID, epoch: UInt64, remainingMilliseconds: UInt32, body: Body
    ) {
        self.number = number
        self.group = group
        self.epoch = epoch
        self.remainingMilliseconds = remainingMilliseconds
        self.body = body
    }
}

package struct PeerResponse: Sendable, Equatable {
    package enum Answer: Sendable, Equatable {
        case outcome(Outcome)
        case answer(QueryAnswer)
        /// It did not happen; the leader, if known, may take it.
        case notLeader(NodeID?)
        /// It did not happen and will not.
        case notExecuted(retryAfterMilliseconds: UInt32)
        case outcomeUnknown
        case refused(String)
    }
    package var number: UInt64
    package var answer: Answer

    package init(number: UInt64, answer: Answer) {
        self.number = number
        self.answer = answer
    }
}

/// Everything that travels between two nodes. Lost, repeated or late, never altered.
package enum PeerMessage: Sendable, Equatable {
    case hello(PeerHello)
    case welcome(PeerWelcome)
    case join(PeerJoin)
    case admission(PeerAdmission)
    case refusal(PeerRefusal)
    /// Sent first on a link that was welcomed in protocol 2: the starts that the sender's data
    /// directory has seen.
    case starts(NodeStarts)
    /// Sent first on a link that was welcomed in protocol 3, before the starts: what the link
    /// carries.
    case purpose(PeerPurpose)
    /// Flow control: so many bytes of messages were taken since the link was opened.
    case taken(UInt64)
    case heartbeat(NodeHeartbeat)
    case consensus(GroupID, ConsensusMessage)
    case request(PeerRequest)
    case response(PeerResponse)
    /// About copies of bodies: see ``CopyMessage/isBulk`` for the link it takes.
    case copy(CopyMessage)

    /// The order in which waiting messages leave. The number is on the wire.
    package enum Priority: UInt8, Sendable, Comparable, CaseIterable {
        /// Heartbeats and the link's own business.
        case vital = 0
        case consensus = 1
        case client = 2
        case snapshot = 3
        package static func < (one: Self, other: Self) -> Bool { one.rawValue < other.rawValue }
    }

    package var priority: Priority {
        switch self {
        case .hello, .welcome, .join, .admission, .refusal, .starts, .purpose, .taken, .heartbeat:
            .vital
        case .consensus(_, let message):
            if case .snapshotChunk = message.body { .snapshot } else { .consensus }
        case .request, .response: .client
        case .copy(let message): message.isBulk ? .snapshot : .client
        }
    }
}

/// What a link carries. The number is on the wire.
package enum PeerPurpose: UInt8, Sendable, Hashable, CaseIterable {
    /// Everything but the bytes of copies.
    case ordinary = 0
    /// Copies of bodies, and nothing else.
    case bulk = 1
}
