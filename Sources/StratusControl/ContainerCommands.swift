import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess

/// `stratusctl container`: which containers there are, the beginning and the end of one.
struct ContainerCommands: AdminConversation {
    let invocation: Invocation
    let client: AdminClient
    let isJSON: Bool

    private static let place: [OptionDefinition] = [
        .value("container", .text("ID"), required: true, "The container"),
        .value(
            "environment", .choice(["development", "production"]), default: "development",
            "The environment"),
    ]

    private static let bucketCounts = (1...Bucket.countMax).filter(Bucket.isOffered).map { "\($0)" }
    private static let zoneBucketCounts = Array(Self.bucketCounts.dropFirst())

    /// For commands that otherwise make the container.
    static let existing = OptionDefinition.flag(
        "existing", nil, "Refuse a container that is not there, instead of making it")

    static let definitions: [CommandDefinition] = [
        CommandDefinition(
            "container", "Containers, which hold the records of apps",
            subcommands: [
                CommandDefinition(
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
                    options: Self.place + [
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
                    ]),
                CommandDefinition("list", "Every container, and whether it may be used"),
                CommandDefinition(
                    "show", "One container: its schema, and its numbers of tokens, keys and users",
                    options: Self.place),
                CommandDefinition(
                    "usage", "How many records and bytes a container's databases hold",
                    discussion: [
                        "Counts live records and the bytes of their rows, as the quotas "
                            + "limits.privateDatabaseSizeMax and limits.publicDatabaseSizeMax do. "
                            + "Indexes, deleted records and replicas are not counted."
                    ],
                    options: Self.place + [
                        .flag("all", nil, "Every user, not only the twenty who use most")
                    ]),
                CommandDefinition(
                    "audit",
                    "Compare and repair the references between a public database's buckets",
                    discussion: [
                        "A reference from one bucket to another is stored in both. 'stratus "
                            + "cluster recover' may leave the two in disagreement, and starts this "
                            + "repair for every container by itself. It may be repeated at any "
                            + "time. It changes no records and does not disturb clients. The "
                            + "command starts the work, which continues in the background."
                    ],
                    options: Self.place),
                CommandDefinition(
                    "delete", "Close a container and remove everything it holds",
                    discussion: [
                        "Removes the records, zones, tokens, keys, users and sessions of one "
                            + "environment. Every node refuses requests within two seconds. "
                            + "Removing begins half a minute later, when requests that were "
                            + "accepted before have ended. It proceeds piece by piece while this "
                            + "command runs; after an interruption, run the command again. This "
                            + "cannot be undone."
                    ],
                    options: Self.place + [
                        .value(
                            "confirm", .text("ID"), required: true,
                            "The container's name again, to confirm"),
                        .flag("no-wait", nil, "Close it, and remove nothing yet"),
                    ],
                    examples: [
                        .init(
                            "stratusctl container delete --container iCloud.org.example.old --confirm "
                                + "iCloud.org.example.old", "Once nobody needs it")
                    ]),
            ])
    ]

    static func serves(_ path: [String]) -> Bool { path.first == "container" }

    func run() async throws(AdminClient.Failure) -> ExitCode {
        if self.invocation.path != ["container", "list"] {
            let name = self.invocation.value("container")
            guard ContainerReference.isName(name) else {
                throw AdminClient.Failure(.usage, "'\(name)' cannot name a container")
            }
        }
        switch self.invocation.path {
        case ["container", "create"]:
            return try await self.create()
        case ["container", "list"]: return try await self.list()
        case ["container", "show"]: return try await self.showOne()
        case ["container", "usage"]: return try await self.usage()
        case ["container", "audit"]: return try await self.audit()
        case ["container", "delete"]: return try await self.delete()
        default:
            preconditionFailure("'\(self.invocation.path)' is declared and goes nowhere")
        }
    }

    private func create() async throws(AdminClient.Failure) -> ExitCode {
        let placement = self.invocation.value("placement")
        if placement == "whole", self.invocation["zone-buckets"] != nil {
            throw AdminClient.Failure(.usage, "'--zone-buckets' is for '--placement zone' only")
        }
        var json = JSONWriter()
        json.object {
            $0.member("buckets", Int(self.invocation.value("buckets")) ?? 1)
            if placement == "zone" {
                $0.member("placement", "zone")
                if let count = self.invocation["zone-buckets"].flatMap({ Int($0) }) {
                    $0.member("zoneBuckets", count)
                }
            }
        }
        let answer = try await self.ask("POST", self.target(), body: json.finish())
        return self.show(self.isJSON ? answer.text + "\n" : "created\n")
    }

    private func list() async throws(AdminClient.Failure) -> ExitCode {
        let answer = try await self.ask("GET", "/v1/containers")
        if self.isJSON { return self.show(answer.text + "\n") }
        var table = TextTable([
            .init("CONTAINER"), .init("ENVIRONMENT"), .init("STATE"),
            .init("BUCKETS", alignsRight: true), .init("CREATED"),
        ])
        for row in try self.document(answer)["containers"]?.array.map(Array.init) ?? [] {
            table.append(
                ["container", "environment", "state", "buckets", "created"].map {
                    row[$0]?.string ?? row[$0]?.numberText ?? ""
                })
        }
        return self.show(table.write())
    }

    private func showOne() async throws(AdminClient.Failure) -> ExitCode {
        let answer = try await self.ask("GET", self.target())
        if self.isJSON { return self.show(answer.text + "\n") }
        let document = try self.document(answer)
        var table = TextTable([.init(""), .init("")])
        for (name, key) in [
            ("container", "container"), ("environment", "environment"), ("state", "state"),
            ("created", "created"), ("deleted", "deleted"), ("buckets", "buckets"),
            ("placement", "placement"), ("zone buckets", "zoneBuckets"),
            ("schema version", "schemaVersion"),
            ("record types", "recordTypes"), ("tokens", "tokens"), ("keys", "keys"),
            ("users", "users"),
        ] {
            guard let value = document[key] else { continue }
            table.append([name, value.string ?? value.numberText ?? ""])
        }
        return self.show(table.write())
    }

    /// One database, as `usage` shows it.
    private struct Held {
        var name: String
        var zones: Int64 = 0
        var records: Int64 = 0
        var bytes: Int64 = 0

        init(named name: String) { self.name = name }

        init(_ row: JSONValue) {
            self.name = row["userRecordName"]?.string ?? "(public)"
            self.zones = row["zones"]?.int64 ?? 0
            self.records = row["records"]?.int64 ?? 0
            self.bytes = row["bytes"]?.int64 ?? 0
        }
    }

    private func usage() async throws(AdminClient.Failure) -> ExitCode {
        var users: [Held] = []
        var publicDatabase: Held?
        var next: String?
        repeat {
            let page = next.map { "?after=" + PercentCoding.encode($0) } ?? ""
            let document = try self.document(
                try await self.ask("GET", self.target() + "/usage" + page))
            for row in document["databases"]?.array.map(Array.init) ?? [] {
                if row["database"]?.string == "public" {
                    publicDatabase = Held(row)
                } else {
                    users.append(Held(row))
                }
            }
            next = document["next"]?.string
        } while next != nil
        users.sort { ($1.bytes, $0.name) < ($0.bytes, $1.name) }
        var total = Held(named: "total of \(users.count) users and the public database")
        for one in users + [publicDatabase].compactMap(\.self) {
            total.zones += one.zones
            total.records += one.records
            total.bytes += one.bytes
        }
        let shown = self.invocation.flag("all") ? users : Array(users.prefix(20))
        let rows = [publicDatabase].compactMap(\.self) + shown + [total]
        if self.isJSON {
            var json = JSONWriter()
            json.object {
                $0.key("databases")
                $0.array { array in
                    for row in rows.dropLast() { array.object { Self.write(row, to: &$0) } }
                }
                $0.member("users", users.count)
                $0.key("total")
                $0.object { Self.write(total, to: &$0) }
            }
            return self.show(String(decoding: json.finish(), as: UTF8.self) + "\n")
        }
        var table = TextTable([
            .init("DATABASE"), .init("ZONES", alignsRight: true),
            .init("RECORDS", alignsRight: true), .init("BYTES", alignsRight: true),
        ])
        for row in rows {
            table.append([row.name, "\(row.zones)", "\(row.records)", "\(row.bytes)"])
        }
        return self.show(table.write())
    }

    private static func write(_ row: Held, to json: inout JSONWriter) {
        json.member("database", row.name)
        json.member("zones", row.zones)
        json.member("records", row.records)
        json.member("bytes", row.bytes)
    }

    private func audit() async throws(AdminClient.Failure) -> ExitCode {
        let answer = try await self.ask("POST", self.target() + "/references/audit")
        if self.isJSON { return self.show(answer.text + "\n") }
        let count = try self.document(answer)["buckets"]?.int64 ?? 0
        return self.show(
            count == 0
                ? "no bucket holds anything\n"
                : "\(count) buckets have started to compare their references\n")
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

    private func delete() async throws(AdminClient.Failure) -> ExitCode {
        try Self.confirm(self.invocation.value("confirm"), self.invocation.value("container"))
        let confirmed = PercentCoding.encode(self.invocation.value("confirm"))
        let shut = try await self.ask("DELETE", self.target() + "?confirm=" + confirmed)
        if self.invocation.flag("no-wait") {
            return self.show(
                self.isJSON
                    ? shut.text + "\n"
                    : "closed within two seconds on every node; run the command without "
                        + "--no-wait to remove what it holds\n")
        }
        var removal = RemovalLoop()
        let document = try await removal.run { () throws(AdminClient.Failure) in
            try self.document(try await self.ask("POST", self.target() + "/erasure"))
        }
        return self.receipt(
            document, users: removal.users, zones: removal.zones, records: removal.records)
    }

    private func receipt(_ document: JSONValue, users: Int64, zones: Int64, records: Int64)
        -> ExitCode
    {
        let outstanding = document["outstanding"]?.array.map { $0.compactMap(\.string) } ?? []
        if self.isJSON {
            var json = JSONWriter()
            json.object {
                $0.member("users", users)
                $0.member("zones", zones)
                $0.member("records", records)
                $0.key("outstanding")
                $0.array { for line in outstanding { $0.write(line) } }
            }
            return self.show(String(decoding: json.finish(), as: UTF8.self) + "\n")
        }
        var text = "removed \(records) records, \(zones) custom zones and "
        text += "\(users) users\nnot removed by this:\n"
        for line in outstanding { text += "  \(line)\n" }
        return self.show(text)
    }

    // MARK: Asking and showing

    private func target() -> String {
        "/v1/containers/" + PercentCoding.encode(self.invocation.value("container"))
            + "/environments/\(self.invocation.value("environment"))"
    }
}
