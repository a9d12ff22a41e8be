import StratusCommandLine
import StratusHTTP

/// The facts that the commands read out of `/v1/cluster` and `/v1/cluster/health`.
enum ClusterFacts {
    static func array(_ value: JSONValue, _ key: String) -> [JSONValue] {
        value[key]?.array.map(Array.init) ?? []
    }

    static func nodes(_ cluster: JSONValue) -> [JSONValue] { self.array(cluster, "nodes") }

    static func names(_ cluster: JSONValue) -> [Int64: String] {
        var names: [Int64: String] = [:]
        for node in self.nodes(cluster) {
            if let id = node["node"]?.int64 { names[id] = node["name"]?.string ?? "\(id)" }
        }
        return names
    }

    /// Replicas placed on a node, that of the system partition among them.
    static func replicaCount(of node: Int64, in cluster: JSONValue) -> Int {
        self.array(cluster, "partitions").count { partition in
            self.array(partition, "replicas").contains { $0.int64 == node }
        }
    }

    static func partition(_ name: String, _ cluster: JSONValue, _ health: JSONValue) -> String? {
        guard
            let found = self.array(cluster, "partitions").first(where: {
                $0["partition"]?.string == name
            })
        else { return nil }
        let names = self.names(cluster)
        func words(_ value: JSONValue, _ key: String) -> String {
            self.array(value, key).compactMap(\.int64).map { names[$0] ?? "\($0)" }
                .joined(separator: " ")
        }
        let seen = self.array(health, "groups").first { $0["partition"]?.string == name }
        var table = TextTable([.init(""), .init("")])
        table.append(["partition", name])
        table.append(["replicas", words(found, "replicas")])
        table.append([
            "leader", seen?["leader"]?.int64.map { names[$0] ?? "\($0)" } ?? "nobody now",
        ])
        if let seen { table.append(["behind", words(seen, "behind")]) }
        let move = self.array(cluster, "moves").first { $0["partition"]?.string == name }
        if let move {
            let ends = ["from", "to"].map { end in
                move[end]?.int64.map { names[$0] ?? "\($0)" } ?? "nowhere"
            }
            table.append(["moving", "from \(ends[0]) to \(ends[1])"])
        }
        return table.write()
    }

    /// What ``partition(_:_:_:)`` shows, for scripts.
    static func partitionJSON(_ name: String, _ cluster: JSONValue, _ health: JSONValue)
        -> String?
    {
        func named(_ value: JSONValue) -> Bool { value["partition"]?.string == name }
        guard let found = self.array(cluster, "partitions").first(where: named) else { return nil }
        let names = self.names(cluster)
        func write(_ id: Int64?, to json: inout JSONWriter) {
            if let id { json.write(names[id] ?? "\(id)") } else { json.writeNull() }
        }
        func list(_ value: JSONValue?, _ key: String, to json: inout JSONWriter) {
            json.key(key)
            json.array { array in
                for id in value.map({ self.array($0, key) }) ?? [] {
                    write(id.int64, to: &array)
                }
            }
        }
        let seen = self.array(health, "groups").first(where: named)
        let move = self.array(cluster, "moves").first(where: named)
        var json = JSONWriter()
        json.object { json in
            json.member("partition", name)
            list(found, "replicas", to: &json)
            json.key("leader")
            write(seen?["leader"]?.int64, to: &json)
            list(seen, "behind", to: &json)
            if let move {
                json.key("move")
                json.object { json in
                    for end in ["from", "to"] {
                        json.key(end)
                        write(move[end]?.int64, to: &json)
                    }
                }
            }
        }
        return String(decoding: json.finish(), as: UTF8.self)
    }

    /// The text that `top` shows.
    static func overview(_ cluster: JSONValue, _ health: JSONValue) -> String {
        var table = TextTable([
            .init("NODE"), .init("STATE"), .init("REPLICAS", alignsRight: true),
            .init("LEADS", alignsRight: true), .init("IN FLIGHT", alignsRight: true),
            .init("MEMORY", alignsRight: true), .init("DISK FREE", alignsRight: true),
            .init("COMPLAINS OF"),
        ])
        for node in self.nodes(health) {
            let isThere = node["reachable"]?.bool == true
            table.append([
                node["name"]?.string ?? "",
                isThere ? node["state"]?.string ?? "" : "does not answer",
                "\(self.replicaCount(of: node["node"]?.int64 ?? 0, in: cluster))",
                node["leads"]?.numberText ?? "-", node["requestsInFlight"]?.numberText ?? "-",
                node["residentBytes"]?.int64.map { "\($0 >> 20) MiB" } ?? "-",
                node["freeBytes"]?.int64.map { "\($0 >> 30) GiB" } ?? "-",
                self.array(node, "complaints").compactMap { $0["component"]?.string }
                    .joined(separator: " "),
            ])
        }
        let moves = self.array(cluster, "moves").count
        return table.write() + "\nmoves \(moves), revision "
            + (cluster["revision"]?.numberText ?? "") + "\n"
    }
}
