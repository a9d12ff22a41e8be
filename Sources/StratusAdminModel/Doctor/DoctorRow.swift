/// What the doctor sees: what the nodes say, and what they said a few seconds before.
package struct ClusterSight: Sendable, Equatable {
    package var cluster: ClusterAnswer
    package var earlier: ClusterAnswer
    package var health: ClusterHealthAnswer

    package init(_ cluster: ClusterAnswer, earlier: ClusterAnswer, _ health: ClusterHealthAnswer) {
        self.cluster = cluster
        self.earlier = earlier
        self.health = health
    }

    package var unreachable: Set<Int64> {
        Set(self.health.nodes.filter { !$0.isReachable }.map(\.node))
    }
}

/// A problem that the doctor found.
package struct DoctorFinding: NamedMembers {
    package var what = ""
    package var advice = ""
    /// The name of its row: see ``DoctorRow``.
    package private(set) var alarm = ""

    package init() {}

    init(_ row: DoctorRow, _ values: DoctorRow.Values) {
        self.alarm = row.alarm
        self.what = values.fill(row.sentence)
        self.advice = values.fill(row.advice)
    }

    package mutating func lay(in form: inout NamedForm) {
        form.member("what", &self.what)
        form.member("advice", &self.advice)
    }
}

/// `stratusctl doctor --json`, and `upgrade check --json`.
package struct DoctorAnswer: NamedMembers {
    /// Whether an upgrade can be finalised; nil where that was not asked.
    package var isGood: Bool?
    package var findings: [DoctorFinding] = []

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("good", &self.isGood)
        form.member("findings", &self.findings)
    }
}

/// One row of the doctor's table: a kind of problem, how it is found, and what to do about it.
///
/// Whoever adds a kind adds a row to ``Diagnosis/table``, and a rule to
/// `Deploy/monitoring/alerts.yaml`, so that nobody needs to run the doctor to hear of it. A test
/// compares the two.
package struct DoctorRow: Sendable {
    /// What the words in braces of a sentence stand for.
    package struct Values: ExpressibleByDictionaryLiteral, Sendable {
        private var values: [(name: String, value: String)]

        package init(dictionaryLiteral values: (String, String)...) {
            self.values = values.map { (name: $0.0, value: $0.1) }
        }

        /// Every word in braces is looked at once: a value may hold braces of its own.
        func fill(_ sentence: String) -> String {
            let parts = sentence.split(separator: "{", omittingEmptySubsequences: false)
            return parts.dropFirst().reduce(String(parts[0])) { text, part in
                guard let end = part.firstIndex(of: "}"),
                    let value = self.values.first(where: { $0.name == part[..<end] })?.value
                else { return text + "{" + part }
                return text + value + part[part.index(after: end)...]
            }
        }
    }

    /// Where it is looked for.
    package enum Look: Sendable {
        /// At each node that answers, one after the other.
        case node(@Sendable (ClusterHealthAnswer.Node, ClusterSight) -> [Values])
        /// At each node that does not answer.
        case silent(@Sendable (ClusterHealthAnswer.Node) -> Values)
        case cluster(@Sendable (ClusterSight) -> [Values])
        /// At a node that works alone.
        case alone(@Sendable (StatusAnswer) -> [Values])
        /// At what nodes know of each other while the cluster does not answer.
        case leaderless(@Sendable (ClusterHealthAnswer) -> Values?)
        /// Elsewhere: ``finding(_:)`` makes the finding.
        case asked
    }

    /// A number beyond which it is a problem, and how the rule of the alarm writes it.
    package struct Threshold: Sendable {
        package var text: String
        package var inRule: String
    }

    /// The name of the kind; several rows may be of one.
    package var alarm: String
    /// The name of the rule that fires for it.
    package var alert: String
    package var threshold: Threshold?
    package var sentence: String
    package var advice: String
    /// The first words of the command that helps; nil: none does.
    package var command: String?
    /// Where the documentation says more.
    package var page: String
    package var look: Look

    package func finding(_ values: Values = [:]) -> DoctorFinding { DoctorFinding(self, values) }
}
