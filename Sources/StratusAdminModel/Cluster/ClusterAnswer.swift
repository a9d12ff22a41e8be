import StratusModel

/// `GET /v1/cluster`: nodes, placement and moves, as the system partition knows them.
package struct ClusterAnswer: NamedMembers {
    package struct Node: NamedMembers {
        package var node: Int64 = 0
        package var name = ""
        package var address = ""
        package var state = ""
        package var weight: Int64 = 0
        package var rack = ""
        package var partitions: Int64 = 0
        /// Of the data, in partitions; nil: it has none.
        package var share: Double?
        package var wasHeard = false
        /// Nil: never.
        package var lastHeardMilliseconds: Int64?
        package var featureLevel: Int64?

        package init() {}
        package mutating func lay(in form: inout NamedForm) {
            form.member("node", &self.node)
            form.member("name", &self.name)
            form.member("address", &self.address)
            form.member("state", &self.state)
            form.member("weight", &self.weight)
            form.member("rack", &self.rack)
            form.member("partitions", &self.partitions)
            form.member("share", orNull: &self.share)
            form.member("wasHeard", &self.wasHeard)
            form.member("lastHeardMilliseconds", orNull: &self.lastHeardMilliseconds)
            form.member("featureLevel", &self.featureLevel)
        }

        package var isMember: Bool { self.state != "removed" }
    }

    package struct Move: NamedMembers {
        package var partition = ""
        package var number: Int64 = 0
        package var from: Int64?
        package var to: Int64?

        package init() {}
        package mutating func lay(in form: inout NamedForm) {
            form.member("partition", &self.partition)
            form.member("number", &self.number)
            form.member("from", orNull: &self.from)
            form.member("to", orNull: &self.to)
        }
    }

    package struct Partition: NamedMembers {
        /// Its number, or `system`.
        package var partition = ""
        package var replicas: [Int64] = []
        package var leader: Int64?

        package init() {}
        package mutating func lay(in form: inout NamedForm) {
            form.member("partition", &self.partition)
            form.member("replicas", &self.replicas)
            form.member("leader", orNull: &self.leader)
        }
    }

    package var cluster = ""
    /// Whether it is what the system partition says now; otherwise the node's last knowledge.
    package var isCurrent = true
    /// The clock of the node that answers; nil: it does not say.
    package var wallMilliseconds: Int64?
    package var answeredBy: Int64 = 0
    package var revision: Int64 = 0
    package var placementEpoch: Int64 = 0
    package var featureLevel: Int64 = 0
    package var partitionCount: Int64 = 0
    package var replicaCount: Int64 = 0
    /// As many as there are nodes for.
    package var possibleReplicaCount: Int64?
    package var shortfalls: [String] = []
    package var nodes: [Node] = []
    package var moves: [Move] = []
    package var partitions: [Partition] = []

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("cluster", &self.cluster)
        form.member("isCurrent", &self.isCurrent)
        form.member("wallMilliseconds", &self.wallMilliseconds)
        form.member("answeredBy", &self.answeredBy)
        form.member("revision", &self.revision)
        form.member("placementEpoch", &self.placementEpoch)
        form.member("featureLevel", &self.featureLevel)
        form.member("partitionCount", &self.partitionCount)
        form.member("replicaCount", &self.replicaCount)
        form.member("possibleReplicaCount", &self.possibleReplicaCount)
        form.member("shortfalls", &self.shortfalls)
        form.member("nodes", &self.nodes)
        form.member("moves", &self.moves)
        form.member("partitions", &self.partitions)
    }

    package var names: [Int64: String] {
        self.nodes.reduce(into: [:]) { $0[$1.node] = $1.name }
    }

    /// Replicas placed on a node, that of the system partition among them.
    package func replicaCount(of node: Int64) -> Int {
        self.partitions.count { $0.replicas.contains(node) }
    }
}
