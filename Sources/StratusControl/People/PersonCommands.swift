import StratusAdminModel
import StratusCommandLine
import StratusHTTP
import StratusModel

/// `stratusctl user change|verify-address|unverify-address|invite`: one person's name and address.
struct PersonCommands: AdminConversation {
    let context: ControlContext

    init(_ context: ControlContext) { self.context = context }

    private func path(_ action: String) -> String {
        "/v1/users/" + self.encoded("email") + action
    }

    func change() async throws(AdminClient.Failure) -> ExitCode {
        let names = ["to", "given-name", "family-name"]
        guard names.contains(where: { self.invocation[$0] != nil }) else {
            throw Failure(.usage, "give '--to', '--given-name' or '--family-name'")
        }
        let answer = try await self.ask(
            "POST", self.path("/change"),
            UserChangeBody {
                $0.email = self.invocation["to"]
                $0.givenName = self.invocation["given-name"]
                $0.familyName = self.invocation["family-name"]
            })
        return self.tell(answer, said: "changed")
    }

    func verify() async throws(AdminClient.Failure) -> ExitCode {
        try await self.vouch(true, said: "verified: others who may find the person find them by it")
    }

    func unverify() async throws(AdminClient.Failure) -> ExitCode {
        try await self.vouch(false, said: "not verified any more: nobody finds the person by it")
    }

    private func vouch(_ isVerified: Bool, said: String) async throws(AdminClient.Failure)
        -> ExitCode
    {
        self.tell(
            try await self.ask(
                "POST", self.path("/verification"),
                VerificationBody { $0.isVerified = isVerified }), said: said)
    }

    func invite() async throws(AdminClient.Failure) -> ExitCode {
        self.tell(
            try await self.ask("POST", self.path("/invitation")),
            said: "an e-mail with a link is on its way; the node's log says if it cannot be sent")
    }
}
