import StratusModel

/// A key that seals tokens: its number and its state, never the key.
package struct SealingKeyRow: ListedRow, TabularRow {
    package static let list: StaticString = "keys"

    package var number: Int64 = 0
    package var state = ""
    /// Nil: it is as old as the secret.
    package var made: String?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("number", &self.number)
        form.member("state", &self.state)
        form.member("made", &self.made)
    }

    package static var columns: [AnswerColumn<Self>] {
        [
            .init("NUMBER", \.number),
            .init("STATE", \.state),
            .init("MADE", \.made),
        ]
    }
}

/// The number of the key that seals, and how many others were revoked.
package struct SealingKeyAnswer: NamedMembers {
    package var number: Int64 = 0
    package var revoked: Int64 = 0

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("number", &self.number)
        form.member("revoked", &self.revoked)
    }
}

/// Which keys are revoked: those before a number, or all.
package struct SealingKeyBody: NamedMembers {
    package var all = false
    package var before: Int64?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("all", ifSet: &self.all)
        form.member("before", &self.before)
    }
}
