import StratusModel

/// `GET /v1/cluster/upgrade`: the feature levels of cluster and nodes.
package struct UpgradeAnswer: NamedMembers {
    package struct Node: NamedMembers {
        package var name = ""
        package var node: Int64 = 0
        package var featureLevel: Int64 = 0

        package init() {}
        package mutating func lay(in form: inout NamedForm) {
            form.member("name", &self.name)
            form.member("node", &self.node)
            form.member("featureLevel", &self.featureLevel)
        }
    }

    package var featureLevel: Int64 = 0
    package var newestLevel: Int64 = 0
    package var buildLevel: Int64 = 0
    package var canFinalise = false
    package var isFinalised = false
    package var lagging: [String] = []
    package var nodes: [Node] = []

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("featureLevel", &self.featureLevel)
        form.member("newestLevel", &self.newestLevel)
        form.member("buildLevel", &self.buildLevel)
        form.member("canFinalise", &self.canFinalise)
        form.member("isFinalised", &self.isFinalised)
        form.member("lagging", &self.lagging)
        form.member("nodes", &self.nodes)
    }

    package var laggingNames: String {
        self.lagging.map { "'\($0)'" }.joined(separator: ", ")
    }
}

/// `stratusctl upgrade status --json`.
package struct UpgradeStatus: NamedMembers {
    package struct Node: NamedMembers, TabularRow {
        package var name = ""
        package var featureLevel: Int64 = 0
        package var isReachable = false
        package var release: String?

        package init() {}
        package mutating func lay(in form: inout NamedForm) {
            form.member("name", &self.name)
            form.member("featureLevel", &self.featureLevel)
            form.member("reachable", &self.isReachable)
            form.member("release", &self.release)
        }

        package static var columns: [AnswerColumn<Self>] {
            [
                .init("NODE", \.name), .init("RELEASE") { $0.release ?? "does not answer" },
                .init("FEATURE LEVEL", alignsRight: true, \.featureLevel),
            ]
        }
    }

    package var featureLevel: Int64 = 0
    package var newestLevel: Int64 = 0
    package var buildLevel: Int64 = 0
    package var canFinalise = false
    package var isFinalised = false
    package var nodes: [Node] = []

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("featureLevel", &self.featureLevel)
        form.member("newestLevel", &self.newestLevel)
        form.member("buildLevel", &self.buildLevel)
        form.member("canFinalise", &self.canFinalise)
        form.member("isFinalised", &self.isFinalised)
        form.member("nodes", &self.nodes)
    }

    /// - Parameter releases: by the names of the nodes that answer.
    package init(_ standing: UpgradeAnswer, _ releases: [String: String]) {
        self.featureLevel = standing.featureLevel
        self.newestLevel = standing.newestLevel
        self.buildLevel = standing.buildLevel
        self.canFinalise = standing.canFinalise
        self.isFinalised = standing.isFinalised
        self.nodes = standing.nodes.map { node in
            Node {
                $0.name = node.name
                $0.featureLevel = node.featureLevel
                $0.release = releases[node.name]
                $0.isReachable = $0.release != nil
            }
        }
    }
}

/// `stratusctl upgrade finalise --json`.
package struct FinalisedAnswer: NamedMembers {
    package var featureLevel: Int64 = 0
    package var isFinalised = true

    package init() {}
    package init(_ level: Int64) { self.featureLevel = level }
    package mutating func lay(in form: inout NamedForm) {
        form.member("featureLevel", &self.featureLevel)
        form.member("isFinalised", &self.isFinalised)
    }
}
