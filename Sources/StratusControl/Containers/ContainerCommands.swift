import StratusAdminModel
import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess
import StratusRuntime

/// `stratusctl container`: which containers there are, the beginning and the end of one.
struct ContainerCommands: AdminConversation {
    let context: ControlContext

    init(_ context: ControlContext) { self.context = context }

    private static let bucketCounts = (1...Bucket.countMax).filter(Bucket.isOffered).map { "\($0)" }
    private static let zoneBucketCounts = Array(Self.bucketCounts.dropFirst())

    /// For commands that otherwise make the container.
    static let existing = OptionDefinition.flag(
        "existing", nil, "Refuse a container that is not there, instead of making it")

    static let commands: [ControlCommand] = [
        ControlCommand(
            "container", "Containers, which hold the records of apps",
            subcommands: [
                ControlCommand(
                    "create", "Create a container",
                    discussion: [
                        "Not needed before 'token create', 'key add' or 'schema import', "
                            + "which create the container themselves. Needed to choose buckets, "
                            + "and to use the name of a deleted container again.",
                        "Every save to a public database goes through one partition. With "
                            + "buckets, its records are spread by name over several partitions, "
                            + "which accept saves in parallel. The number is chosen here and never "
                            + "changes. Development and production have their own.",
                        "A private database lies whole in one partition. With '--placement zone', "
                            + "the custom zones of each owner are spread by name over up to "
                            + "'--zone-buckets' partitions. Choose it only where single owners "
                            + "have many zones and many writers: each sync then asks all "
                            + "partitions in use. It never changes either.",
                    ],
                    options: PlaceOptions.all + [
                        .value(
                            "buckets", .choice(Self.bucketCounts), default: "1",
                            "The number of buckets of the public database"),
                        .value(
                            "placement", .choice(["whole", "zone"]), default: "whole",
                            "How private databases are placed: whole, or zone by zone"),
                        .value(
                            "zone-buckets", .choice(Self.zoneBucketCounts),
                            "With '--placement zone': the number of buckets of each private "
                                + "database; \(ContainerLayout.zoneBucketCountStandard) otherwise"),
                    ],
                    examples: [
                        .init(
                            "stratusctl container create --container iCloud.org.example.app "
                                + "--environment production", "Before the first release"),
                        .init(
                            "stratusctl container create --container iCloud.org.example.busy "
                                + "--environment production --buckets 16",
                            "When many people save to the public database at once"),
                        .init(
                            "stratusctl container create --container iCloud.org.example.teams "
                                + "--environment production --placement zone",
                            "When single owners have many zones and many writers"),
                    ],
                    run: ContainerCommands.create),
                ControlCommand(
                    "list", "Every container, and whether it may be used",
                    examples: [
                        .init(
                            "stratusctl container list",
                            "Which containers are there, and in which environments?")
                    ],
                    run: ContainerCommands.list),
                ControlCommand(
                    "show", "One container: its schema, and its numbers of tokens, keys and users",
                    options: PlaceOptions.all,
                    examples: [
                        .init(
                            "stratusctl container show --container iCloud.org.example.app",
                            "Is anything in it?")
                    ],
                    run: ContainerCommands.showOne),
                ControlCommand(
                    "usage", "How many records and bytes a container's databases hold",
                    discussion: [
                        "Counts live records and the bytes of their rows, as the quotas "
                            + "limits.privateDatabaseSizeMax and limits.publicDatabaseSizeMax do. "
                            + "Indexes, deleted records and replicas are not counted."
                    ],
                    options: PlaceOptions.all + [
                        .flag("all", nil, "Every user, not only the twenty who use most")
                    ],
                    examples: [
                        .init(
                            "stratusctl container usage --container iCloud.org.example.app --environment production",
                            "Who uses most?")
                    ],
                    run: ContainerCommands.usage),
                ControlCommand(
                    "audit",
                    "Compare and repair the references between a public database's buckets",
                    discussion: [
                        "A reference from one bucket to another is stored in both. 'stratus "
                            + "cluster recover' may leave the two in disagreement, and starts this "
                            + "repair for every container by itself. It may be repeated at any "
                            + "time. It changes no records and does not disturb clients. The "
                            + "command starts the work, which continues in the background."
                    ],
                    options: PlaceOptions.all,
                    examples: [
                        .init(
                            "stratusctl container audit --container iCloud.org.example.app --environment production",
                            "After 'stratus cluster recover'")
                    ],
                    run: ContainerCommands.audit),
                ContainerCopyCommand.command, BrandCommands.command,
                ControlCommand(
                    "delete", "Close a container and remove everything it holds",
                    discussion: [
                        "Removes the records, zones, tokens, keys, users and sessions of one "
                            + "environment. Every node refuses requests within two seconds. "
                            + "Removing begins half a minute later, when requests that were "
                            + "accepted before have ended. It proceeds piece by piece while this "
                            + "command runs; after an interruption, run the command again. This "
                            + "cannot be undone."
                    ],
                    options: PlaceOptions.exact + [
                        .value(
                            "confirm", .text("ID"), required: true,
                            "The container's name again, to confirm"),
                        .flag("no-wait", nil, "Close it, and remove nothing yet"),
                    ],
                    examples: [
                        .init(
                            "stratusctl container delete --container iCloud.org.example.old --environment "
                                + "development --confirm "
                                + "iCloud.org.example.old", "Once nobody needs it")
                    ],
                    run: ContainerCommands.delete),
            ])
    ]

    func create() async throws(AdminClient.Failure) -> ExitCode {
        try self.context.requireContainer()
        let placement = self.invocation.value("placement")
        if placement == "whole", self.invocation["zone-buckets"] != nil {
            throw Failure(.usage, "'--zone-buckets' is for '--placement zone' only")
        }
        let answer = try await self.ask(
            "POST", self.place(""),
            ContainerBody {
                $0.buckets = Int64(self.invocation.value("buckets")) ?? 1
                guard placement == "zone" else { return }
                $0.placement = "zone"
                $0.zoneBuckets = self.invocation["zone-buckets"].flatMap { Int64($0) }
            })
        return self.tell(answer, said: "created")
    }

    func list() async throws(AdminClient.Failure) -> ExitCode {
        try await self.table(of: ContainerAnswer.self, "/v1/containers")
    }

    func showOne() async throws(AdminClient.Failure) -> ExitCode {
        try self.context.requireContainer()
        return try self.tell(try await self.ask("GET", self.place(""))) {
            TextTable.text(of: $0, ContainerDetails.columns)
        }
    }

    func usage() async throws(AdminClient.Failure) -> ExitCode {
        try self.context.requireContainer()
        var users: [UsageRow] = []
        var publicDatabase: UsageRow?
        var next: String?
        repeat {
            let page = next.map { "?after=" + PercentCoding.encode($0) } ?? ""
            let answer: UsageAnswer = try await self.ask("GET", self.place("/usage" + page)).read()
            for row in answer.databases {
                if row.database == "public" {
                    publicDatabase = UsageRow(row)
                } else {
                    users.append(UsageRow(row))
                }
            }
            next = answer.next
        } while next != nil
        users.sort { ($1.bytes, $0.name) < ($0.bytes, $1.name) }
        var total = UsageRow(named: "total of \(users.count) users and the public database")
        for one in users + [publicDatabase].compactMap(\.self) {
            total.zones += one.zones
            total.records += one.records
            total.bytes += one.bytes
        }
        let shown = self.invocation.flag("all") ? users : Array(users.prefix(20))
        let rows = [publicDatabase].compactMap(\.self) + shown
        let summary = UsageSummary {
            $0.databases = rows
            $0.users = Int64(users.count)
            $0.total = total
        }
        return self.show(summary, TextTable.text(rows + [total]))
    }

    func audit() async throws(AdminClient.Failure) -> ExitCode {
        try self.context.requireContainer()
        let answer = try await self.ask("POST", self.place("/references/audit"))
        return try self.tell(answer) { (begun: BucketsAnswer) in
            begun.buckets == 0
                ? "no bucket holds anything\n"
                : "\(begun.buckets) buckets have started to compare their references\n"
        }
    }

    // MARK: Deleting

    /// Refuses a confirmation that names another container.
    static func confirm(_ text: String, _ container: String) throws(AdminClient.Failure) {
        guard text != container else { return }
        throw AdminClient.Failure(
            .usage,
            "'--confirm' must repeat the container's name, '\(container)', and says '\(text)': "
                + "nothing was changed")
    }

    func delete() async throws(AdminClient.Failure) -> ExitCode {
        try self.context.requireContainer()
        try Self.confirm(self.invocation.value("confirm"), self.invocation.value("container"))
        let shut = try await self.ask(
            "DELETE", self.place("?confirm=" + self.encoded("confirm")))
        if self.invocation.flag("no-wait") {
            return self.tell(
                shut,
                said: "closed within two seconds on every node; run the command without "
                    + "--no-wait to remove what it holds")
        }
        var removal = RemovalLoop()
        let last = try await removal.run { () throws(AdminClient.Failure) in
            try await self.ask("POST", self.place("/erasure")).read()
        }
        let outstanding = last.outstanding ?? []
        let receipt = RemovalReceipt {
            $0.users = removal.users
            $0.zones = removal.zones
            $0.records = removal.records
            $0.outstanding = outstanding
        }
        var text = "removed \(removal.records) records, \(removal.zones) custom zones and "
        text += "\(removal.users) users\nnot removed by this:\n"
        for line in outstanding { text += "  \(line)\n" }
        return self.show(receipt, text)
    }
}
