package import StratusAdminModel
package import StratusModel
import StratusRuntime

extension StatusAnswer {
    package init(_ status: NodeStatus) {
        self.init()
        self.version = status.version
        self.libraries = status.libraries.map { library in
            Library {
                $0.name = library.name
                $0.version = library.version
            }
        }
        self.isReady = status.notReady.isEmpty
        self.notReady = status.notReady.map { ComponentReport($0.component, $0.text) }
        self.warnings = status.warnings.map { ComponentReport($0.component, $0.text) }
        self.freeBytes = status.disk.map { Int64(clamping: $0.free) }
        self.diskBytes = status.disk.map { Int64(clamping: $0.all) }
        self.reserveBytes = Int64(status.reserve.raw)
        self.startedAt = WallTime.text(status.startedAtMilliseconds)
        self.uptimeSeconds = Double(status.uptime.clampedNanoseconds / 1_000_000) / 1_000
        self.dataDirectory = status.dataDirectory
        self.isSealed = status.isSealed
        self.clientURLs = status.clientURLs
        self.adminURL = status.adminURL
        self.residentBytes = Int64(status.residentBytes)
        self.requestsInFlight = Int64(status.requestsInFlight)
        self.droppedLogLines = Int64(clamping: status.droppedLogLines)
        self.partitions = status.partitions.map { partition in
            Partition {
                $0.name = partition.name
                $0.applied = Int64(clamping: partition.applied)
                $0.durable = Int64(clamping: partition.durable)
                $0.problem = partition.problem
            }
        }
    }
}

extension NodeStatus {
    /// The answer to `GET /v1/status`.
    package func json() -> Bytes { StatusAnswer(self).json }
}
