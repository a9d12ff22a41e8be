import StratusAdminModel
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
        ) { try await Self.show($0, $0.body()) }
    ]

    private struct Standing {
        var name: String
        /// Nil: the node does not answer.
        var remains: NodeRemains?
    }

    private static func show(_ exchange: AdminExchange, _ body: RemainsBody) async throws
        -> HTTPResponse
    {
        let all = try await Self.ask(exchange)
        var wanted: [GroupID: LogIndex] = [:]
        if let given = body.positions {
            for value in given {
                guard let group = value.partition.flatMap({ UInt16(exactly: $0) }),
                    let index = value.applied.flatMap({ UInt64(exactly: $0) })
                else { throw AdminRefusal.bad("'positions' holds what is none") }
                wanted[GroupID(group)] = LogIndex(index)
            }
        } else {
            // Whoever has answered for an entry has applied it, so the furthest has it.
            for position in all.flatMap({ $0.remains?.positions ?? [] }) {
                wanted[position.group] = max(wanted[position.group] ?? .zero, position.applied)
            }
        }
        return AdminAnswer.json(Self.answer(all, wanted))
    }

    private static func ask(_ exchange: AdminExchange) async throws -> [Standing] {
        guard let cluster = exchange.clusterIfAny else {
            return [Standing(name: "this node", remains: await exchange.control.remains())]
        }
        guard let view = cluster.lastView else {
            throw AdminRefusal(503, .notFormed, "the cluster is not formed yet")
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

    private static func answer(_ all: [Standing], _ wanted: [GroupID: LogIndex]) -> RemainsAnswer {
        func isCleared(_ standing: Standing) -> Bool {
            standing.remains?.isCleared(through: wanted) == true
        }
        return RemainsAnswer {
            $0.isCleared = all.allSatisfy(isCleared)
            $0.nodes = all.map { standing in
                RemainsAnswer.Node {
                    $0.node = standing.name
                    $0.answers = standing.remains != nil
                    $0.isCleared = isCleared(standing)
                    guard let remains = standing.remains else { return }
                    $0.partitions = Int64(remains.partitionCount)
                    $0.isInLog = remains.isInLog
                    $0.since = Self.time(remains.sinceMilliseconds)
                    $0.cleared = Self.time(remains.clearedMilliseconds)
                }
            }
            $0.positions = wanted.sorted { $0.key < $1.key }.map { group, index in
                RemainsAnswer.Position {
                    $0.partition = Int64(group.raw)
                    $0.applied = Int64(clamping: index.raw)
                }
            }
        }
    }

    private static func time(_ milliseconds: Int64) -> String? {
        milliseconds > 0 ? WallTime.text(milliseconds) : nil
    }
}
