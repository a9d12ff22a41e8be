import StratusCluster
import StratusCommandLine

/// The list `cluster.peers`: who forms the cluster, and where each is found.
enum ClusterPeers {
    /// `NAME@HOST:PORT`; nil for anything else.
    static func parse(_ text: String) -> ClusterFormation.Peer? {
        guard let at = text.firstIndex(of: "@") else { return nil }
        let name = String(text[..<at])
        guard Self.isName(name),
            case .tcp(let host, let port) = ListenAddress(String(text[text.index(after: at)...])),
            port > 0
        else { return nil }
        return ClusterFormation.Peer(name: name, host: host, port: port)
    }

    /// Those that can be read; ``ConfigurationRules`` has refused the others.
    static func parse(_ settings: ConfigurationSettings) -> [ClusterFormation.Peer] {
        settings.texts("cluster.peers").compactMap { Self.parse($0) }
    }

    /// As a host's name is written: it stands in the node's certificate.
    static func isName(_ name: String) -> Bool {
        (1...63).contains(name.utf8.count) && !name.hasPrefix("-") && !name.hasSuffix("-")
            && name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                    UInt8(ascii: "-"):
                    true
                default: false
                }
            }
    }
}
