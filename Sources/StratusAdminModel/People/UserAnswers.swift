import StratusModel

/// A person with an account.
package struct UserRow: ListedRow, TabularRow {
    package static let list: StaticString = "users"

    package var email = ""
    package var id = ""
    package var isDisabled = false
    /// Who has vouched for the address: nobody, administrator or proof.
    package var verified = ""
    package var created = ""
    package var lastSignIn: String?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("email", &self.email)
        form.member("id", &self.id)
        form.member("isDisabled", &self.isDisabled)
        form.member("verified", &self.verified)
        form.member("created", &self.created)
        form.member("lastSignIn", &self.lastSignIn)
    }

    package static var columns: [AnswerColumn<Self>] {
        [
            .init("E-MAIL", \.email),
            .init("STATE") { $0.isDisabled ? "disabled" : "active" },
            .init("VERIFIED BY", \.verified),
            .init("CREATED") { String($0.created.prefix(10)) },
            .init("LAST SIGN-IN") { $0.lastSignIn.map { String($0.prefix(10)) } ?? "never" },
        ]
    }
}

/// A page of the people with accounts.
package struct UsersAnswer: NamedMembers {
    package var users: [UserRow] = []
    /// Where the next page begins; nil: this was the last one.
    package var next: String?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("users", &self.users)
        form.member("next", &self.next)
    }
}

/// What is changed of a person.
package struct UserChangeBody: NamedMembers {
    package var email: String?
    package var givenName: String?
    package var familyName: String?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("email", &self.email)
        form.member("givenName", &self.givenName)
        form.member("familyName", &self.familyName)
    }
}

/// Whether an administrator vouches for a person's address.
package struct VerificationBody: NamedMembers {
    package var isVerified: Bool?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("verified", &self.isVerified)
    }
}

/// One person: names, containers and sessions.
package struct UserAnswer: NamedMembers {
    package struct Container: NamedMembers, TabularRow {
        package var container = ""
        package var environment = ""
        package var userRecordName = ""

        package init() {}
        package mutating func lay(in form: inout NamedForm) {
            form.member("container", &self.container)
            form.member("environment", &self.environment)
            form.member("userRecordName", &self.userRecordName)
        }

        package static var columns: [AnswerColumn<Self>] {
            [
                .init("CONTAINER", \.container),
                .init("ENVIRONMENT", \.environment),
                .init("RECORD NAME", \.userRecordName),
            ]
        }
    }

    package struct Session: NamedMembers, TabularRow {
        package var id = ""
        package var container = ""
        package var environment = ""
        package var opened = ""
        package var isOpen = false
        package var agent = ""

        package init() {}
        package mutating func lay(in form: inout NamedForm) {
            form.member("id", &self.id)
            form.member("container", &self.container)
            form.member("environment", &self.environment)
            form.member("opened", &self.opened)
            form.member("isOpen", &self.isOpen)
            form.member("agent", &self.agent)
        }

        package static var columns: [AnswerColumn<Self>] {
            [
                .init("SESSION", \.id), .init("IN", \.container),
                .init("ENVIRONMENT", \.environment),
                .init("OPENED", \.opened),
                .init("BROWSER", \.agent),
            ]
        }
    }

    package var id = ""
    package var email = ""
    package var givenName = ""
    package var familyName = ""
    package var isDisabled = false
    package var isDiscoverable = false
    package var hasPassword = false
    package var verified = ""
    package var created = ""
    package var lastSignIn: String?
    package var containers: [Container] = []
    package var sessions: [Session] = []

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("id", &self.id)
        form.member("email", &self.email)
        form.member("givenName", &self.givenName)
        form.member("familyName", &self.familyName)
        form.member("isDisabled", &self.isDisabled)
        form.member("isDiscoverable", &self.isDiscoverable)
        form.member("hasPassword", &self.hasPassword)
        form.member("verified", &self.verified)
        form.member("created", &self.created)
        form.member("lastSignIn", &self.lastSignIn)
        form.member("containers", &self.containers)
        form.member("sessions", &self.sessions)
    }

    package static var columns: [AnswerColumn<Self>] {
        [
            .init("e-mail", \.email),
            .init("name") {
                [$0.givenName, $0.familyName].filter { !$0.isEmpty }.joined(separator: " ")
            },
            .init("address verified by", \.verified),
            .init("id", \.id), .init("created", \.created),
            .init("last sign-in") { $0.lastSignIn ?? "never" },
            .init("state") { $0.isDisabled ? "disabled" : "active" },
            .init("password") { $0.hasPassword ? "set" : "none yet" },
            .init("may be found", \.isDiscoverable),
        ]
    }
}

/// A person who gets an account.
package struct UserBody: NamedMembers {
    package var email: String?
    package var password: String?
    package var givenName: String?
    package var familyName: String?
    package var isDiscoverable = false
    /// Whether the administrator does not vouch for the address.
    package var isUnverified = false

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("unverified", ifSet: &self.isUnverified)
        form.member("email", &self.email)
        form.member("password", &self.password)
        form.member("givenName", &self.givenName)
        form.member("familyName", &self.familyName)
        form.member("isDiscoverable", &self.isDiscoverable)
    }
}

/// The identifier of what was made.
package struct IDAnswer: NamedMembers {
    package var id = ""

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("id", &self.id)
    }
}

/// The path of a page that works once.
package struct PathAnswer: NamedMembers {
    package var path = ""
    /// With the address of the pages before it, where the configuration names it.
    package var url: String?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("path", &self.path)
        form.member("url", &self.url)
    }
}

/// A container, and what is wanted of it.
package struct PlaceBody: NamedMembers {
    package var container: String?
    package var environment: String?
    /// Whether a session is valid for two weeks without use.
    package var stays: Bool?
    /// Whether an export names files.
    package var files = false

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("container", &self.container)
        form.member("environment", &self.environment)
        form.member("stays", &self.stays)
        form.member("files", ifSet: &self.files)
    }
}

/// A web-auth token of a new session.
package struct SignInAnswer: NamedMembers {
    package var webAuthToken = ""

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("webAuthToken", &self.webAuthToken)
    }
}

/// What was erased of a person, and what is left.
package struct ErasureAnswer: NamedMembers {
    package var id = ""
    package var erased = ""
    package var containers: Int64 = 0
    package var zones: Int64 = 0
    package var records: Int64 = 0
    package var leaving: String?
    package var outstanding: [String] = []

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("id", &self.id)
        form.member("erased", &self.erased)
        form.member("containers", &self.containers)
        form.member("zones", &self.zones)
        form.member("records", &self.records)
        form.member("leaving", &self.leaving)
        form.member("outstanding", &self.outstanding)
    }

    /// - Parameter hasLeft: what leaves the disks after a while has left all of them.
    package func text(hasLeft: Bool = false) -> String {
        var text = "erased: \(self.records) records and \(self.zones) zones "
        text += "in \(self.containers) containers\n"
        if !hasLeft, let leaving {
            text += "leaves the nodes' disks by itself:\n  \(leaving)\n"
        }
        text += "not removed by this:\n"
        for line in self.outstanding { text += "  \(line)\n" }
        return text
    }
}
