import StratusHTTP

/// The administrators' paths that change the cluster, or look at all of its nodes.
enum ClusterRoute: Equatable {
    case joinTokens
    case health
    case upgrade
    case node(name: String)
    case nodeAction(name: String, NodeAction)
    case partitionAction(name: String, PartitionAction)

    enum NodeAction: String { case drain, undrain, remove }
    enum PartitionAction: String { case move, leader }

    static let templates = [
        "/v1/cluster/join-tokens", "/v1/cluster/health", "/v1/cluster/nodes/{node}",
        "/v1/cluster/nodes/{node}/{action}", "/v1/cluster/partitions/{partition}/{action}",
        "/v1/cluster/upgrade",
    ]

    init?(_ path: String) {
        guard let segments = URLPath(path)?.segments, segments.count >= 3, segments[0] == "v1",
            segments[1] == "cluster"
        else { return nil }
        switch (segments[2], segments.count) {
        case ("join-tokens", 3): self = .joinTokens
        case ("health", 3): self = .health
        case ("upgrade", 3): self = .upgrade
        case ("nodes", 4): self = .node(name: segments[3])
        case ("nodes", 5):
            guard let action = NodeAction(rawValue: segments[4]) else { return nil }
            self = .nodeAction(name: segments[3], action)
        case ("partitions", 5):
            guard let action = PartitionAction(rawValue: segments[4]) else { return nil }
            self = .partitionAction(name: segments[3], action)
        default: return nil
        }
    }

    var template: String {
        switch self {
        case .joinTokens: Self.templates[0]
        case .health: Self.templates[1]
        case .node: Self.templates[2]
        case .nodeAction: Self.templates[3]
        case .partitionAction: Self.templates[4]
        case .upgrade: Self.templates[5]
        }
    }

    var methods: [String] {
        switch self {
        case .health: ["GET", "HEAD"]
        case .upgrade: ["GET", "HEAD", "POST"]
        case .node: ["PUT"]
        case .joinTokens, .nodeAction, .partitionAction: ["POST"]
        }
    }
}
