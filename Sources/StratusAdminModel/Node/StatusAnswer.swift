import StratusModel

/// A part of a node, and what it reports.
package struct ComponentReport: NamedMembers {
    package var component = ""
    package var reason = ""

    package init() {}
    package init(_ component: String, _ reason: String) {
        self.component = component
        self.reason = reason
    }

    package mutating func lay(in form: inout NamedForm) {
        form.member("component", &self.component)
        form.member("reason", &self.reason)
    }

    package var text: String { "\(self.component): \(self.reason)" }
}

/// `GET /v1/status`: a node at one moment.
package struct StatusAnswer: NamedMembers {
    package struct Library: NamedMembers {
        package var name = ""
        package var version = ""

        package init() {}
        package mutating func lay(in form: inout NamedForm) {
            form.member("name", &self.name)
            form.member("version", &self.version)
        }
    }

    package struct Partition: NamedMembers, TabularRow {
        package var name = ""
        package var applied: Int64 = 0
        package var durable: Int64 = 0
        /// Nil when it serves; otherwise why not.
        package var problem: String?

        package init() {}
        package mutating func lay(in form: inout NamedForm) {
            form.member("name", &self.name)
            form.member("applied", &self.applied)
            form.member("durable", &self.durable)
            form.member("problem", &self.problem)
        }

        package static var columns: [AnswerColumn<Self>] {
            [
                .init("PARTITION", \.name), .init("APPLIED", alignsRight: true, \.applied),
                .init("DURABLE", alignsRight: true, \.durable), .init("PROBLEM", \.problem),
            ]
        }
    }

    package var version = ""
    package var libraries: [Library] = []
    package var isReady = false
    package var notReady: [ComponentReport] = []
    package var warnings: [ComponentReport] = []
    package var freeBytes: Int64?
    package var diskBytes: Int64?
    package var reserveBytes: Int64 = 0
    package var startedAt = ""
    package var uptimeSeconds = 0.0
    package var dataDirectory = ""
    package var isSealed = false
    package var clientURLs: [String] = []
    package var adminURL = ""
    package var residentBytes: Int64 = 0
    package var requestsInFlight: Int64 = 0
    package var droppedLogLines: Int64 = 0
    package var partitions: [Partition] = []

    package init() {}
    package mutating func lay(in form: inout NamedForm) {
        form.member("version", &self.version)
        form.member("libraries", &self.libraries)
        form.member("ready", &self.isReady)
        form.member("notReady", &self.notReady)
        form.member("warnings", &self.warnings)
        form.member("freeBytes", &self.freeBytes)
        form.member("diskBytes", &self.diskBytes)
        form.member("reserveBytes", &self.reserveBytes)
        form.member("startedAt", &self.startedAt)
        form.member("uptimeSeconds", &self.uptimeSeconds)
        form.member("dataDirectory", &self.dataDirectory)
        form.member("sealed", ifSet: &self.isSealed)
        form.member("clientURLs", &self.clientURLs)
        form.member("adminURL", &self.adminURL)
        form.member("residentBytes", &self.residentBytes)
        form.member("requestsInFlight", &self.requestsInFlight)
        form.member("droppedLogLines", &self.droppedLogLines)
        form.member("partitions", &self.partitions)
    }
}
