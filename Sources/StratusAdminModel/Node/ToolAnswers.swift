import StratusModel

/// `stratusctl alive --json`.
package struct AliveAnswer: NamedMembers {
    package var isAlive = false

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("alive", &self.isAlive)
    }
}

/// `stratusctl ready --json`.
package struct ReadyAnswer: NamedMembers {
    package var isReady = false

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("ready", &self.isReady)
    }
}

/// `stratusctl support --json`: the file that was written.
package struct SupportSummary: NamedMembers {
    package var path = ""
    package var bytes: Int64 = 0
    package var files: Int64 = 0
    package var missing: [String] = []

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("path", &self.path)
        form.member("bytes", &self.bytes)
        form.member("files", &self.files)
        form.member("missing", &self.missing)
    }
}
