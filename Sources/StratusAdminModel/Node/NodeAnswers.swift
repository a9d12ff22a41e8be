import StratusModel

/// One key of the configuration that is in force.
package struct ConfiguredKey: ListedRow, TabularRow {
    package static let list: StaticString = "configuration"

    package var key = ""
    /// As it would stand in the file; nil: there is none.
    package var value: RawJSON?
    package var origin = ""
    package var reloads = false

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("key", &self.key)
        form.member("value", orNull: &self.value)
        form.member("origin", &self.origin)
        form.member("reloads", &self.reloads)
    }

    package static var columns: [AnswerColumn<Self>] {
        [
            .init("KEY", \.key), .init("VALUE") { $0.value?.text ?? "none" },
            .init("FROM", \.origin),
        ]
    }
}

/// The level of a node's log, as it is or as it is to be.
package struct LogLevelAnswer: NamedMembers {
    package var level = ""

    package init() {}
    package init(_ level: String) { self.level = level }
    package mutating func lay(in form: inout NamedForm) { form.member("level", &self.level) }
}

/// A file of what a node says of itself to whoever looks into a problem.
package struct SupportText: ListedRow {
    package static let list: StaticString = "files"

    package var name = ""
    package var text = ""

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("name", &self.name)
        form.member("text", &self.text)
    }
}

/// `POST /v1/remains`: what is left on the nodes' disks of what was erased.
package struct RemainsAnswer: NamedMembers {
    package struct Node: NamedMembers, TabularRow {
        package var node = ""
        package var answers = false
        package var isCleared = false
        package var partitions: Int64?
        package var isInLog: Bool?
        package var since: String?
        package var cleared: String?

        package init() {}
        package mutating func lay(in form: inout NamedForm) {
            form.member("node", &self.node)
            form.member("answers", &self.answers)
            form.member("isCleared", &self.isCleared)
            form.member("partitions", &self.partitions)
            form.member("log", &self.isInLog)
            form.member("since", &self.since)
            form.member("cleared", &self.cleared)
        }

        package static var columns: [AnswerColumn<Self>] {
            [
                .init("NODE", \.node), .init("LEFT ON ITS DISK", \.left),
                .init("CLEARED", \.cleared),
            ]
        }

        package var left: String {
            guard self.answers else { return "does not answer" }
            if self.isCleared { return "nothing" }
            var parts: [String] = []
            if let count = self.partitions, count > 0 { parts.append("\(count) partitions") }
            if self.isInLog == true { parts.append("the log") }
            if parts.isEmpty { parts.append("it is catching up") }
            return parts.joined(separator: ", ")
        }
    }

    package var isCleared = false
    package var nodes: [Node] = []
    package var positions: [Position] = []

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("isCleared", &self.isCleared)
        form.member("nodes", &self.nodes)
        form.member("positions", &self.positions)
    }

    /// How far a partition is.
    package struct Position: NamedMembers {
        package var partition: Int64?
        package var applied: Int64?

        package init() {}
        package mutating func lay(in form: inout NamedForm) {
            form.member("partition", &self.partition)
            form.member("applied", &self.applied)
        }
    }
}

/// Up to where it is asked what remains; without positions, up to now.
package struct RemainsBody: NamedMembers {
    package var positions: [RemainsAnswer.Position]?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("positions", &self.positions)
    }
}
