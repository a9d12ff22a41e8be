import StratusModel

/// What one piece of a removal removed, and whether anything is left.
package struct RemovalAnswer: NamedMembers {
    package var isDone = false
    package var waitMilliseconds: Int64 = 0
    package var users: Int64 = 0
    package var zones: Int64 = 0
    package var records: Int64 = 0
    package var outstanding: [String]?
    /// The version of the schema that is in force after a reset.
    package var version: Int64?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("isDone", &self.isDone)
        form.member("waitMilliseconds", &self.waitMilliseconds)
        form.member("users", &self.users)
        form.member("zones", &self.zones)
        form.member("records", &self.records)
        form.member("outstanding", &self.outstanding)
        form.member("version", &self.version)
    }
}

/// `stratusctl container delete --json`: what all pieces removed.
package struct RemovalReceipt: NamedMembers {
    package var users: Int64 = 0
    package var zones: Int64 = 0
    package var records: Int64 = 0
    package var outstanding: [String] = []

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("users", &self.users)
        form.member("zones", &self.zones)
        form.member("records", &self.records)
        form.member("outstanding", &self.outstanding)
    }
}

/// `stratusctl schema reset --json`: what all pieces removed.
package struct ResetReceipt: NamedMembers {
    package var version: Int64 = 0
    package var zones: Int64 = 0
    package var records: Int64 = 0

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("version", &self.version)
        form.member("zones", &self.zones)
        form.member("records", &self.records)
    }
}
