import StratusModel

/// An API token, without its text.
package struct TokenRow: ListedRow, TabularRow {
    package static let list: StaticString = "tokens"

    package var id = ""
    package var name = ""
    package var created = ""
    package var callbackURL: String?
    package var origins: [String] = []
    package var receivesNames = false

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("id", &self.id)
        form.member("name", &self.name)
        form.member("created", &self.created)
        form.member("callbackURL", &self.callbackURL)
        form.member("origins", &self.origins)
        form.member("receivesNames", &self.receivesNames)
    }

    package static var columns: [AnswerColumn<Self>] {
        [
            .init("ID", \.id),
            .init("NAME", \.name),
            .init("CREATED", \.created),
            .init("ORIGINS", \.origins),
            .init("CALLBACK", \.callbackURL),
        ]
    }
}

/// An API token that is made.
package struct TokenBody: NamedMembers {
    package var name: String?
    package var callbackURL: String?
    package var origins: [String] = []
    package var anyOrigin = false
    package var receivesNames = false

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("name", &self.name)
        form.member("callbackURL", &self.callbackURL)
        form.member("origins", &self.origins)
        form.member("anyOrigin", &self.anyOrigin)
        form.member("receivesNames", &self.receivesNames)
    }
}

/// An API token, shown this once.
package struct TokenAnswer: NamedMembers {
    package var token = ""
    package var id = ""
    package var isCreated = false

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("token", &self.token)
        form.member("id", &self.id)
        form.member("created", &self.isCreated)
    }
}

/// A server-to-server key.
package struct ServerKeyRow: ListedRow, TabularRow {
    package static let list: StaticString = "keys"

    package var id = ""
    package var name = ""
    package var created = ""
    /// The user it acts as.
    package var userRecordName = ""

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("id", &self.id)
        form.member("name", &self.name)
        form.member("created", &self.created)
        form.member("userRecordName", &self.userRecordName)
    }

    package static var columns: [AnswerColumn<Self>] {
        [
            .init("ID", \.id),
            .init("NAME", \.name),
            .init("CREATED", \.created),
            .init("ACTS AS", \.userRecordName),
        ]
    }
}

/// A public key that is registered.
package struct ServerKeyBody: NamedMembers {
    package var name: String?
    /// PEM.
    package var publicKey: String?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("name", &self.name)
        form.member("publicKey", &self.publicKey)
    }
}

/// The identifier that requests of a key send.
package struct ServerKeyAnswer: NamedMembers {
    package var id = ""
    package var isCreated = false

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("id", &self.id)
        form.member("created", &self.isCreated)
    }
}

/// An app password, without its text.
package struct AppPasswordRow: ListedRow, TabularRow {
    package static let list: StaticString = "appPasswords"

    package var id = ""
    package var label = ""
    package var made = ""
    package var access = ""
    package var shows = ""

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("id", &self.id)
        form.member("label", &self.label)
        form.member("made", &self.made)
        form.member("access", &self.access)
        form.member("shows", &self.shows)
    }

    package static var columns: [AnswerColumn<Self>] {
        [
            .init("ID", \.id),
            .init("LABEL", \.label),
            .init("MADE", \.made),
            .init("ACCESS", \.access),
            .init("SHOWS", \.shows),
        ]
    }
}

/// An app password that is made.
package struct AppPasswordBody: NamedMembers {
    package var label: String?
    package var isReadOnly = false
    package var showsAll = false

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("label", &self.label)
        form.member("readOnly", &self.isReadOnly)
        form.member("everything", &self.showsAll)
    }
}

/// An app password, shown this once.
package struct AppPasswordAnswer: NamedMembers {
    package var id = ""
    package var password = ""

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("id", &self.id)
        form.member("password", &self.password)
    }
}
