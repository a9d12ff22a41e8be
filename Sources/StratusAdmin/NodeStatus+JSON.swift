import StratusHTTP
package import StratusModel
import StratusRuntime

extension NodeStatus {
    /// The answer to `GET /v1/status`.
    package func json() -> Bytes {
        var json = JSONWriter()
        json.beginObject()
        json.member("version", self.version)
        json.member("libraries", objects: self.libraries) { json, library in
            json.member("name", library.name)
            json.member("version", library.version)
        }
        json.member("ready", self.notReady.isEmpty)
        json.member("notReady", objects: self.notReady) { json, reason in
            json.member("component", reason.component)
            json.member("reason", reason.text)
        }
        json.member("warnings", objects: self.warnings) { json, warning in
            json.member("component", warning.component)
            json.member("reason", warning.text)
        }
        if let disk {
            json.member("freeBytes", Int64(clamping: disk.free))
            json.member("diskBytes", Int64(clamping: disk.all))
        }
        json.member("reserveBytes", Int64(self.reserve.raw))
        json.member("startedAt", WallTime.text(self.startedAtMilliseconds))
        json.member("uptimeSeconds", Double(self.uptime.clampedNanoseconds / 1_000_000) / 1_000)
        json.member("dataDirectory", self.dataDirectory)
        if self.isSealed { json.member("sealed", true) }
        json.key("clientURLs")
        json.beginArray()
        for url in self.clientURLs { json.write(url) }
        json.endArray()
        json.member("adminURL", self.adminURL)
        json.member("residentBytes", self.residentBytes)
        json.member("requestsInFlight", self.requestsInFlight)
        json.member("droppedLogLines", Int64(clamping: self.droppedLogLines))
        json.member("partitions", objects: self.partitions) { json, partition in
            json.member("name", partition.name)
            json.member("applied", Int64(clamping: partition.applied))
            json.member("durable", Int64(clamping: partition.durable))
            if let problem = partition.problem { json.member("problem", problem) }
        }
        json.endObject()
        return json.finish()
    }
}
