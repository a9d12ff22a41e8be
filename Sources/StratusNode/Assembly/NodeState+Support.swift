import StratusAdmin
import StratusCluster
import StratusHTTP
import StratusModel
import StratusProcess
import StratusRuntime

/// What a node says of itself to whoever looks into a problem: `stratusctl support` collects it.
///
/// Each part has a bound, and none holds a secret: the configuration names the files of keys and
/// tokens, a line of the log cannot be given a ``Secret``, and metrics have no text of clients.
extension NodeState {
    /// More of one part is cut, and its last line says so. Metrics and the partitions of a status
    /// reach it only beyond ten thousand partitions.
    private static let partSizeMax = 2 << 20

    func supportFiles() async -> [SupportFile] {
        let memory = self.log.memory
        return [
            Self.file("status.json", await self.status().json() + [0x0A]),
            Self.file("config.json", self.configurationJSON() + [0x0A]),
            Self.file("versions.txt", Bytes(NodeVersions.text.write(json: false).utf8)),
            Self.file("metrics.txt", self.metrics.exposition()),
            Self.file("log.txt", memory.newest),
            Self.file("log-warnings.txt", memory.newestGrave),
        ]
    }

    func remains() async -> NodeRemains { await self.cluster.replicas.nodeRemains() }

    private static func file(_ name: String, _ contents: Bytes) -> SupportFile {
        guard contents.count > Self.partSizeMax else {
            return SupportFile(name: name, contents: contents)
        }
        let note = "\n… cut here, of \(contents.count) bytes\n"
        return SupportFile(
            name: name, contents: contents.prefix(Self.partSizeMax) + Bytes(note.utf8))
    }

    private func configurationJSON() -> Bytes {
        var json = JSONWriter()
        json.object { json in
            for row in self.configuration() where row.origin != "default" {
                json.key(row.key)
                json.object {
                    $0.key("value")
                    if let value = row.value {
                        $0.write(raw: value.utf8)
                    } else {
                        $0.writeNull()
                    }
                    $0.member("origin", row.origin)
                }
            }
        }
        return json.finish()
    }
}
