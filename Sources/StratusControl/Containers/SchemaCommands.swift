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
        try PlaceOptions.require(self.invocation.value("container"))
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
        let target =
            "/v1/containers/\(self.encoded("container"))/environments/production/schema/promote"
        let look = try await self.ask("POST", target + "?dryRun=1")
        let wanted: SchemaAnswer = try look.read()
        guard !self.invocation.flag("dry-run"), !wanted.changes.isEmpty else {
            return try self.changes(look, isDry: true, place: " in production")
        }
        try self.confirm(wanted)
        return try self.changes(
            try await self.ask("POST", target), isDry: false, place: " in production")
    }

    /// Asks the person who typed the command, unless they confirmed it there.
    ///
    /// - Parameter target: what it adds to.
    func confirm(_ wanted: SchemaAnswer, to target: String = "production")
        throws(AdminClient.Failure)
    {
        let container = self.invocation.value("container")
        if let confirmed = self.invocation["confirm"] {
            return try ContainerCommands.confirm(confirmed, container)
        }
        let isAsked = Terminal.isTerminal(0) && Terminal.isTerminal(Terminal.errors)
        var text = wanted.changes.map { $0 + "\n" }.joined()
        if self.isJSON { text = "" }
        guard isAsked, !self.isJSON else {
            Terminal.write(text, to: Terminal.errors)
            throw Failure(
                .usage,
                "this adds to \(target) for good: repeat the container's name with '--confirm'; "
                    + "nothing was changed")
        }
        Terminal.write(
            text + "This adds to \(target) for good. Type the container's name to go on: ",
            to: Terminal.errors)
        guard readLine() == container else {
            throw Failure(.refused, "that is not '\(container)': nothing was changed")
        }
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

    private func changes(_ answer: AdminClient.Answer, isDry: Bool, place: String = "")
        throws(AdminClient.Failure) -> ExitCode
    {
        try self.tell(answer) { (schema: SchemaAnswer) in
            self.tellCreation(schema.isCreated)
            let end =
                schema.changes.isEmpty
                ? "nothing to change: version \(schema.version) remains in force\(place)"
                : isDry ? "nothing was changed" : "version \(schema.version) is in force\(place)"
            return (schema.changes + [end]).map { $0 + "\n" }.joined()
        }
    }
}
