import StratusModel

/// A master key, and how many containers' keys it wraps.
package struct MasterKey: NamedMembers {
    package var version: Int64 = 0
    package var state = ""
    package var containers: Int64 = 0
    /// A value that says which key it is, and nothing of the key.
    package var check: String?
    /// The check value that the cluster has noted.
    package var noted: String?
    package var differs: Bool?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("version", &self.version)
        form.member("state", &self.state)
        form.member("containers", &self.containers)
        form.member("check", &self.check)
        form.member("noted", &self.noted)
        form.member("differs", &self.differs)
    }
}

/// A container whose key cannot be opened.
package struct FailingKey: NamedMembers {
    package var container = ""
    package var environment = ""
    package var reason = ""

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("container", &self.container)
        form.member("environment", &self.environment)
        form.member("reason", &self.reason)
    }
}

/// The master keys, of one slice of the containers.
package struct MasterKeysAnswer: NamedMembers {
    package var masters: [MasterKey] = []
    package var withoutKey: Int64 = 0
    package var failing: [FailingKey] = []
    /// What `after` must be for the next slice.
    package var next: String?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("masters", &self.masters)
        form.member("withoutKey", &self.withoutKey)
        form.member("failing", &self.failing)
        form.member("next", &self.next)
    }
}

/// A master key, as `stratusctl encryption-key list` shows it.
package struct MasterRow: NamedMembers, TabularRow {
    package var version: Int64 = 0
    package var state = ""
    package var containers: Int64 = 0
    package var check = ""
    package var differs = false

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("version", &self.version)
        form.member("state", &self.state)
        form.member("containers", &self.containers)
        form.member("check", &self.check)
        form.member("differs", &self.differs)
    }

    package static var columns: [AnswerColumn<Self>] {
        [
            .init("MASTER", alignsRight: true, \.version),
            .init("STATE", \.state),
            .init("CONTAINERS", alignsRight: true, \.containers),
            .init("CHECK", \.check),
        ]
    }

    /// The check value that the cluster has noted.
    package var noted = ""

    package init(_ master: MasterKey) {
        self.version = master.version
        self.state = master.state
        self.containers = master.containers
        self.check = master.check ?? ""
        self.noted = master.noted ?? ""
        self.differs = master.differs ?? false
    }
}

/// `stratusctl encryption-key list --json`.
package struct MasterSummary: NamedMembers {
    package var masters: [MasterRow] = []
    package var withoutKey: Int64 = 0
    package var failing: [FailingKey] = []

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("masters", &self.masters)
        form.member("withoutKey", &self.withoutKey)
        form.member("failing", &self.failing)
    }
}

/// How many keys of containers were wrapped anew.
package struct MasterRotationAnswer: NamedMembers {
    package var version: Int64 = 0
    package var wrapped: Int64 = 0
    package var failing: [FailingKey] = []
    package var next: String?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("version", &self.version)
        form.member("wrapped", &self.wrapped)
        form.member("failing", &self.failing)
        form.member("next", &self.next)
    }
}

/// Behind which container a slice begins.
package struct SliceBody: NamedMembers {
    /// The master key that is forgotten.
    package var version: Int64?
    package var after: String?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("version", &self.version)
        form.member("after", &self.after)
    }
}

/// How far the forgetting of a master key is.
package struct ForgettingAnswer: NamedMembers {
    package var waitsMilliseconds: Int64?
    package var next: String?
    package var isForgotten: Bool?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("waitsMilliseconds", &self.waitsMilliseconds)
        form.member("next", &self.next)
        form.member("forgotten", &self.isForgotten)
    }
}

/// `stratusctl encryption-key forget --json`.
package struct ForgottenAnswer: NamedMembers {
    package var isForgotten = false

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("forgotten", &self.isForgotten)
    }
}
