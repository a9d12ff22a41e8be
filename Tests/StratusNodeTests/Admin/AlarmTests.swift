import Foundation
import StratusAdminModel
import StratusCommandLine
import Testing

@testable import StratusControl
@testable import StratusNode

/// What the doctor finds and what a node reports, against the alert rules, the metrics' page and
/// the sources.
@Suite struct AlarmTests {
    static let root = ConfigurationPagesTests.root

    static func text(_ path: String) throws -> String {
        try String(contentsOf: Self.root.appending(path: path), encoding: .utf8)
    }

    /// The rules of `alerts.yaml`: name and expression.
    static func rules() throws -> [(name: String, expression: String)] {
        try Self.text("Deploy/monitoring/alerts.yaml")
            .matches(of: /- alert: (\w+)\n +expr: >-\n +(.*)\n/)
            .map { (String($0.output.1), String($0.output.2)) }
    }

    /// Every Swift file below a folder of the sources.
    static func sources(_ folders: [String]) throws -> [String] {
        try folders.flatMap { folder in
            let base = Self.root.appending(path: "Sources/\(folder)")
            let files = FileManager.default.enumerator(at: base, includingPropertiesForKeys: nil)
            return try (files?.compactMap { $0 as? URL } ?? [])
                .filter { $0.pathExtension == "swift" }
                .map { try String(contentsOf: $0, encoding: .utf8) }
        }
    }

    @Test func `each row of the doctor's table has a rule, with its threshold and a test`() throws {
        let rules = try Self.rules()
        let tests = try Self.text("Deploy/monitoring/alerts.test.yaml")
        #expect(Diagnosis.table.count > 12)
        for row in Diagnosis.table {
            let rule = rules.first { $0.name == row.alert }
            #expect(rule != nil, "\(row.alarm)")
            if let threshold = row.threshold {
                #expect(rule?.expression.contains(threshold.inRule) == true, "\(row.alarm)")
            }
            #expect(tests.contains("alertname: \(row.alert)\n"), "\(row.alarm): no series fires it")
            #expect(
                tests.contains("alertname: \(row.alert) }"), "\(row.alarm): nothing keeps it quiet")
        }
    }

    @Test func `each row of the doctor's table names a command and a page that there are`() throws {
        for row in Diagnosis.table {
            #expect(!row.sentence.isEmpty && !row.advice.isEmpty, "\(row.alarm)")
            if let command = row.command {
                let path = command.split(separator: " ").map(String.init)
                let run = ControlCommand.run(path, in: ControlProgram.commands)
                #expect(run != nil, "\(row.alarm): \(command)")
            }
            let place = row.page.split(separator: "#").map(String.init)
            let titles = try Self.text(place[0]).matches(of: /(?m)^#+ (.+)$/).map {
                $0.output.1.lowercased().replacing(" ", with: "-")
                    .filter { $0.isLetter || $0.isNumber || $0 == "-" }
            }
            #expect(place.count == 2 && titles.contains(place[1]), "\(row.page)")
        }
    }

    /// Every alarm has one rule, and no other alarm has the same.
    @Test func `no two alarms share a rule`() {
        let pairs = Set(Diagnosis.table.map { [$0.alarm, $0.alert] })
        #expect(Set(pairs.map { $0[0] }).count == pairs.count)
        #expect(Set(pairs.map { $0[1] }).count == pairs.count)
    }

    @Test func `every rule fires in a test, and is quiet on a healthy node`() throws {
        let tests = try Self.text("Deploy/monitoring/alerts.test.yaml")
        let rules = try Self.rules()
        #expect(rules.count > 20)
        for (name, _) in rules {
            #expect(tests.contains("alertname: \(name)\n"), "\(name)")
            #expect(tests.contains("alertname: \(name) }"), "\(name)")
        }
    }

    @Test func `what a node reports as a problem has an alarm, and the other way round`() throws {
        var raised: Set<String> = []
        for source in try Self.sources(["StratusNode", "StratusCluster", "StratusRuntime"]) {
            for match in source.matches(of: /(?i)health\.(?:raise|warn)\(\s*"(\w+)"/) {
                raised.insert(String(match.output.1))
            }
        }
        // A node starts with this one; the others come from its replicas and its mail.
        raised.formUnion(["starting", "replicas", "mail"])
        #expect(raised == Set(NodeMetrics.components))
        #expect(NodeMetrics.components.count == raised.count)
    }

    @Test func `the page lists just the metrics that the sources register`() throws {
        let page = try Self.text("Docs/guides/observing.md")
        let listed = page.matches(of: /\n\| `((?:stratus|process)_\w+)` \|/).map {
            String($0.output.1)
        }
        var registered: Set<String> = []
        let modules = ["StratusNode", "StratusRuntime", "StratusAdmin", "StratusGateway"]
        for source in try Self.sources(modules) {
            for match in source.matches(of: /"((?:stratus|process)_[a-z0-9_]+)"/) {
                registered.insert(String(match.output.1))
            }
        }
        #expect(Set(listed).subtracting(registered) == [], "on the page only")
        #expect(registered.subtracting(listed) == [], "in the sources only")
        #expect(listed.count == Set(listed).count)
    }

    @Test func `rules and panels name metrics of the page`() throws {
        let page = try Self.text("Docs/guides/observing.md")
        let used =
            try Self.text("Deploy/monitoring/alerts.yaml")
            + Self.text("Deploy/monitoring/dashboard.json")
        for match in used.matches(of: /\b((?:stratus|process)_[a-z0-9_]+)/) {
            let name = String(match.output.1)
            let base = name.replacing(/_(bucket|count|sum)$/, with: "")
            #expect(page.contains("`\(name)`") || page.contains("`\(base)`"), "\(name)")
        }
    }
}
