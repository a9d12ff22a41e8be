import StratusAdminModel
import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess
import StratusRuntime

/// `stratusctl container copy`: the schema and the public database of one environment into the
/// other.
struct ContainerCopyCommand: AdminConversation {
    let context: ControlContext

    init(_ context: ControlContext) { self.context = context }

    static let command = ControlCommand(
        "copy", "Copy schema and public records from one environment to the other",
        discussion: [
            "To production, the schema is promoted first, as 'schema promote' does. Then each "
                + "record of the public database is made in the other environment, with files of "
                + "its own. A record whose name is taken there stays as it is, so the command may "
                + "be interrupted and run again.",
            "Whoever made a record has made its copy too, if they have an account. What "
                + "development users made belongs to nobody. Private databases stay: they are "
                + "their people's. Records of type Users, tokens, keys and roles stay as well.",
            "What is made in production is there for good: the command shows what the schema "
                + "gets and asks, unless '--confirm' repeats the container's name.",
        ],
        options: [
            PlaceOptions.container,
            .value(
                "from", .choice(["development", "production"]), required: true,
                "The environment to copy from"),
            .value(
                "to", .choice(["development", "production"]), required: true,
                "The environment to copy to"),
            .value(
                "confirm", .text("ID"),
                "With '--to production': the container's name again, instead of the question"),
        ],
        examples: [
            .init(
                "stratusctl container copy --container iCloud.org.example.app --from development "
                    + "--to production", "When what was prepared goes live")
        ],
        run: ContainerCopyCommand.run)

    func run() async throws(AdminClient.Failure) -> ExitCode {
        try self.context.requireContainer()
        let (from, to) = (self.invocation.value("from"), self.invocation.value("to"))
        guard from != to else {
            throw Failure(.usage, "'--from' and '--to' are the same environment")
        }
        let container = "/v1/containers/\(self.encoded("container"))/environments/"
        if to == "production" {
            let promotion = container + "production/schema/promote"
            let wanted: SchemaAnswer = try await self.ask("POST", promotion + "?dryRun=1").read()
            let records = "the records of production"
            try SchemaCommands(self.context).confirm(
                wanted, to: wanted.changes.isEmpty ? records : "the schema and " + records)
            if !wanted.changes.isEmpty { _ = try await self.ask("POST", promotion) }
        }
        var receipt = RecordCopyReceipt()
        // Each round makes something, or is the last.
        while true {
            let made = receipt.made
            let waiting = try await self.round(container + from + "/copy", to, &receipt)
            guard !waiting.isEmpty else { break }
            if receipt.made == made {
                receipt.refused += waiting
                break
            }
        }
        var text =
            "copied \(receipt.made) records with \(receipt.fileBytes) bytes of files; "
            + "\(receipt.there) were there\n"
        for remark in receipt.refused {
            text += "not copied: \(remark.record): \(remark.reason)\n"
        }
        let code = self.show(receipt, text)
        return receipt.refused.isEmpty ? code : .refused
    }

    /// All pages once.
    ///
    /// - Returns: what waits for another record.
    private func round(_ target: String, _ to: String, _ receipt: inout RecordCopyReceipt)
        async throws(AdminClient.Failure) -> [RecordCopyRemark]
    {
        var waiting: [RecordCopyRemark] = []
        receipt.refused = []
        let isFirst = receipt.made == 0
        var there: Int64 = 0
        var bar = ProgressBar(
            "Copying", isTerminal: Terminal.isTerminal(Terminal.errors), width: Terminal.width)
        defer { if let clear = bar.finish() { Terminal.write(clear, to: Terminal.errors) } }
        let clock = ContinuousClock()
        let start = clock.now
        var after: String?
        repeat {
            let body = RecordCopyBody {
                $0.to = to
                $0.after = after
            }
            let page: RecordCopyAnswer = try self.client.require(
                try await self.client.send(
                    "POST", target, body: body.json, deadline: AdminClient.longWork)
            ).read()
            receipt.made += page.made
            receipt.fileBytes += page.fileBytes
            there += page.there
            receipt.refused += page.refused
            waiting += page.waiting
            after = page.next
            if let line = bar.update(
                done: Int(clamping: receipt.made), total: nil, unit: "records",
                elapsed: clock.now - start)
            {
                Terminal.write(line, to: Terminal.errors)
            }
        } while after != nil
        if isFirst { receipt.there = there }
        return waiting
    }
}
