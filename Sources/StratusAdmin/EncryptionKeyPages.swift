import StratusCluster
import StratusContainers
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime
import StratusSealing

/// The keys that files and encrypted fields are sealed under: versions and counts, never the keys.
///
/// Both pages do a slice of the containers at a time. `next` in an answer is where to go on.
enum EncryptionKeyPages {
    static let routes: [AdminRoute] = [
        AdminRoute(
            "GET", "/v1/encryption-keys",
            answer:
                "the master keys of this node, and what keys of containers are wrapped under them; "
                + "100 containers from `?from=`, and `next`"
        ) { try await Self.list($0) },
        AdminRoute(
            "POST", "/v1/encryption-keys/rotation", body: "from",
            answer: "how many keys of containers were wrapped anew, of 100 containers; and `next`"
        ) { try await Self.rotate($0, $0.json()) },
    ]

    /// The containers of one slice.
    private static let sliceCount = 100

    private static func keys(_ exchange: AdminExchange) throws -> ContainerKeys {
        guard let keys = try exchange.directory.keys else {
            throw AdminRefusal(404, "NOT_FOUND", "this node has no encryption keys")
        }
        return keys.containers
    }

    private static func slice(_ exchange: AdminExchange, from: Int) async throws -> (
        containers: [ContainerReference], next: Int?
    ) {
        guard from >= 0 else { throw AdminRefusal.bad("'from' must be 0 or more") }
        let all = try await exchange.registry.all().map(\.container)
        let end = min(from + Self.sliceCount, all.count)
        guard from < end else { return ([], nil) }
        return (Array(all[from..<end]), end < all.count ? end : nil)
    }

    private static func list(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let keys = try Self.keys(exchange)
        let from = exchange.query?["from"].flatMap { Int($0) } ?? 0
        let (containers, next) = try await Self.slice(exchange, from: from)
        var counts: [UInt32: Int64] = [:]
        var without: Int64 = 0
        var failing: [(ContainerReference, String)] = []
        for container in containers {
            switch try await keys.state(of: container) {
            case .none: without += 1
            case .wrapped(let version): counts[version, default: 0] += 1
            case .closed(let version, let reason):
                counts[version, default: 0] += 1
                failing.append((container, reason))
            }
        }
        let held = keys.master.versions
        let versions = Set(held).union(counts.keys).sorted()
        var json = JSONWriter()
        json.object {
            $0.key("masters")
            $0.array { array in
                for version in versions {
                    array.object {
                        $0.member("version", Int64(version))
                        $0.member(
                            "state",
                            version == keys.master.sealing
                                ? "seals" : held.contains(version) ? "opens" : "missing")
                        $0.member("containers", counts[version] ?? 0)
                    }
                }
            }
            $0.member("withoutKey", without)
            $0.key("failing")
            $0.array { array in
                for (container, reason) in failing {
                    array.object {
                        $0.member("container", container.container)
                        $0.member("environment", container.environment.name)
                        $0.member("reason", reason)
                    }
                }
            }
            if let next { $0.member("next", Int64(next)) }
        }
        return AdminAnswer.json(json.finish())
    }

    private static func rotate(_ exchange: AdminExchange, _ body: JSONValue) async throws
        -> HTTPResponse
    {
        let keys = try Self.keys(exchange)
        let from = body["from"]?.int64.flatMap { Int(exactly: $0) } ?? 0
        let (containers, next) = try await Self.slice(exchange, from: from)
        var wrapped: Int64 = 0
        for container in containers where try await keys.wrapAnew(container) { wrapped += 1 }
        try await exchange.note(
            "encryption-key rotate",
            "master \(keys.master.sealing), \(wrapped) containers from \(from)")
        var json = JSONWriter()
        json.object {
            $0.member("version", Int64(keys.master.sealing))
            $0.member("wrapped", wrapped)
            if let next { $0.member("next", Int64(next)) }
        }
        return AdminAnswer.json(json.finish())
    }
}
