import StratusAdminModel
import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess
import StratusRuntime

/// `stratusctl assets verify --container`: the files of one container, read back on the node that is
/// asked.
struct AssetVerifyCommand: AdminConversation {
    let context: ControlContext

    init(_ context: ControlContext) { self.context = context }

    func run() async throws(AdminClient.Failure) -> ExitCode {
        var (last, failingCount, isWritten) = (nil as VerifyLine?, 0, true)
        try await self.client.lines("POST", self.place("/assets/verify")) { bytes in
            guard let line = try? VerifyLine(reading: bytes),
                let unread = try? UnreadDatabaseLine(reading: bytes)
            else { return true }
            var said = ""
            if line.isDone {
                last = line
                said = line.text
            } else if let reason = unread.failing {
                failingCount += 1
                let names = [unread.database, unread.owner].compactMap(\.self)
                said = "not read to its end: \(names.joined(separator: " ")): \(reason)\n"
            }
            isWritten = Terminal.write(
                self.isJSON
                    ? self.context.stamp(String(decoding: bytes, as: UTF8.self)) + "\n" : said)
            return isWritten
        }
        guard isWritten else { return .inputOutput }
        guard let last else {
            throw Failure(.inputOutput, "the answer was cut off: ask again")
        }
        let isSound = last.damaged == 0 && last.missing == 0
        return isSound && failingCount == 0 ? .success : .refused
    }
}
