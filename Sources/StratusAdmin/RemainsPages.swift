import StratusCluster
import StratusHTTP
import StratusModel
import StratusPlacement
import StratusRuntime

/// `/v1/remains`: what is left on the nodes' disks of what was erased.
enum RemainsPages {
    static let routes: [AdminRoute] = [
        AdminRoute(
            "POST", "/v1/remains", body: "positions",
            answer:
                "of every node, whether nothing is left on its disk of what was erased up to `positions`; "
                + "without them, up to now"
        ) { try await Self.show($0, $0.json()) }
    ]

    private struct Standing {
        var name: String
        /// Nil: the node does not answer.
        var remains: NodeRemains?
    }

    private static func show(_ exchange: AdminExchange, _ body: JSONValue) async throws
        -> HTTPResponse
    {
        let all = try await Self.ask(exchange)
        var wanted: [GroupID: LogIndex] = [:]
        if let given = body["positions"]?.array {
            for value in given {
                guard let group = value["partition"]?.int64.flatMap({ UInt16(exactly: $0) }),
                    let index = value["applied"]?.int64.flatMap({ UInt64(exactly: $0) })
                else { throw AdminRefusal.bad("'positions' holds what is none") }
                wanted[GroupID(group)] = LogIndex(index)
            }
        } else {
            // Whoever has answered for an entry has applied it, so the furthest has it.
            for position in all.flatMap({ $0.remains?.positions ?? [] }) {
                wanted[position.group] = max(wanted[position.group] ?? .zero, position.applied)
            }
        }
        return AdminAnswer.json(Self.json(all, wanted))
    }

    private static func ask(_ exchange: AdminExchange) async throws -> [Standing] {
        guard let cluster = exchange.clusterIfAny else {
            return [Standing(name: "this node", remains: await exchange.control.remains())]
        }
        guard let view = cluster.lastView else {
            throw AdminRefusal(503, "NOT_FORMED", "the cluster is not formed yet")
        }
        // All at a time: one that is away costs two seconds.
        return await withTaskGroup(of: (Int, Standing).self) { tasks in
            for (place, node) in view.nodes.filter(\.isMember).enumerated() {
                tasks.addTask {
                    var standing = Standing(name: node.name)
                    if case .remains(let remains)? = await cluster.ask(.remains, of: node.id) {
                        standing.remains = remains
                    }
                    return (place, standing)
                }
            }
            var all: [(Int, Standing)] = []
            for await standing in tasks { all.append(standing) }
            return all.sorted { $0.0 < $1.0 }.map(\.1)
        }
    }

    private static func json(_ all: [Standing], _ wanted: [GroupID: LogIndex]) -> Bytes {
        func isCleared(_ standing: Standing) -> Bool {
            standing.remains?.isCleared(through: wanted) == true
        }
        var json = JSONWriter()
        json.object {
            $0.member("isCleared", all.allSatisfy(isCleared))
            $0.member("nodes", objects: all) { json, standing in
                json.member("node", standing.name)
                json.member("answers", standing.remains != nil)
                json.member("isCleared", isCleared(standing))
                guard let remains = standing.remains else { return }
                json.member("partitions", Int64(remains.partitionCount))
                json.member("log", remains.isInLog)
                if remains.sinceMilliseconds > 0 {
                    json.member("since", WallTime.text(remains.sinceMilliseconds))
                }
                if remains.clearedMilliseconds > 0 {
                    json.member("cleared", WallTime.text(remains.clearedMilliseconds))
                }
            }
            $0.member("positions", objects: wanted.sorted { $0.key < $1.key }) { json, position in
                json.member("partition", Int64(position.key.raw))
                json.member("applied", Int64(clamping: position.value.raw))
            }
        }
        return json.finish()
    }
}
