package import StratusModel

/// The line of an export that names a file, and what it is fetched by.
package struct FetchLine: NamedMembers {
    package struct File: NamedMembers {
        package var file = ""
        package var fileChecksum = ""
        package var size: Int64 = 0
        package var ticket = ""

        package init() {}
        package mutating func lay(in form: inout NamedForm) {
            form.member("file", &self.file)
            form.member("fileChecksum", &self.fileChecksum)
            form.member("size", &self.size)
            form.member("ticket", &self.ticket)
        }
    }

    package var fetch = File()

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("fetch", &self.fetch)
    }

    /// How such a line begins.
    package static let mark = Bytes("{\"fetch\":".utf8)
}

/// The first line of an export, as far as `stratusctl` asks for it.
package struct ExportHead: NamedMembers {
    package var format: String?
    /// Whether lines name files.
    package var files: Bool?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("format", &self.format)
        form.member("files", &self.files)
    }
}

/// `stratusctl user export --json`: a file that cannot be had.
package struct ExportTrouble: NamedMembers {
    package var file = ""
    package var reason = ""

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("file", &self.file)
        form.member("reason", &self.reason)
    }
}

/// `stratusctl user export --json`: what became of the files.
package struct ExportCounts: NamedMembers {
    package var written: Int64 = 0
    package var present: Int64 = 0
    package var failed: Int64 = 0

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("written", &self.written)
        form.member("present", &self.present)
        form.member("failed", &self.failed)
    }
}
