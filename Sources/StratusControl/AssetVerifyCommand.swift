import StratusCommandLine
import StratusHTTP
import StratusProcess

/// `stratusctl assets verify --container`: the files of one container, read back on the node that is
/// asked.
struct AssetVerifyCommand {
    let invocation: Invocation
    let client: AdminClient
    let isJSON: Bool

    func run() async throws(AdminClient.Failure) -> ExitCode {
        let container = self.invocation.value("container")
        let path =
            "/v1/containers/" + PercentCoding.encode(container) + "/environments/"
            + self.invocation.value("environment") + "/assets/verify"
        var (last, failingCount, isWritten) = (nil as JSONValue?, 0, true)
        try await self.client.lines("POST", path) { line in
            guard let root = try? JSONDocument(parsing: line).root else { return true }
            var said = ""
            if root["done"]?.bool == true {
                last = root
                said = Self.text(root)
            } else if let reason = root["failing"]?.string {
                failingCount += 1
                let names = [root["database"]?.string, root["owner"]?.string].compactMap(\.self)
                said = "not read to its end: \(names.joined(separator: " ")): \(reason)\n"
            }
            isWritten = Terminal.write(
                self.isJSON ? String(decoding: line, as: UTF8.self) + "\n" : said)
            return isWritten
        }
        guard isWritten else { return .inputOutput }
        guard let last else {
            throw AdminClient.Failure(.inputOutput, "the answer was cut off: ask again")
        }
        let isSound = last["damaged"]?.int64 == 0 && last["missing"]?.int64 == 0
        return isSound && failingCount == 0 ? .success : .refused
    }

    private static func text(_ root: JSONValue) -> String {
        func number(_ key: String) -> Int64 { root[key]?.int64 ?? 0 }
        var text =
            "\(number("read")) copies read (\(number("bytes") >> 20) MiB), "
            + "\(number("damaged")) damaged, \(number("missing")) missing\n"
        if number("elsewhere") > 0 {
            text += "\(number("elsewhere")) databases have no replica on this node\n"
        }
        return text
    }
}
