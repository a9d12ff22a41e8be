import StratusModel

/// Bodies of one partition that are asked about.
package struct WantedBody: NamedMembers {
    package var partition: Int64?
    package var bodies: [String] = []

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("partition", &self.partition)
        form.member("bodies", &self.bodies)
    }
}

/// Whether copies of a body are wanted.
package struct WantedRow: ListedRow {
    package static let list: StaticString = "bodies"

    package var body = ""
    package var isKnown = false
    package var isWanted: Bool?
    package var isLost: Bool?
    package var chunks: Int64?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("body", &self.body)
        form.member("known", &self.isKnown)
        form.member("wanted", &self.isWanted)
        form.member("lost", &self.isLost)
        form.member("chunks", &self.chunks)
    }
}

/// What became of a body whose copies were sent.
package struct AdoptedAnswer: NamedMembers {
    package var state = ""
    package var taken: Int64 = 0
    package var unsound: Int64 = 0

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("state", &self.state)
        form.member("taken", &self.taken)
        form.member("unsound", &self.unsound)
    }
}

/// `stratusctl assets adopt --json`: one body.
package struct AdoptionLine: NamedMembers {
    package var partition: Int64 = 0
    package var body = ""
    package var chunks: Int64 = 0
    package var here: Int64 = 0
    package var isLost = false
    package var state = ""
    package var taken: Int64 = 0

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("partition", &self.partition)
        form.member("body", &self.body)
        form.member("chunks", &self.chunks)
        form.member("here", &self.here)
        form.member("lost", &self.isLost)
        form.member("state", &self.state)
        form.member("taken", &self.taken)
    }
}

/// `stratusctl assets adopt --json`: packs that cannot be read.
package struct AdoptionTrouble: NamedMembers {
    package var trouble = ""

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("trouble", &self.trouble)
    }
}

/// `stratusctl assets adopt --json`: the last line.
package struct AdoptionSummary: NamedMembers {
    package var isDone = false
    package var wanted: Int64 = 0
    package var found: Int64 = 0
    package var completed: Int64 = 0
    package var incomplete: Int64 = 0
    package var held: Int64 = 0
    package var unknown: Int64 = 0
    package var unsound: Int64 = 0
    package var troubles: Int64 = 0

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("done", &self.isDone)
        form.member("wanted", &self.wanted)
        form.member("found", &self.found)
        form.member("completed", &self.completed)
        form.member("incomplete", &self.incomplete)
        form.member("held", &self.held)
        form.member("unknown", &self.unknown)
        form.member("unsound", &self.unsound)
        form.member("troubles", &self.troubles)
    }
}
