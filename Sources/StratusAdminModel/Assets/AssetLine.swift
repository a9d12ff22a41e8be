import StratusModel

/// A line about a lost file, or about rows that contradict each other, or about a partition that
/// does not answer; or the last line.
package struct AssetLine: NamedMembers {
    package var container: String?
    package var environment: String?
    package var database: String?
    package var owner: String?
    package var size: Int64?
    package var fileChecksum: String?
    package var asset: String?
    package var fault: String?
    package var zone: String?
    package var recordName: String?
    /// Why a partition could not be looked at.
    package var failing: String?
    package var isDone = false

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("container", &self.container)
        form.member("environment", &self.environment)
        form.member("database", &self.database)
        form.member("owner", &self.owner)
        form.member("size", &self.size)
        form.member("fileChecksum", &self.fileChecksum)
        form.member("asset", &self.asset)
        form.member("fault", &self.fault)
        form.member("zone", &self.zone)
        form.member("recordName", &self.recordName)
        form.member("failing", &self.failing)
        form.member("done", ifSet: &self.isDone)
    }

    package var record: String {
        [self.zone ?? "", self.recordName ?? ""].filter { !$0.isEmpty }.joined(separator: "/")
    }

    /// The database, with a colon; empty where none is named.
    package var place: String {
        guard let container, !container.isEmpty else { return "" }
        let database = [self.database ?? "", self.owner ?? ""].filter { !$0.isEmpty }
        return "\(container) (\(self.environment ?? "")), \(database.joined(separator: " ")): "
    }
}

/// A line of the reading back of a container's files: the counts so far.
package struct VerifyLine: NamedMembers {
    package var read: Int64 = 0
    package var bytes: Int64 = 0
    package var damaged: Int64 = 0
    package var missing: Int64 = 0
    package var elsewhere: Int64 = 0
    package var isDone = false

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("read", &self.read)
        form.member("bytes", &self.bytes)
        form.member("damaged", &self.damaged)
        form.member("missing", &self.missing)
        form.member("elsewhere", &self.elsewhere)
        form.member("done", ifSet: &self.isDone)
    }

    package var text: String {
        var text =
            "\(self.read) copies read (\(self.bytes >> 20) MiB), \(self.damaged) damaged, "
            + "\(self.missing) missing\n"
        if self.elsewhere > 0 {
            text += "\(self.elsewhere) databases have no replica on this node\n"
        }
        return text
    }
}

/// A line about a database that is not read to its end.
package struct UnreadDatabaseLine: NamedMembers {
    package var database: String?
    package var owner: String?
    package var failing: String?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("database", &self.database)
        form.member("owner", &self.owner)
        form.member("failing", &self.failing)
    }
}
