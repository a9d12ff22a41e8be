package import StratusModel

/// The identity that this node shows its peers.
package struct PeerIdentity: Sendable, Equatable {
    package var cluster: ClusterID
    package var node: NodeID
    package var name: String
    /// The identity of the data directory: it stays the same as long as the data does.
    package var data: RequestIdentity
    /// Which the data directory has seen, on disk before anybody is told.
    package var starts: NodeStarts
    /// The highest level that this node reads.
    package var build = FeatureLevel.build

    package var incarnation: NodeIncarnation { self.starts.latest.incarnation }

    package init(
        cluster: ClusterID, node: NodeID, name: String, data: RequestIdentity, starts: NodeStarts
    ) {
        self.cluster = cluster
        self.node = node
        self.name = name
        self.data = data
        self.starts = starts
    }
}

/// The address of a peer, and the name that its certificate must carry.
package struct PeerAddress: Sendable, Hashable {
    /// A host and a port.
    package struct Place: Sendable, Hashable {
        package var host: String
        package var port: UInt16

        package init(host: String, port: UInt16) {
            self.host = host
            self.port = port
        }
    }

    package var node: NodeID
    package var name: String
    package var host: String
    package var port: UInt16
    /// A second place where the node may be found. The cluster's view and the configuration may
    /// disagree, and either of them may be out of date.
    package var otherPlace: Place?

    package init(
        node: NodeID, name: String, host: String, port: UInt16, otherPlace: Place? = nil
    ) {
        self.node = node
        self.name = name
        self.host = host
        self.port = port
        self.otherPlace = otherPlace
    }

    /// The places to be tried, in this order.
    var places: [Place] {
        let first = Place(host: self.host, port: self.port)
        return [first] + (self.otherPlace.map { $0 == first ? [] : [$0] } ?? [])
    }

    func at(_ place: Place) -> PeerAddress {
        PeerAddress(node: self.node, name: self.name, host: place.host, port: place.port)
    }
}

/// Whether a hello is good. Decides, and does nothing.
package struct PeerGreeting: Sendable {
    /// For whoever shows a certificate that an administrator has withdrawn.
    static let withdrawn = PeerRefusal(
        .notAdmitted, "an administrator has withdrawn the certificate that it shows")

    package static let protocolMin: UInt16 = 1
    package static let protocolMax: UInt16 = 1

    package static func hello(from own: PeerIdentity, to receiver: NodeID) -> PeerHello {
        PeerHello(
            cluster: own.cluster, node: own.node, name: own.name, incarnation: own.incarnation,
            receiver: receiver, protocolMin: Self.protocolMin, protocolMax: Self.protocolMax,
            featureLevel: own.build.rawValue, data: own.data)
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
                    "this is cluster \(own.cluster), and you are of \(hello.cluster): peer "
                        + "lists or secrets differ"))
        }
        guard hello.receiver == own.node else {
            return .failure(
                PeerRefusal(
                    .otherNode,
                    "this is \(own.name) (\(own.node)), and you are looking for \(hello.receiver)"))
        }
        guard let peer = peers.first(where: { $0.node == hello.node }), peer.name == hello.name
        else {
            return .failure(
                PeerRefusal(
                    .unknownNode, "\(hello.name) (\(hello.node)) is not a member of this cluster"))
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
                featureLevel: own.build.rawValue, data: own.data))
    }

    /// The refusal for a peer whose build cannot read what the cluster writes. An older build must
    /// be able to read the refusal too, so it has a reason that level 1 knows.
    package static func refusal(of name: String, build: FeatureLevel, in cluster: FeatureLevel)
        -> PeerRefusal?
    {
        if build >= cluster { return nil }
        let release =
            cluster.release.map { "release \($0) or a later one" } ?? "the others' release"
        return PeerRefusal(
            .noCommonProtocol,
            "\(name) runs a build of feature level \(build), and the cluster was finalised at level "
                + "\(cluster): install \(release) on \(name)")
    }

    /// The refusal for a peer whose data directory is not the one it was first met with.
    package static func refusal(of name: String, _ met: PeerMemory.Meeting) -> PeerRefusal? {
        switch met {
        case .known: nil
        case .other(let known, let said):
            PeerRefusal(
                .otherData,
                "\(name) was known with data directory \(known) and comes with \(said): it "
                    + "has lost what it acknowledged and its votes, so it does not count; stop it "
                    + "and bring the old data directory back")
        case .notKept(let why):
            PeerRefusal(
                .fenced, "cannot record its peers on disk, so it accepts no new ones: \(why)")
        }
    }

    /// The refusal for a peer whose directory lacks a start that was heard of.
    package static func refusal(of name: String, _ heard: PeerMemory.Hearing) -> PeerRefusal? {
        switch heard {
        case .known: nil
        case .older(let heard, let said):
            PeerRefusal(
                .olderCopy,
                "\(name) was heard in start \(heard.number) of its data directory and comes "
                    + "with another copy, in start \(said.number), that has not seen it: it was "
                    + "restored from an older copy and has lost what it acknowledged and voted "
                    + "since, so it does not count; remove it and let it join anew")
        }
    }
}
