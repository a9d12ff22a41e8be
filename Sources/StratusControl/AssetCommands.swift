import StratusCommandLine
import StratusHTTP
import StratusProcess

/// `stratusctl assets`: the files of records that a node keeps.
struct AssetCommands {
    private typealias Failure = AdminClient.Failure

    let invocation: Invocation
    let client: AdminClient
    let isJSON: Bool

    /// Pages of differences that one command shows: 500 each.
    private static let pageCountMax = 1_000
    /// Between two looks whether everything has been read back.
    private static let pause = Duration.milliseconds(200)
    /// How long the store of a partition may fail before nobody waits for it any more.
    private static let failingPatience = Duration.seconds(120)

    static let definition = CommandDefinition(
        "assets", "The files of records that the node keeps",
        subcommands: [
            CommandDefinition(
                "status", "Bytes on the disk, and copies that are missing, damaged or repaired",
                discussion: [
                    "Speaks of the node that is asked. A node fetches what it lacks from the other "
                        + "nodes by itself."
                ]),
            CommandDefinition(
                "verify", "Read every copy back now, and fetch damaged ones from the other nodes",
                discussion: [
                    "A node does so by itself once a day, at storage.scrubRate. Exit code 1 with "
                        + "--wait if copies are damaged or missing.",
                    "With --container only the files of one container are read, on the node that "
                        + "is asked. The command waits for that and says how many copies were read, "
                        + "damaged and missing. Exit code 1 if any is damaged or missing.",
                ],
                options: [
                    .flag("wait", nil, "Wait until everything has been read"),
                    .value("container", .text("ID"), "Only the files of this container"),
                    .value(
                        "environment", .choice(["development", "production"]),
                        default: "development", "The environment of the container"),
                ],
                examples: [
                    .init(
                        "stratusctl assets verify --container iCloud.org.example.app",
                        "Before a container's files are copied elsewhere"),
                    .init("stratusctl assets verify --wait", "After a trouble with the disk"),
                ]),
            CommandDefinition(
                "audit", "Compare rows, index and packs now, and name what is missing or left over",
                discussion: [
                    "Speaks of the copies on the node that is asked. At the end it speaks of the "
                        + "whole cluster: of lost files, and of rows that contradict each other. "
                        + "It reads every copy back, so it takes as long as "
                        + "'verify --wait'. A node fetches what it lacks and removes what is left "
                        + "over by itself: ask again a minute later.",
                    "Exit code 1 if anything is missing, left over, lost or contradicted.",
                ]),
            AssetAdoption.definition,
            CommandDefinition(
                "lost", "Files of which no node has a sound copy, and the records that hold them",
                discussion: [
                    "Looks in every partition of the cluster, whichever node is asked. Downloads "
                        + "of such a file are answered with 410. Save the file again, or delete "
                        + "the record. Exit code 1 if a partition does not answer."
                ]),
        ])

    static func serves(_ path: [String]) -> Bool { path.first == "assets" }

    func run() async throws(AdminClient.Failure) -> ExitCode {
        switch self.invocation.path.last {
        case "lost": try await self.lost().code
        case "adopt":
            try await AssetAdoption(
                invocation: self.invocation, client: self.client, isJSON: self.isJSON
            ).run()
        case "audit": try await self.audit()
        case "verify" where self.invocation["container"] != nil:
            try await AssetVerifyCommand(
                invocation: self.invocation, client: self.client, isJSON: self.isJSON
            ).run()
        case "verify": try await self.verify()
        default: self.show(try await self.document("GET", "/v1/assets"))
        }
    }

    private func verify() async throws(AdminClient.Failure) -> ExitCode {
        let before = try await self.document("GET", "/v1/assets")
        let begun = try await self.document("POST", "/v1/assets/verify")
        guard self.invocation.flag("wait") else {
            let count = begun.root["partitions"]?.int64 ?? 0
            return self.isJSON
                ? self.write(begun.text + "\n")
                : self.write("reading the files of \(count) partitions back\n")
        }
        let (status, isDone) = try await self.settled()
        let written = self.show(status)
        guard written == .success else { return written }
        let isSound =
            isDone && status.root["damaged"]?.int64 == before.root["damaged"]?.int64
            && status.root["missing"]?.int64 == 0
        return isSound ? .success : .refused
    }

    /// Waits until everything has been compared and read back.
    ///
    /// - Returns: the last answer, and false where a partition kept failing.
    private func settled() async throws(AdminClient.Failure) -> (
        status: (root: JSONValue, text: String), isDone: Bool
    ) {
        let clock = ContinuousClock()
        var failingSince: ContinuousClock.Instant?
        while true {
            let status = try await self.document("GET", "/v1/assets")
            if status.root["readingBackPartitions"]?.int64 == 0,
                (status.root["comparingPartitions"]?.int64 ?? 0) == 0
            {
                return (status, true)
            }
            // A node tries again for ever, and somebody waits here.
            if status.root["failingPartitions"]?.int64 == 0 {
                failingSince = nil
            } else if clock.now >= (failingSince ?? clock.now) + Self.failingPatience {
                return (status, false)
            } else {
                failingSince = failingSince ?? clock.now
            }
            try? await clock.sleep(for: Self.pause)
        }
    }

    private func audit() async throws(AdminClient.Failure) -> ExitCode {
        _ = try await self.document("POST", "/v1/assets/audit")
        let (_, isDone) = try await self.settled()
        var (count, place) = (0, "")
        for _ in 0..<Self.pageCountMax {
            let query = place.isEmpty ? "" : "?after=" + PercentCoding.encode(place)
            let page = try await self.document("GET", "/v1/assets/audit" + query)
            for one in ClusterFacts.array(page.root, "differences") {
                count += 1
                guard self.write(self.isJSON ? Self.line(one) : Self.text(one)) == .success else {
                    return .inputOutput
                }
            }
            place = page.root["next"]?.string ?? ""
            if place.isEmpty { break }
        }
        var said = ""
        if !isDone { said += "a partition of this node cannot be read or written\n" }
        if count == 0, isDone { said += "no copy on this node is missing or left over\n" }
        if !self.isJSON, !said.isEmpty, self.write(said) != .success { return .inputOutput }
        let lost = try await self.lost()
        guard lost.code == .success else { return lost.code }
        let faults = try await self.lines(
            "/v1/assets/rows", orElse: "no row of a file contradicts another one\n", Self.fault)
        guard faults.code == .success else { return faults.code }
        return isDone && count == 0 && lost.count == 0 && faults.count == 0 ? .success : .refused
    }

    private static func text(_ one: JSONValue) -> String {
        "partition \(one["partition"]?.int64 ?? 0): chunk \(one["chunk"]?.int64 ?? 0) of body "
            + "\(one["body"]?.string ?? "") is "
            + (one["kind"]?.string == "missing" ? "missing\n" : "left over\n")
    }

    private static func line(_ one: JSONValue) -> String {
        let line = JSONWriter.line {
            $0.member("partition", one["partition"]?.int64 ?? 0)
            $0.member("body", one["body"]?.string ?? "")
            $0.member("chunk", one["chunk"]?.int64 ?? 0)
            $0.member("kind", one["kind"]?.string ?? "")
        }
        return String(decoding: line, as: UTF8.self)
    }

    private func lost() async throws(AdminClient.Failure) -> (code: ExitCode, count: Int) {
        try await self.lines("/v1/assets/lost", orElse: "no file is lost\n", Self.lostFile)
    }

    /// Shows what a walk through the whole cluster finds.
    ///
    /// - Parameter nothing: what is said where it finds nothing.
    /// - Returns: how much it found. The code is that of the walk itself.
    private func lines(
        _ path: String, orElse nothing: String,
        _ text: (_ root: JSONValue, _ member: (String) -> String) -> String
    ) async throws(AdminClient.Failure) -> (code: ExitCode, count: Int) {
        var (count, isDone, isWritten) = (0, false, true)
        var failingCount = 0
        try await self.client.lines("GET", path) { line in
            guard let root = try? JSONDocument(parsing: line).root else { return true }
            func member(_ key: String) -> String { root[key]?.string ?? "" }
            var said = ""
            if root["done"]?.bool == true {
                isDone = true
                said = count == 0 ? nothing : ""
            } else if root["failing"] != nil {
                failingCount += 1
                said = "not looked at: a partition of \(member("container")) "
                said += "(\(member("environment"))): \(member("failing"))\n"
            } else {
                count += 1
                said = text(root, member)
            }
            isWritten =
                self.write(self.isJSON ? String(decoding: line, as: UTF8.self) + "\n" : said)
                == .success
            return isWritten
        }
        guard isWritten else { return (.inputOutput, count) }
        guard isDone else {
            throw AdminClient.Failure(.inputOutput, "the answer was cut off: ask again")
        }
        return (failingCount == 0 ? .success : .refused, count)
    }

    // There is no table: its widths would be known at the end only.

    private static func lostFile(_ root: JSONValue, _ member: (String) -> String) -> String {
        let record = Self.record(member)
        return Self.database(member) + (record.isEmpty ? "no record" : "record \(record)")
            + ", \(root["size"]?.int64 ?? 0) bytes\n"
    }

    private static func fault(_: JSONValue, _ member: (String) -> String) -> String {
        let record = Self.record(member)
        return Self.database(member) + (record.isEmpty ? "" : "record \(record): ")
            + "asset \(member("asset")) \(member("fault"))\n"
    }

    private static func record(_ member: (String) -> String) -> String {
        [member("zone"), member("recordName")].filter { !$0.isEmpty }.joined(separator: "/")
    }

    private static func database(_ member: (String) -> String) -> String {
        if member("container").isEmpty { return "" }
        let database = [member("database"), member("owner")].filter { !$0.isEmpty }
        return "\(member("container")) (\(member("environment"))), "
            + "\(database.joined(separator: " ")): "
    }

    private func show(_ status: (root: JSONValue, text: String)) -> ExitCode {
        if self.isJSON { return self.write(status.text + "\n") }
        var table = TextTable([.init(""), .init("", alignsRight: true)])
        func row(_ name: String, _ key: String, isSize: Bool = false) {
            guard let value = status.root[key]?.int64 else { return }
            table.append([name, isSize ? "\(value >> 20) MiB" : "\(value)"])
        }
        row("packs", "packBytes", isSize: true)
        row("in use", "liveBytes", isSize: true)
        row("missing copies", "missing")
        row("partitions that lack copies for over a minute", "lackingPartitions")
        row("partitions that cannot be read or written", "failingPartitions")
        row("copies that no record holds yet or any more", "unnamed")
        row("files that no node has, found since the start", "lost")
        row("found damaged since the start", "damaged")
        row("brought from other nodes since the start", "repaired")
        row("let go since the start", "removed")
        row("partitions being read back", "readingBackPartitions")
        row("partitions being compared", "comparingPartitions")
        return self.write(table.write())
    }

    private func write(_ text: String) -> ExitCode {
        Terminal.write(text) ? .success : .inputOutput
    }

    private func document(_ method: String, _ path: String) async throws(AdminClient.Failure) -> (
        root: JSONValue, text: String
    ) {
        let answer = try self.client.require(try await self.client.send(method, path, body: []))
        do throws(JSONError) {
            return (try JSONDocument(parsing: answer.body).root, answer.text)
        } catch { throw AdminClient.Failure(.inputOutput, "the node's answer is not JSON") }
    }
}
