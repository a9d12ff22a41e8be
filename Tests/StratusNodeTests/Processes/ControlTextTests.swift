import ChildProcesses
import Foundation
import StratusCommandLine
import Testing

/// Errors in the words of the options that mend them (operator review, annoyances), and usage
/// errors of every program.
@Suite struct ControlTextTests {
    let directory = try! TemporaryDirectory()

    @Test func `errors name the option that mends them`() async throws {
        let dev = try await NodeProcessTests.Dev(self.directory.path + "/a")
        let bare = try await Program.run("stratusctl", ["--node", dev.text("adminURL"), "status"])
        #expect(bare.code == ExitCode.denied.rawValue)
        #expect(bare.errors.contains("'--token-file', or in STRATUSCTL_TOKEN_FILE"), "\(bare)")
        let clients = try await Program.run("stratusctl", ["--node", dev.text("url"), "status"])
        #expect(clients.errors.contains("not as the administrators' listener does"), "\(clients)")
        let secure = try await Program.run(
            "stratusctl",
            ["--node", "https" + dev.text("adminURL").dropFirst("http".count), "status"])
        #expect(secure.code == ExitCode.usage.rawValue, "\(secure)")
        #expect(secure.errors.contains("speaks HTTP without TLS: write http://"), "\(secure)")
        let container = dev.text("container")
        let confirm = try await dev.control(
            "container", "delete", "--container", container, "--environment", "development",
            "--confirm", "other")
        #expect(confirm.code == ExitCode.usage.rawValue)
        #expect(confirm.errors.contains("'--confirm' must repeat"), "\(confirm)")
        for words in [["token", "list"], ["key", "list"]] {
            let unknown = try await dev.control(words + ["--container", "iCloud.nobody"])
            #expect(unknown.code == ExitCode.refused.rawValue)
            #expect(unknown.errors.contains("there is no container 'iCloud.nobody'"), "\(unknown)")
        }
        #expect(try await dev.stop() == 0)
    }

    @Test func `D14 a person is shown in words, and as JSON on demand`() async throws {
        let dev = try await NodeProcessTests.Dev(self.directory.path + "/b")
        let email = ["--email", "mara@example.org"]
        #expect(
            try await dev.control(["user", "add", "--given-name", "Mara"] + email).code == 0)
        let shown = try await dev.control(["user", "show"] + email)
        #expect(shown.output.contains("e-mail") && shown.output.contains("Mara"), "\(shown)")
        #expect(!shown.output.contains("{"))
        let json = try await dev.control(["--json", "user", "show"] + email)
        let object = try JSONSerialization.jsonObject(with: Data(json.output.utf8))
        #expect((object as? [String: Any])?["email"] as? String == "mara@example.org")
        let receipt = try await dev.control(["user", "delete"] + email)
        #expect(receipt.output.hasPrefix("erased: 0 records"), "\(receipt)")
        #expect(receipt.output.contains("not removed by this:"))
        #expect(try await dev.stop() == 0)
    }

    @Test func `a node alone has a doctor, and says when it is ready`() async throws {
        let dev = try await NodeProcessTests.Dev(self.directory.path + "/c")
        let doctor = try await dev.control("doctor", "--wait", "20s")
        let space = try FileManager.default.attributesOfFileSystem(forPath: self.directory.path)
        let (free, whole) = (
            (space[.systemFreeSize] as? Int64) ?? 0, (space[.systemSize] as? Int64) ?? 0
        )
        if free > max(whole / 10, 1 << 30) {
            #expect(doctor.code == 0 && doctor.output == "No problems found.\n", "\(doctor)")
        } else {
            #expect(doctor.output.contains("of the disk are left"), "\(doctor)")
        }
        #expect(try await dev.control("alive").output == "alive\n")
        #expect(await dev.running.waits { dev.running.errors.contains("\"text\":\"ready\"") })
        #expect(try await dev.stop() == 0)
    }

    @Test func `the metrics of records, commits, syncs and refused administrators move`()
        async throws
    {
        let dev = try await NodeProcessTests.Dev(self.directory.path + "/m")
        let path =
            dev.text("url") + "/database/1/\(dev.text("container"))/development/private/records/"
            + "modify?ckAPIToken=\(dev.text("apiToken"))&ckWebAuthToken=development"
        for operation in [
            #"{"operationType": "create", "record": {"recordType": "N", "recordName": "a", "#
                + #""fields": {}}}"#,
            #"{"operationType": "forceDelete", "record": {"recordName": "a"}}"#,
            #"{"operationType": "create", "record": {"recordType": "N", "recordName": "b", "#
                + #""fields": {"t": {"value": "stays"}}}}"#,
        ] {
            let answer = try await NodeProcessTests.get(
                path, body: "{\"operations\": [\(operation)]}")
            #expect(!answer.text.contains("serverErrorCode"), "\(answer.text)")
        }
        let bare = try await Program.run("stratusctl", ["--node", dev.text("adminURL"), "status"])
        #expect(bare.code == ExitCode.denied.rawValue)
        // Counted after 2, 6 and 14 seconds: a round that came before the saves says nothing.
        var text = ""
        for _ in 0..<60 where value("stratus_records") ?? 0 == 0 {
            text = try await dev.control("metrics").output
            try await Task.sleep(for: .milliseconds(500))
        }
        func value(_ series: String) -> Double? {
            text.split(separator: "\n").first { $0.hasPrefix(series + " ") }
                .flatMap { Double($0.split(separator: " ").last ?? "") }
        }
        #expect(value("stratus_records") ?? 0 >= 1)
        #expect(value("stratus_records_bytes") ?? 0 > 5)
        #expect(value(#"stratus_records_changed_total{change="save"}"#) == 2)
        #expect(value(#"stratus_records_changed_total{change="delete"}"#) == 1)
        #expect(value("stratus_administrators_refused_total") == 1)
        #expect(value("stratus_commit_seconds_count") ?? 0 >= 2)
        #expect(value("stratus_log_sync_seconds_count") ?? 0 >= 2)
        #expect(value("stratus_disk_bytes") ?? 0 > 1e6)
        #expect(value(#"stratus_data_bytes{part="log"}"#) ?? 0 > 1e6)
        #expect(value(#"stratus_data_bytes{part="rows"}"#) != nil)
        #expect(value("process_start_time_seconds") ?? 0 > 1.7e9)
        #expect(value("process_max_fds") ?? 0 > 0)
        // Nobody else could lead it: no rule may take this node for a cluster without a leader.
        #expect(value("stratus_leads_system") == 1)
        // Of this moment: the node has work of its own.
        #expect(value("stratus_replica_requests_waiting") ?? 100 < 100)
        #expect(value("stratus_storage_events_waiting") ?? 100 < 100)
        for series in [
            #"stratus_snapshots_total{end="receiver"}"#, "stratus_moves",
            "stratus_replicas_missing", #"stratus_certificate_end_seconds{listener="client"}"#,
        ] {
            #expect(value(series) == 0, "\(series)")
        }
        #expect(try await dev.stop() == 0)
    }

    static let wrong: [(program: String, arguments: [String], says: String)] = [
        ("stratus-sim", ["--minutes", "0.5"], "'--minutes' wants a whole number from 1 to"),
        ("stratus-sim", ["--seeds", "5"], "'--seeds' wants A..B"),
        ("stratus-sim", ["--seed", "1", "--mix", "no"], "'--mix' wants one of"),
        ("stratus-sim", ["--seed", "1", "--without", "no"], "there is no fault 'no'"),
        ("stratus", ["dev", "--listen", "x"], "'--listen' wants HOST:PORT"),
        ("stratusctl", ["ready", "--wait", "x"], "'--wait' wants a number with ms, s"),
    ]

    @Test(arguments: wrong)
    func `a usage error of any program is a sentence`(
        row: (program: String, arguments: [String], says: String)
    ) async throws {
        let ended = try await Program.run(row.program, row.arguments)
        #expect(ended.code == ExitCode.usage.rawValue, "\(ended)")
        #expect(ended.errors.contains(row.says), "\(ended)")
        #expect(ended.errors.contains("Run '\(row.program)"), "\(ended)")
        #expect(!ended.errors.contains("CommandLineError") && ended.output.isEmpty, "\(ended)")
    }

    @Test func `D14 with --json a usage error is JSON too`() async throws {
        let ended = try await Program.run("stratusctl", ["--json", "statsu"])
        #expect(ended.code == ExitCode.usage.rawValue && ended.errors.isEmpty)
        let object = try JSONSerialization.jsonObject(with: Data(ended.output.utf8))
        let error = (object as? [String: Any])?["error"] as? [String: Any]
        #expect(error?["exitCode"] as? Int == 64)
        #expect((error?["reason"] as? String)?.contains("Did you mean") == true)
    }
}
