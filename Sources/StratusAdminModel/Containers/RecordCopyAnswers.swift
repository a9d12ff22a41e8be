/// Where records are to be copied, and where the next page begins.
package struct RecordCopyBody: NamedMembers {
    /// The other environment.
    package var to: String?
    /// What the last page's answer called `next`.
    package var after: String?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("to", &self.to)
        form.member("after", &self.after)
    }
}

/// What a page of a copy did.
package struct RecordCopyAnswer: NamedMembers {
    package var made: Int64 = 0
    /// Records whose names are taken.
    package var there: Int64 = 0
    package var fileBytes: Int64 = 0
    /// Records that refer to one that is not there yet.
    package var waiting: [RecordCopyRemark] = []
    package var refused: [RecordCopyRemark] = []
    /// Absent: it was the last page.
    package var next: String?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("made", &self.made)
        form.member("there", &self.there)
        form.member("fileBytes", &self.fileBytes)
        form.member("waiting", &self.waiting)
        form.member("refused", &self.refused)
        form.member("next", &self.next)
    }
}

/// Why a record was not copied.
package struct RecordCopyRemark: NamedMembers {
    package var record = ""
    package var reason = ""

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("record", &self.record)
        form.member("reason", &self.reason)
    }
}

/// What a whole copy did.
package struct RecordCopyReceipt: NamedMembers {
    package var made: Int64 = 0
    package var there: Int64 = 0
    package var fileBytes: Int64 = 0
    package var refused: [RecordCopyRemark] = []

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("made", &self.made)
        form.member("there", &self.there)
        form.member("fileBytes", &self.fileBytes)
        form.member("refused", &self.refused)
    }
}
