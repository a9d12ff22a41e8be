import StratusAdminModel
import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess
import StratusRuntime

/// `stratusctl schema`: the schema of a container, out, in and to production.
struct SchemaCommands: AdminConversation {
    let context: ControlContext

    init(_ context: ControlContext) { self.context = context }

    func requireContainer() throws(AdminClient.Failure) {
        let container = self.invocation.value("container")
        guard ContainerReference.isName(container) else {
            throw Failure(.usage, ContainerReference.refusal(of: container))
        }
    }

    func export() async throws(AdminClient.Failure) -> ExitCode {
        try self.requireContainer()
        return self.show(try await self.ask("GET", self.place("/schema")).text)
    }

    func importFile() async throws(AdminClient.Failure) -> ExitCode {
        try await self.put(
            isDry: self.invocation.flag("dry-run"), isExisting: self.invocation.flag("existing"))
    }

    func diff() async throws(AdminClient.Failure) -> ExitCode {
        try await self.put(isDry: true, isExisting: false)
    }

    func promote() async throws(AdminClient.Failure) -> ExitCode {
        try self.requireContainer()
        let isDry = self.invocation.flag("dry-run")
        let target =
            "/v1/containers/\(self.encoded("container"))/environments/production/schema/promote"
        return try self.changes(
            try await self.ask("POST", target + (isDry ? "?dryRun=1" : "")), isDry: isDry)
    }

    private func put(isDry: Bool, isExisting: Bool) async throws(AdminClient.Failure) -> ExitCode {
        try self.requireContainer()
        let path = self.invocation.value("FILE")
        let text: Bytes
        do throws(SmallFile.Failure) { text = try SmallFile.read(path) } catch {
            throw Failure(.missingInput, error.description)
        }
        let query = (isDry ? ["dryRun=1"] : []) + (isExisting ? ["existing=1"] : [])
        let target =
            self.place("/schema") + (query.isEmpty ? "" : "?" + query.joined(separator: "&"))
        do throws(AdminClient.Failure) {
            let answer = try self.client.require(
                try await self.client.send("PUT", target, body: text))
            return try self.changes(answer, isDry: isDry)
        } catch {
            // The node says line and column; only we know the file.
            guard error.name == AdminCode.badSchema.rawValue else { throw error }
            throw Failure(.malformedInput, "\(path): \(error.description)")
        }
    }

    private func changes(_ answer: AdminClient.Answer, isDry: Bool) throws(AdminClient.Failure)
        -> ExitCode
    {
        try self.tell(answer) { (schema: SchemaAnswer) in
            self.tellCreation(schema.isCreated)
            let end =
                schema.changes.isEmpty
                ? "nothing to change: version \(schema.version) remains in force"
                : isDry ? "nothing was changed" : "version \(schema.version) is in force"
            return (schema.changes + [end]).map { $0 + "\n" }.joined()
        }
    }
}
