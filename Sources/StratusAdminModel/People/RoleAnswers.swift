import StratusModel

/// A user of a container, with roles.
package struct MemberRow: ListedRow, TabularRow {
    package static let list: StaticString = "members"

    package var userRecordName = ""
    package var roles: [String] = []
    package var isRestricted = false
    package var firstSeen = ""

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("userRecordName", &self.userRecordName)
        form.member("roles", &self.roles)
        form.member("isRestricted", &self.isRestricted)
        form.member("firstSeen", &self.firstSeen)
    }

    package static var columns: [AnswerColumn<Self>] {
        [
            .init("USER", \.userRecordName),
            .init("ROLES", \.roles),
            .init("FIRST SEEN", \.firstSeen),
        ]
    }
}

/// A role that a user gets or loses.
package struct MemberBody: NamedMembers {
    package var user: String?
    package var role: String?
    package var isMember: Bool?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("user", &self.user)
        form.member("role", &self.role)
        form.member("member", &self.isMember)
    }
}

/// Whose access to which records is explained.
package struct AccessBody: NamedMembers {
    package var recordType: String?
    package var user: String?
    package var creator: String?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("recordType", &self.recordType)
        form.member("user", &self.user)
        form.member("creator", &self.creator)
    }
}

/// Every grant of a record type, and whether it counts for a user.
package struct AccessAnswer: NamedMembers {
    package struct Permission: NamedMembers {
        package var isAllowed = false
        package var grantedTo: [String] = []

        package init() {}
        package mutating func lay(in form: inout NamedForm) {
            form.member("allowed", &self.isAllowed)
            form.member("grantedTo", &self.grantedTo)
        }
    }

    package var recordType = ""
    package var isInSchema = false
    package var userRecordName: String?
    package var roles: [String] = []
    package var read = Permission()
    package var create = Permission()
    package var write = Permission()

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("recordType", &self.recordType)
        form.member("isInSchema", &self.isInSchema)
        form.member("userRecordName", &self.userRecordName)
        form.member("roles", &self.roles)
        form.member("read", &self.read)
        form.member("create", &self.create)
        form.member("write", &self.write)
    }

    package var text: String {
        var text = "roles: \(self.roles.joined(separator: ", "))\n"
        if !self.isInSchema { text += "the schema has no such type: the default grants apply\n" }
        for (name, one) in [("read", self.read), ("create", self.create), ("write", self.write)] {
            let granted = one.grantedTo.joined(separator: ", ")
            text +=
                name + ": " + (one.isAllowed ? "yes" : "no")
                + ", granted to \(granted.isEmpty ? "nobody" : granted)\n"
        }
        return text
    }
}

/// A change that an administrator made.
package struct AuditRow: ListedRow, TabularRow {
    package static let list: StaticString = "entries"

    package var number: Int64 = 0
    package var at = ""
    package var actor = ""
    package var action = ""
    package var subject = ""

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("number", &self.number)
        form.member("at", &self.at)
        form.member("actor", &self.actor)
        form.member("action", &self.action)
        form.member("subject", &self.subject)
    }

    package static var columns: [AnswerColumn<Self>] {
        [
            .init("#", \.number),
            .init("AT", \.at),
            .init("WHO", \.actor),
            .init("DID", \.action),
            .init("TO", \.subject),
        ]
    }
}

/// Whether the audit trail is whole.
package struct AuditCheck: NamedMembers {
    package var entries: Int64 = 0
    package var isWhole = false
    package var brokenAt: Int64?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("entries", &self.entries)
        form.member("whole", &self.isWhole)
        form.member("brokenAt", &self.brokenAt)
    }
}
