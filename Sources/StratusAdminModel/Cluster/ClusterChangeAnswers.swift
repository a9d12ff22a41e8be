import StratusCommandLine
import StratusModel

/// The answer to a change of the cluster.
package struct RevisionAnswer: NamedMembers {
    package var revision: Int64 = 0

    package init() {}
    package init(_ revision: UInt64) { self.revision = Int64(clamping: revision) }
    package mutating func lay(in form: inout NamedForm) {
        form.member("revision", &self.revision)
    }
}

/// What `stratusctl` prints for scripts after a change of the cluster.
package struct DoneAnswer: NamedMembers {
    package var isDone = true

    package init() {}
    package mutating func lay(in form: inout NamedForm) { form.member("done", &self.isDone) }
}

/// A token that lets one node in, shown this once.
package struct JoinTokenAnswer: NamedMembers {
    package var token = ""
    package var expiresMilliseconds: Int64 = 0

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("token", &self.token)
        form.member("expiresMilliseconds", &self.expiresMilliseconds)
    }
}

package struct JoinTokenBody: NamedMembers {
    package var validSeconds: Int64?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("validSeconds", &self.validSeconds)
    }
}

/// The withdrawn certificates.
package struct WithdrawnAnswer: NamedMembers {
    package struct Certificate: NamedMembers, TabularRow {
        package var fingerprint = ""
        /// Whose it is, as whoever withdrew it said.
        package var holder: String?
        /// Nil: the audit trail has no entry of it among its newest.
        package var at: String?
        package var actor: String?

        package init() {}
        package mutating func lay(in form: inout NamedForm) {
            form.member("fingerprint", &self.fingerprint)
            form.member("of", &self.holder)
            form.member("at", &self.at)
            form.member("by", &self.actor)
        }

        package static var columns: [AnswerColumn<Self>] {
            [
                .init("OF", \.holder), .init("WITHDRAWN", \.at), .init("BY", \.actor),
                .init("FINGERPRINT", \.fingerprint),
            ]
        }
    }

    package var withdrawn: [String] = []
    package var certificates: [Certificate] = []

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("withdrawn", &self.withdrawn)
        form.member("certificates", &self.certificates)
    }
}

/// Whose certificate is withdrawn.
package struct CertificateBody: NamedMembers {
    package var holder: String?

    package init() {}
    package mutating func lay(in form: inout NamedForm) { form.member("of", &self.holder) }
}

/// How a node is drained or removed.
package struct NodeRemovalBody: NamedMembers {
    /// The number by which a refused change is confirmed.
    package var accept: Int64?
    /// Whether a drained node leaves the cluster once it is empty.
    package var leaves = false

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("accept", &self.accept)
        form.member("leave", ifSet: &self.leaves)
    }
}

package struct NodeWeightBody: NamedMembers {
    package var weight: Int64?
    package var rack: String?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("weight", &self.weight)
        form.member("rack", &self.rack)
    }
}

package struct PartitionMoveBody: NamedMembers {
    package var from: String?
    package var to: String?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("from", &self.from)
        form.member("to", &self.to)
    }
}

package struct PartitionLeaderBody: NamedMembers {
    package var to: String?

    package init() {}
    package mutating func lay(in form: inout NamedForm) { form.member("to", &self.to) }
}

/// The new leader of a partition.
package struct LeaderAnswer: NamedMembers {
    package var leader = ""

    package init() {}
    package init(_ leader: String) { self.leader = leader }
    package mutating func lay(in form: inout NamedForm) { form.member("leader", &self.leader) }
}

/// `stratusctl partition show --json`: one partition, with the names of its nodes.
package struct PartitionView: NamedMembers {
    package struct Move: NamedMembers {
        package var from: String?
        package var to: String?

        package init() {}
        package mutating func lay(in form: inout NamedForm) {
            form.member("from", orNull: &self.from)
            form.member("to", orNull: &self.to)
        }
    }

    package var partition = ""
    package var replicas: [String] = []
    /// Nil: nobody now.
    package var leader: String?
    package var behind: [String] = []
    package var move: Move?
    /// Whether the leader was heard; `behind` says nothing otherwise.
    package var isSeen = false

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("partition", &self.partition)
        form.member("replicas", &self.replicas)
        form.member("leader", orNull: &self.leader)
        form.member("behind", &self.behind)
        form.member("move", &self.move)
    }

    /// Nil: there is no such partition.
    package init?(_ name: String, _ cluster: ClusterAnswer, _ health: ClusterHealthAnswer) {
        guard let found = cluster.partitions.first(where: { $0.partition == name }) else {
            return nil
        }
        let names = cluster.names
        func word(_ id: Int64) -> String { names[id] ?? "\(id)" }
        self.partition = name
        self.replicas = found.replicas.map(word)
        if let seen = health.groups.first(where: { $0.partition == name }) {
            self.isSeen = true
            self.leader = seen.leader.map(word)
            self.behind = seen.behind.map(word)
        }
        if let move = cluster.moves.first(where: { $0.partition == name }) {
            self.move = Move {
                $0.from = move.from.map(word)
                $0.to = move.to.map(word)
            }
        }
    }

    package var text: String {
        var table = TextTable([.init(""), .init("")])
        table.append(["partition", self.partition])
        table.append(["replicas", self.replicas.joined(separator: " ")])
        table.append(["leader", self.leader ?? "nobody now"])
        if self.isSeen { table.append(["behind", self.behind.joined(separator: " ")]) }
        if let move {
            table.append(["moving", "from \(move.from ?? "nowhere") to \(move.to ?? "nowhere")"])
        }
        return table.write()
    }
}

/// `stratusctl top --json`: one look.
package struct ClusterLook: NamedMembers {
    package var cluster = RawJSON()
    package var health = RawJSON()

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("cluster", &self.cluster)
        form.member("health", &self.health)
    }
}
