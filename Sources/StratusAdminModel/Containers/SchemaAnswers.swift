import StratusModel

/// What a change of a schema does, or would do.
package struct SchemaAnswer: NamedMembers {
    package var version: Int64 = 0
    package var changes: [String] = []
    /// Whether this made the container.
    package var isCreated: Bool?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("version", &self.version)
        form.member("changes", &self.changes)
        form.member("created", &self.isCreated)
    }
}

/// What a reset takes from a schema.
package struct ResetAnswer: NamedMembers {
    package var state = ""
    package var changes: [String] = []

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("state", &self.state)
        form.member("changes", &self.changes)
    }
}
