import StratusHTTP
package import StratusModel
import StratusRuntime

extension NodeStatus {
    /// The answer to `GET /v1/status`.
    package func json() -> Bytes {
        var json = JSONWriter()
        json.beginObject()
        json.member("version", self.version)
        json.key("libraries")
        json.beginArray()
        for library in self.libraries {
            json.beginObject()
            json.member("name", library.name)
            json.member("version", library.version)
            json.endObject()
        }
        json.endArray()
        json.member("ready", self.notReady.isEmpty)
        json.key("notReady")
        json.beginArray()
        for reason in self.notReady {
            json.beginObject()
            json.member("component", reason.component)
            json.member("reason", reason.text)
            json.endObject()
        }
        json.endArray()
        json.key("warnings")
        json.beginArray()
        for warning in self.warnings {
            json.beginObject()
            json.member("component", warning.component)
            json.member("reason", warning.text)
            json.endObject()
        }
        json.endArray()
        if let disk {
            json.member("freeBytes", Int64(clamping: disk.free))
            json.member("diskBytes", Int64(clamping: disk.all))
        }
        json.member("reserveBytes", Int64(self.reserve.raw))
        json.member("startedAt", WallTime.text(self.startedAtMilliseconds))
        json.member("uptimeSeconds", Double(self.uptime.clampedNanoseconds / 1_000_000) / 1_000)
        json.member("dataDirectory", self.dataDirectory)
        json.key("clientURLs")
        json.beginArray()
        for url in self.clientURLs { json.write(url) }
        json.endArray()
        json.member("adminURL", self.adminURL)
        json.member("residentBytes", self.residentBytes)
        json.member("requestsInFlight", self.requestsInFlight)
        json.member("droppedLogLines", Int64(clamping: self.droppedLogLines))
        json.key("partitions")
        json.beginArray()
        for partition in self.partitions {
            json.beginObject()
            json.member("name", partition.name)
            json.member("applied", Int64(clamping: partition.applied))
            json.member("durable", Int64(clamping: partition.durable))
            if let problem = partition.problem { json.member("problem", problem) }
            json.endObject()
        }
        json.endArray()
        json.endObject()
        return json.finish()
    }
}
