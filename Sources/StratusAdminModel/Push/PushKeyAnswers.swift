import StratusModel

/// A key for Apple's push service, without its secret.
package struct APNsKeyRow: NamedMembers, TabularRow {
    package var team = ""
    package var key = ""
    package var topics: [String] = []
    package var created = ""

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("team", &self.team)
        form.member("key", &self.key)
        form.member("topics", &self.topics)
        form.member("created", &self.created)
    }

    package static var columns: [AnswerColumn<Self>] {
        [
            .init("TEAM", \.team),
            .init("KEY", \.key),
            .init("CREATED", \.created),
            .init("TOPICS", \.topics, separator: " "),
        ]
    }
}

/// A key for Web Push, without its secret.
package struct VAPIDKeyRow: NamedMembers, TabularRow {
    package var number: Int64 = 0
    package var publicKey = ""
    package var contact = ""
    package var created = ""

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("number", &self.number)
        form.member("publicKey", &self.publicKey)
        form.member("contact", &self.contact)
        form.member("created", &self.created)
    }

    package static var columns: [AnswerColumn<Self>] {
        [
            .init("NUMBER", alignsRight: true, \.number),
            .init("CREATED", \.created),
            .init("CONTACT", \.contact),
            .init("PUBLIC KEY", \.publicKey),
        ]
    }
}

/// The keys by which a container sends pushes.
package struct PushKeysAnswer: NamedMembers {
    package var isPaused = false
    package var apns: [APNsKeyRow] = []
    package var vapid: [VAPIDKeyRow] = []

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("paused", &self.isPaused)
        form.member("apns", &self.apns)
        form.member("vapid", &self.vapid)
    }
}

/// A key that a container gets.
package struct APNsKeyBody: NamedMembers {
    package var team: String?
    package var key: String?
    package var topics: [String] = []
    /// PEM.
    package var privateKey: String?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("team", &self.team)
        form.member("key", &self.key)
        form.member("topics", &self.topics)
        form.member("privateKey", &self.privateKey)
    }
}

/// Which keys are checked, and where.
package struct APNsCheckBody: NamedMembers {
    package var topic: String?
    package var apnsEnvironment: String?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("topic", &self.topic)
        form.member("apnsEnvironment", &self.apnsEnvironment)
    }
}

/// What Apple's service says to a key.
package struct APNsCheckRow: ListedRow, TabularRow {
    package static let list: StaticString = "checks"

    package var team = ""
    package var key = ""
    package var isGood = false
    package var answer = ""

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("team", &self.team)
        form.member("key", &self.key)
        form.member("good", &self.isGood)
        form.member("answer", &self.answer)
    }

    package static var columns: [AnswerColumn<Self>] {
        [
            .init("TEAM", \.team),
            .init("KEY", \.key),
            .init("GOOD", \.isGood),
            .init("ANSWER", \.answer),
        ]
    }
}

/// Whom a push service may write to.
package struct VAPIDBody: NamedMembers {
    package var contact: String?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("contact", &self.contact)
    }
}

/// Whether a container's pushes wait.
package struct PauseBody: NamedMembers {
    package var isPaused: Bool?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("paused", &self.isPaused)
    }
}
