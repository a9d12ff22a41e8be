import StratusModel

/// The files of records that a node keeps.
package struct AssetsAnswer: NamedMembers {
    package var packBytes: Int64?
    package var liveBytes: Int64?
    package var missing: Int64?
    package var unnamed: Int64?
    package var damaged: Int64?
    package var lost: Int64?
    package var repaired: Int64?
    package var removed: Int64?
    package var lackingPartitions: Int64?
    package var failingPartitions: Int64?
    package var readingBackPartitions: Int64?
    package var comparingPartitions: Int64?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("packBytes", &self.packBytes)
        form.member("liveBytes", &self.liveBytes)
        form.member("missing", &self.missing)
        form.member("unnamed", &self.unnamed)
        form.member("damaged", &self.damaged)
        form.member("lost", &self.lost)
        form.member("repaired", &self.repaired)
        form.member("removed", &self.removed)
        form.member("lackingPartitions", &self.lackingPartitions)
        form.member("failingPartitions", &self.failingPartitions)
        form.member("readingBackPartitions", &self.readingBackPartitions)
        form.member("comparingPartitions", &self.comparingPartitions)
    }

    package static var columns: [AnswerColumn<Self>] {
        func size(_ bytes: Int64?) -> String { bytes.map { "\($0 >> 20) MiB" } ?? "" }
        func count(_ count: Int64?) -> String { count.map { "\($0)" } ?? "" }
        return [
            .init("packs") { size($0.packBytes) }, .init("in use") { size($0.liveBytes) },
            .init("missing copies") { count($0.missing) },
            .init("partitions that lack copies for over a minute") { count($0.lackingPartitions) },
            .init("partitions that cannot be read or written") { count($0.failingPartitions) },
            .init("copies that no record holds yet or any more") { count($0.unnamed) },
            .init("files that no node has, found since the start") { count($0.lost) },
            .init("found damaged since the start") { count($0.damaged) },
            .init("brought from other nodes since the start") { count($0.repaired) },
            .init("let go since the start") { count($0.removed) },
            .init("partitions being read back") { count($0.readingBackPartitions) },
            .init("partitions being compared") { count($0.comparingPartitions) },
        ]
    }
}

/// How many partitions have begun.
package struct PartitionsAnswer: NamedMembers {
    package var partitions: Int64 = 0

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("partitions", &self.partitions)
    }
}

/// A copy that rows and index of a node do not agree on.
package struct CopyDifferenceRow: NamedMembers {
    package var partition: Int64 = 0
    package var body = ""
    package var chunk: Int64 = 0
    package var kind = ""

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("partition", &self.partition)
        form.member("body", &self.body)
        form.member("chunk", &self.chunk)
        form.member("kind", &self.kind)
    }

    package var text: String {
        "partition \(self.partition): chunk \(self.chunk) of body \(self.body) is "
            + (self.kind == "missing" ? "missing\n" : "left over\n")
    }
}

/// A page of differences.
package struct CopyDifferencesAnswer: NamedMembers {
    package var differences: [CopyDifferenceRow] = []
    /// What `after` must be for the next page.
    package var next: String?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("differences", &self.differences)
        form.member("next", &self.next)
    }
}
