import StratusAdminModel
import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess
import StratusRuntime

/// `stratusctl assets`: the files of records that a node keeps.
struct AssetCommands: AdminConversation {
    let context: ControlContext

    init(_ context: ControlContext) { self.context = context }

    /// Pages of differences that one command shows: 500 each.
    private static let pageCountMax = 1_000
    /// Between two looks whether everything has been read back.
    private static let pause = Duration.milliseconds(200)
    /// How long the store of a partition may fail before nobody waits for it any more.
    private static let failingPatience = Duration.seconds(120)

    static let command = ControlCommand(
        "assets", "The files of records that the node keeps",
        subcommands: [
            ControlCommand(
                "status", "Bytes on the disk, and copies that are missing, damaged or repaired",
                discussion: [
                    "Speaks of the node that is asked. A node fetches what it lacks from the other "
                        + "nodes by itself."
                ],
                examples: [
                    .init(
                        "stratusctl assets status", "Is a copy missing, damaged or being fetched?")
                ],
                run: AssetCommands.status),
            ControlCommand(
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
                    PlaceOptions.environment,
                ],
                examples: [
                    .init(
                        "stratusctl assets verify --container iCloud.org.example.app",
                        "Before a container's files are copied elsewhere"),
                    .init("stratusctl assets verify --wait", "After a trouble with the disk"),
                ],
                run: AssetCommands.verify),
            ControlCommand(
                "audit", "Compare rows, index and packs now, and name what is missing or left over",
                discussion: [
                    "Speaks of the copies on the node that is asked. At the end it speaks of the "
                        + "whole cluster: of lost files, and of rows that contradict each other. "
                        + "It reads every copy back, so it takes as long as "
                        + "'verify --wait'. A node fetches what it lacks and removes what is left "
                        + "over by itself: ask again a minute later.",
                    "Exit code 1 if anything is missing, left over, lost or contradicted.",
                ],
                examples: [
                    .init("stratusctl assets audit", "After a disk was mended or exchanged")
                ],
                run: AssetCommands.audit),
            AssetAdoption.command,
            ControlCommand(
                "lost", "Files of which no node has a sound copy, and the records that hold them",
                discussion: [
                    "Looks in every partition of the cluster, whichever node is asked. Downloads "
                        + "of such a file are answered with 410. Save the file again, or delete "
                        + "the record. Exit code 1 if a partition does not answer."
                ],
                examples: [
                    .init("stratusctl assets lost", "Which records have a file that cannot be had?")
                ],
                run: AssetCommands.listLost),
        ])

    func status() async throws(AdminClient.Failure) -> ExitCode {
        try self.tell(try await self.ask("GET", "/v1/assets")) {
            TextTable.text(of: $0, AssetsAnswer.columns, alignsRight: true)
        }
    }

    func verify() async throws(AdminClient.Failure) -> ExitCode {
        if self.invocation["container"] != nil {
            return try await AssetVerifyCommand(self.context).run()
        }
        let before: AssetsAnswer = try await self.ask("GET", "/v1/assets").read()
        let begun = try await self.ask("POST", "/v1/assets/verify")
        guard self.invocation.flag("wait") else {
            return try self.tell(begun) { (begun: PartitionsAnswer) in
                "reading the files of \(begun.partitions) partitions back\n"
            }
        }
        let (status, text, isDone) = try await self.settled()
        let written = self.show(
            self.isJSON
                ? text + "\n" : TextTable.text(of: status, AssetsAnswer.columns, alignsRight: true))
        guard written == .success else { return written }
        let isSound = isDone && status.damaged == before.damaged && status.missing == 0
        return isSound ? .success : .refused
    }

    /// Waits until everything has been compared and read back.
    ///
    /// - Returns: the last answer, and false where a partition kept failing.
    private func settled() async throws(AdminClient.Failure) -> (
        status: AssetsAnswer, text: String, isDone: Bool
    ) {
        let clock = ContinuousClock()
        var failingSince: ContinuousClock.Instant?
        while true {
            let answer = try await self.ask("GET", "/v1/assets")
            let status: AssetsAnswer = try answer.read()
            if status.readingBackPartitions == 0,
                (status.comparingPartitions ?? 0) == 0
            {
                return (status, answer.text, true)
            }
            // A node tries again for ever, and somebody waits here.
            if status.failingPartitions == 0 {
                failingSince = nil
            } else if clock.now >= (failingSince ?? clock.now) + Self.failingPatience {
                return (status, answer.text, false)
            } else {
                failingSince = failingSince ?? clock.now
            }
            try? await clock.sleep(for: Self.pause)
        }
    }

    func audit() async throws(AdminClient.Failure) -> ExitCode {
        let _: PartitionsAnswer = try await self.ask("POST", "/v1/assets/audit").read()
        let isDone = try await self.settled().isDone
        var (count, place) = (0, "")
        for _ in 0..<Self.pageCountMax {
            let query = place.isEmpty ? "" : "?after=" + PercentCoding.encode(place)
            let page: CopyDifferencesAnswer = try await self.ask("GET", "/v1/assets/audit" + query)
                .read()
            for one in page.differences {
                count += 1
                guard self.show(one, one.text) == .success else { return .inputOutput }
            }
            place = page.next ?? ""
            if place.isEmpty { break }
        }
        var said = ""
        if !isDone { said += "a partition of this node cannot be read or written\n" }
        if count == 0, isDone { said += "no copy on this node is missing or left over\n" }
        if !self.isJSON, !said.isEmpty, self.show(said) != .success { return .inputOutput }
        let lost = try await self.lost()
        guard lost.code == .success else { return lost.code }
        let faults = try await self.lines(
            "/v1/assets/rows", orElse: "no row of a file contradicts another one\n", Self.fault)
        guard faults.code == .success else { return faults.code }
        return isDone && count == 0 && lost.count == 0 && faults.count == 0 ? .success : .refused
    }

    func listLost() async throws(AdminClient.Failure) -> ExitCode { try await self.lost().code }

    private func lost() async throws(AdminClient.Failure) -> (code: ExitCode, count: Int) {
        try await self.lines("/v1/assets/lost", orElse: "no file is lost\n", Self.lostFile)
    }

    /// Shows what a walk through the whole cluster finds.
    ///
    /// - Parameter nothing: what is said where it finds nothing.
    /// - Returns: how much it found. The code is that of the walk itself.
    private func lines(
        _ path: String, orElse nothing: String, _ text: (AssetLine) -> String
    ) async throws(AdminClient.Failure) -> (code: ExitCode, count: Int) {
        var (count, isDone, isWritten) = (0, false, true)
        var failingCount = 0
        try await self.client.lines("GET", path) { bytes in
            guard let line = try? AssetLine(reading: bytes) else { return true }
            var said = ""
            if line.isDone {
                isDone = true
                said = count == 0 ? nothing : ""
            } else if let failing = line.failing {
                failingCount += 1
                said = "not looked at: a partition of \(line.container ?? "") "
                said += "(\(line.environment ?? "")): \(failing)\n"
            } else {
                count += 1
                said = text(line)
            }
            isWritten =
                self.show(self.isJSON ? String(decoding: bytes, as: UTF8.self) + "\n" : said)
                == .success
            return isWritten
        }
        guard isWritten else { return (.inputOutput, count) }
        guard isDone else {
            throw Failure(.inputOutput, "the answer was cut off: ask again")
        }
        return (failingCount == 0 ? .success : .refused, count)
    }

    // There is no table: its widths would be known at the end only.

    private static func lostFile(_ line: AssetLine) -> String {
        line.place + (line.record.isEmpty ? "no record" : "record \(line.record)")
            + ", \(line.size ?? 0) bytes\n"
    }

    private static func fault(_ line: AssetLine) -> String {
        line.place + (line.record.isEmpty ? "" : "record \(line.record): ")
            + "asset \(line.asset ?? "") \(line.fault ?? "")\n"
    }
}
