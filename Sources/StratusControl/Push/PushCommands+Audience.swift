import StratusAdminModel
import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess
import StratusRuntime

/// `stratusctl push devices`, `send` and `explain`: one user's devices.
extension PushCommands {
    func devices() async throws(AdminClient.Failure) -> ExitCode {
        try await self.table(
            of: PushDeviceRow.self, try self.push("/devices?" + self.terms(["user"])))
    }

    private func terms(_ names: [String]) -> String {
        names.compactMap { name in
            self.invocation[name].map { "\(name)=\(PercentCoding.encode($0))" }
        }.joined(separator: "&")
    }

    func send() async throws(AdminClient.Failure) -> ExitCode {
        let answer = try await self.ask(
            "POST", try self.push("/send"),
            PushSendBody {
                $0.user = self.invocation.value("user")
                $0.alert = self.invocation.value("alert")
                $0.device = self.invocation["device"]
            })
        let sent: PushSendAnswer = try answer.read()
        _ = self.tell(answer, said: "\(sent.device) over \(sent.lane): \(sent.answer)")
        return sent.isAccepted ? .success : .refused
    }

    func explain() async throws(AdminClient.Failure) -> ExitCode {
        let terms = self.terms(["user", "record", "zone", "database", "change"])
        let answer = try await self.ask("GET", try self.push("/explain?" + terms))
        let explained: PushExplanationAnswer = try answer.read()
        var text = explained.reaches ? "it reaches a device\n\n" : "it reaches no device\n\n"
        text += TextTable.text(explained.subscriptions) + "\n" + TextTable.text(explained.devices)
        if explained.isCut { text += "there are more subscriptions\n" }
        _ = self.show(self.isJSON ? self.context.stamp(answer.text) + "\n" : text)
        return explained.reaches ? .success : .refused
    }
}
