import StratusCluster
import StratusCommandLine
import StratusConfiguration

/// The list `cluster.peers`: who forms the cluster, and where each is found.
enum ClusterPeers {
    /// `NAME@HOST:PORT`; nil for anything else.
    static func parse(_ text: String) -> ClusterFormation.Peer? {
        PeerPlace(text).map {
            ClusterFormation.Peer(name: $0.name, host: $0.host, port: $0.port)
        }
    }

    /// Those that can be read; ``ConfigurationRules`` has refused the others.
    static func parse(_ settings: ConfigurationSettings) -> [ClusterFormation.Peer] {
        settings.texts("cluster.peers").compactMap { Self.parse($0) }
    }

    /// Members that a newcomer asks to be admitted; empty for a founder.
    static func members(_ settings: ConfigurationSettings) -> [ClusterFormation.Peer] {
        settings.texts("cluster.join").compactMap { Self.parse($0) }
    }

    /// Whether the node is one of several, or wants to be.
    static func isClustered(_ settings: ConfigurationSettings) -> Bool {
        !settings.texts("cluster.peers").isEmpty || Self.isJoining(settings)
    }

    static func isJoining(_ settings: ConfigurationSettings) -> Bool {
        !settings.texts("cluster.join").isEmpty
    }

    /// The addresses of peers by name, as this node's configuration gives them.
    static func addresses(_ settings: ConfigurationSettings) -> [String: String] {
        var addresses: [String: String] = [:]
        for peer in Self.parse(settings) { addresses[peer.name] = "\(peer.host):\(peer.port)" }
        if let name = settings.text("cluster.name"), let own = settings.address("cluster.address"),
            case .tcp(let host, let port) = own
        {
            addresses[name] = "\(host):\(port)"
        }
        return addresses
    }

    /// The address on which this node listens for peers.
    static func listen(_ settings: ConfigurationSettings, name: String) -> ListenAddress? {
        if let address = settings.address("cluster.listen") { return address }
        if let own = Self.parse(settings).first(where: { $0.name == name }) {
            return .tcp(host: own.host, port: own.port)
        }
        return settings.address("cluster.address")
    }
}
