import StratusModel

/// What one database holds.
package struct DatabaseUsage: NamedMembers {
    package var database = ""
    package var userRecordName: String?
    /// Of the user's account, if there is one.
    package var email: String?
    package var zones: Int64 = 0
    package var records: Int64 = 0
    package var bytes: Int64 = 0

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("database", &self.database)
        form.member("userRecordName", &self.userRecordName)
        form.member("email", &self.email)
        form.member("zones", &self.zones)
        form.member("records", &self.records)
        form.member("bytes", &self.bytes)
    }
}

/// What the databases of a container hold: one page.
package struct UsageAnswer: NamedMembers {
    package var databases: [DatabaseUsage] = []
    /// What `after` must be for the next page.
    package var next: String?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("databases", &self.databases)
        form.member("next", &self.next)
    }
}

/// One database, or all together, as `stratusctl container usage` shows it.
package struct UsageRow: NamedMembers, TabularRow {
    package var name = ""
    package var email: String?
    package var zones: Int64 = 0
    package var records: Int64 = 0
    package var bytes: Int64 = 0

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("database", &self.name)
        form.member("email", &self.email)
        form.member("zones", &self.zones)
        form.member("records", &self.records)
        form.member("bytes", &self.bytes)
    }

    package static var columns: [AnswerColumn<Self>] {
        [
            .init("DATABASE", \.name), .init("E-MAIL") { $0.email ?? "" },
            .init("ZONES", alignsRight: true, \.zones),
            .init("RECORDS", alignsRight: true, \.records),
            .init("BYTES", alignsRight: true, \.bytes),
        ]
    }

    package init(named name: String) { self.name = name }

    package init(_ usage: DatabaseUsage) {
        self.name = usage.userRecordName ?? "(public)"
        self.email = usage.email
        self.zones = usage.zones
        self.records = usage.records
        self.bytes = usage.bytes
    }
}

/// `stratusctl container usage --json`.
package struct UsageSummary: NamedMembers {
    package var databases: [UsageRow] = []
    package var users: Int64 = 0
    package var total = UsageRow()

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("databases", &self.databases)
        form.member("users", &self.users)
        form.member("total", &self.total)
    }
}
