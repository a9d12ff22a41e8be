import StratusAdminModel
import StratusCluster
import StratusHTTP
import StratusModel
import StratusPlacement
import StratusRuntime

/// What the nodes say of themselves to whoever looks into a problem. Any node can be asked about
/// any other, because administrators often reach only one.
enum SupportPages {
    static let routes: [AdminRoute] = [
        AdminRoute(
            "GET", "/v1/support", need: .node,
            answer: "status, configuration, versions, metrics and last log lines, as files"
        ) { Self.answer(await $0.control.supportFiles()) },
        AdminRoute(
            "GET", "/v1/cluster/nodes/{node}/support", need: .cluster,
            answer: "the same of another node"
        ) { try await Self.other($0) },
    ]

    private static func other(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let cluster = try exchange.cluster
        let name = exchange.parameter("node")
        // As last known: it is wanted most while the cluster cannot say what it is.
        guard let view = cluster.lastView else {
            throw AdminRefusal(503, .notFormed, "the cluster is not formed yet")
        }
        guard let node = view.nodes.first(where: { $0.name == name && $0.isMember }) else {
            throw AdminRefusal(404, .noSuchNode, "there is no node '\(name)'")
        }
        guard case .support(let files)? = await cluster.ask(.support, of: node.id) else {
            throw AdminRefusal(503, .unavailable, "node '\(name)' does not answer")
        }
        return Self.answer(files)
    }

    private static func answer(_ files: [SupportFile]) -> HTTPResponse {
        AdminAnswer.json(
            Listing(
                files.map { file in
                    SupportText {
                        $0.name = file.name
                        $0.text = String(decoding: file.contents, as: UTF8.self)
                    }
                }))
    }
}
