import StratusModel

/// `GET /v1/cluster/health`: what every node says of itself, and the leaders of their groups.
package struct ClusterHealthAnswer: NamedMembers {
    package struct Node: NamedMembers {
        package var name = "?"
        package var node: Int64 = 0
        package var state = ""
        package var isReachable = false
        // What a node that does not answer says nothing of.
        package var version: String?
        package var wallMilliseconds: Int64?
        package var freeBytes: Int64?
        package var diskBytes: Int64?
        /// Seconds since 1970.
        package var certificateEnds: Int64?
        package var revision: Int64?
        package var leads: Int64?
        package var residentBytes: Int64?
        package var requestsInFlight: Int64?
        package var complaints: [ComponentReport]?

        package init() {}
        package mutating func lay(in form: inout NamedForm) {
            form.member("name", &self.name)
            form.member("node", &self.node)
            form.member("state", &self.state)
            form.member("reachable", &self.isReachable)
            form.member("version", &self.version)
            form.member("wallMilliseconds", &self.wallMilliseconds)
            form.member("freeBytes", &self.freeBytes)
            form.member("diskBytes", &self.diskBytes)
            form.member("certificateEnds", &self.certificateEnds)
            form.member("revision", &self.revision)
            form.member("leads", &self.leads)
            form.member("residentBytes", &self.residentBytes)
            form.member("requestsInFlight", &self.requestsInFlight)
            form.member("complaints", &self.complaints)
        }
    }

    package struct Group: NamedMembers {
        package var partition = ""
        package var leader: Int64?
        package var isJoint = false
        package var behind: [Int64] = []

        package init() {}
        package mutating func lay(in form: inout NamedForm) {
            form.member("partition", &self.partition)
            form.member("leader", &self.leader)
            form.member("joint", &self.isJoint)
            form.member("behind", &self.behind)
        }
    }

    package var wallMilliseconds: Int64 = 0
    package var revision: Int64 = 0
    /// False: nobody leads the system partition.
    package var isCurrent = true
    package var systemReplicas: [Int64] = []
    package var nodes: [Node] = []
    package var groups: [Group] = []

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("wallMilliseconds", &self.wallMilliseconds)
        form.member("revision", &self.revision)
        form.member("isCurrent", &self.isCurrent)
        form.member("systemReplicas", &self.systemReplicas)
        form.member("nodes", &self.nodes)
        form.member("groups", &self.groups)
    }
}
