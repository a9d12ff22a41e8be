import StratusModel

/// How far the rotation of the keys of a container's databases is.
package struct DatabaseRotationCounts: NamedMembers {
    package var databases: Int64 = 0
    package var records: Int64 = 0
    package var files: Int64 = 0
    package var fileBytes: Int64 = 0
    package var keptFiles: Int64 = 0
    package var olderKeys: Int64 = 0
    package var failures: Int64 = 0
    /// When the rotation began that this one goes on with.
    package var resumed: String?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("databases", &self.databases)
        form.member("records", &self.records)
        form.member("files", &self.files)
        form.member("fileBytes", &self.fileBytes)
        form.member("keptFiles", &self.keptFiles)
        form.member("olderKeys", &self.olderKeys)
        form.member("failures", &self.failures)
        form.member("resumed", &self.resumed)
    }
}

/// How far the rotation of a container's key is.
package struct ContainerRotationCounts: NamedMembers {
    package var version: Int64?
    package var keys: Int64 = 0
    package var pushKeys: Int64 = 0
    package var partitions: Int64 = 0
    package var failures: Int64 = 0
    package var waitsMilliseconds: Int64 = 0
    package var isRetired = false
    package var resumed: String?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("version", &self.version)
        form.member("keys", &self.keys)
        form.member("pushKeys", &self.pushKeys)
        form.member("partitions", &self.partitions)
        form.member("failures", &self.failures)
        form.member("waitsMilliseconds", &self.waitsMilliseconds)
        form.member("retired", &self.isRetired)
        form.member("resumed", &self.resumed)
    }
}

/// A line of a rotation: the counts so far, and at the end why nothing follows.
package struct RotationLine<Counts: NamedMembers>: NamedMembers {
    package var counts = Counts()
    /// Why nothing goes on now.
    package var stopped: String?
    package var isDone = false

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        self.counts.lay(in: &form)
        form.member("stopped", &self.stopped)
        form.member("done", ifSet: &self.isDone)
    }
}

/// A line of a rotation about a database that is not rotated to the end.
package struct FailingDatabaseLine: NamedMembers {
    /// Empty: the public database.
    package var owner: String?
    package var failing: String?

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("owner", &self.owner)
        form.member("failing", &self.failing)
    }
}
