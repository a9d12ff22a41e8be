import StratusModel

/// One environment of a container.
package struct ContainerAnswer: ListedRow, TabularRow {
    package static let list: StaticString = "containers"

    package var container = ""
    package var environment = ""
    package var state = ""
    package var created = ""
    package var deleted: String?
    package var generation: Int64 = 0
    package var buckets: Int64 = 0
    package var placement = ""
    package var zoneBuckets: Int64?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("container", &self.container)
        form.member("environment", &self.environment)
        form.member("state", &self.state)
        form.member("created", &self.created)
        form.member("deleted", &self.deleted)
        form.member("generation", &self.generation)
        form.member("buckets", &self.buckets)
        form.member("placement", &self.placement)
        form.member("zoneBuckets", &self.zoneBuckets)
    }

    package static var columns: [AnswerColumn<Self>] {
        [
            .init("CONTAINER", \.container),
            .init("ENVIRONMENT", \.environment),
            .init("STATE", \.state),
            .init("BUCKETS", alignsRight: true, \.buckets),
            .init("CREATED", \.created),
        ]
    }
}

/// One environment of a container, with counts of what it holds.
package struct ContainerDetails: NamedMembers {
    package var container = ContainerAnswer()
    package var schemaVersion: Int64 = 0
    package var recordTypes: Int64 = 0
    package var tokens: Int64 = 0
    package var keys: Int64 = 0
    package var users: Int64 = 0

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        self.container.lay(in: &form)
        form.member("schemaVersion", &self.schemaVersion)
        form.member("recordTypes", &self.recordTypes)
        form.member("tokens", &self.tokens)
        form.member("keys", &self.keys)
        form.member("users", &self.users)
    }

    package static var columns: [AnswerColumn<Self>] {
        [
            .init("container") { $0.container.container },
            .init("environment") { $0.container.environment },
            .init("state") { $0.container.state }, .init("created") { $0.container.created },
            .init("deleted") { $0.container.deleted ?? "" },
            .init("buckets") { "\($0.container.buckets)" },
            .init("placement") { $0.container.placement },
            .init("zone buckets") { $0.container.zoneBuckets.map { "\($0)" } ?? "" },
            .init("schema version", \.schemaVersion), .init("record types", \.recordTypes),
            .init("tokens", \.tokens), .init("keys", \.keys), .init("users", \.users),
        ]
    }
}

/// How a container is made.
package struct ContainerBody: NamedMembers {
    package var buckets: Int64?
    package var placement: String?
    package var zoneBuckets: Int64?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("buckets", &self.buckets)
        form.member("placement", &self.placement)
        form.member("zoneBuckets", &self.zoneBuckets)
    }
}

/// How many buckets have begun to compare their references.
package struct BucketsAnswer: NamedMembers {
    package var buckets: Int64 = 0

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("buckets", &self.buckets)
    }
}

/// A partition that a private database, or one of its zones, lies in.
package struct PlaceAnswer: ListedRow, TabularRow {
    package static let list: StaticString = "places"

    package var part = ""
    package var partition: String?
    package var isInUse = false

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("part", &self.part)
        form.member("partition", &self.partition)
        form.member("inUse", &self.isInUse)
    }

    package static var columns: [AnswerColumn<Self>] {
        [
            .init("PART", \.part),
            .init("PARTITION", alignsRight: true) { $0.partition ?? "0" },
            .init("IN USE", \.isInUse),
        ]
    }
}
