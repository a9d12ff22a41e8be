package import StratusModel

/// Who this node is to its peers.
package struct PeerIdentity: Sendable, Equatable {
    package var cluster: ClusterID
    package var node: NodeID
    package var name: String
    package var incarnation: NodeIncarnation

    package init(cluster: ClusterID, node: NodeID, name: String, incarnation: NodeIncarnation) {
        self.cluster = cluster
        self.node = node
        self.name = name
        self.incarnation = incarnation
    }
}

/// Where a peer is found, and what its certificate must name.
package struct PeerAddress: Sendable, Hashable {
    package var node: NodeID
    package var name: String
    package var host: String
    package var port: UInt16

    package init(node: NodeID, name: String, host: String, port: UInt16) {
        self.node = node
        self.name = name
        self.host = host
        self.port = port
    }
}

/// Whether a hello is good. Decides, and does nothing.
package struct PeerGreeting: Sendable {
    package static let protocolMin: UInt16 = 1
    package static let protocolMax: UInt16 = 1
    package static let featureLevel: UInt32 = 1

    package static func hello(from own: PeerIdentity, to receiver: NodeID) -> PeerHello {
        PeerHello(
            cluster: own.cluster, node: own.node, name: own.name, incarnation: own.incarnation,
            receiver: receiver, protocolMin: Self.protocolMin, protocolMax: Self.protocolMax,
            featureLevel: Self.featureLevel)
    }

    /// - Parameters:
    ///   - name: what the verified certificate of the sender names; nil when it showed none.
    ///   - peers: everybody this node talks to.
    package static func answer(
        to hello: PeerHello, certificateName name: String?, own: PeerIdentity,
        peers: [PeerAddress]
    ) -> Result<PeerWelcome, PeerRefusal> {
        guard hello.cluster == own.cluster else {
            return .failure(
                PeerRefusal(
                    .otherCluster,
                    "this is cluster \(own.cluster), you are of \(hello.cluster): peer lists or "
                        + "secrets differ"))
        }
        guard hello.receiver == own.node else {
            return .failure(
                PeerRefusal(
                    .otherNode,
                    "this is \(own.name) (\(own.node)), you are looking for \(hello.receiver)"))
        }
        guard let peer = peers.first(where: { $0.node == hello.node }), peer.name == hello.name
        else {
            return .failure(
                PeerRefusal(.unknownNode, "\(hello.name) (\(hello.node)) is no member here"))
        }
        guard name == hello.name else {
            return .failure(
                PeerRefusal(
                    .unknownNode,
                    "the certificate is \(name.map { "'\($0)'" } ?? "nobody")'s, not that of "
                        + "'\(hello.name)'"))
        }
        let common = min(Self.protocolMax, hello.protocolMax)
        guard hello.protocolMin <= hello.protocolMax,
            common >= max(Self.protocolMin, hello.protocolMin)
        else {
            return .failure(
                PeerRefusal(
                    .noCommonProtocol,
                    "link protocols \(Self.protocolMin) to \(Self.protocolMax) here, "
                        + "\(hello.protocolMin) to \(hello.protocolMax) there"))
        }
        return .success(
            PeerWelcome(
                protocolVersion: common, incarnation: own.incarnation,
                featureLevel: Self.featureLevel))
    }
}
