import Foundation
import Testing

/// The page of faults says which tests carry which number. To rewrite it after a change:
/// `STRATUS_TEST_REWRITE=1 swift test --filter FaultPageTests`.
@Suite struct FaultPageTests {
    private struct Fault {
        let number: String
        let title: String
        /// The part that no test shows; empty if all of it is shown.
        let gap: String
    }

    private static let path = "Docs/reference/faults.md"
    private static let namedMax = 6
    private static let sections = [
        ("Consensus", FaultList.consensus), ("Storage", FaultList.storage),
        ("Membership and placement", FaultList.membership),
        ("Gateway and API", FaultList.gateway), ("Security", FaultList.security),
        ("Operations", FaultList.operations),
    ]

    private let repository = Repository()

    @Test func `the page of faults is in step with the tests`() throws {
        let tests = try self.testsByNumber()
        let page = try self.page(tests)
        let url = self.repository.root.appendingPathComponent(Self.path)
        if ProcessInfo.processInfo.environment["STRATUS_TEST_REWRITE"] != nil {
            try Data(page.utf8).write(to: url)
        }
        // A test more than the page names makes nothing on it untrue: every other difference does.
        let written = try String(contentsOf: url, encoding: .utf8)
        #expect(Self.withoutTests(written) == Self.withoutTests(page))
        for line in written.split(separator: "\n") where line.hasPrefix("| ") {
            let cells = line.split(separator: "|", omittingEmptySubsequences: false).map {
                $0.trimmingCharacters(in: .whitespaces)
            }
            guard cells.count > 3, let found = tests[cells[1]] else { continue }
            let named = cells[3].matches(of: /`([^`]+)`/).map { String($0.output.1) }
            #expect(!named.isEmpty, "\(cells[1]) has a test now")
            for name in named {
                #expect(found.contains(name), "\(cells[1]) is not in \(name) any more")
            }
        }
    }

    @Test func `every fault has a test that carries its number, or a reason why not`() throws {
        let tests = try self.testsByNumber()
        for (_, text) in Self.sections {
            for fault in Self.faults(text) {
                #expect(
                    tests[fault.number] != nil || !fault.gap.isEmpty,
                    "\(fault.number) \(fault.title)")
            }
        }
    }

    private static func faults(_ text: String) -> [Fault] {
        text.split(separator: "\n").map { line in
            let parts = line.components(separatedBy: " | ")
            return Fault(
                number: parts[0], title: parts[1], gap: parts.count > 2 ? parts[2] : "")
        }
    }

    /// The files that carry a number, by name: test sources, traces, stages and clients.
    private func testsByNumber() throws -> [String: [String]] {
        let base = self.repository.root.appendingPathComponent("Tests")
        let found =
            FileManager.default.enumerator(atPath: base.path)?.compactMap { $0 as? String } ?? []
        var tests: [String: [String]] = [:]
        for path in found.sorted() where !path.hasPrefix("HouseTests/") {
            let isText =
                [".swift", ".txt", ".py", ".sh", ".js"].contains { path.hasSuffix($0) }
                || path.hasPrefix("Stages/")
            guard isText,
                let text = try? String(
                    contentsOf: base.appendingPathComponent(path), encoding: .utf8)
            else { continue }
            let name = Self.name(path)
            for number in Set(text.matches(of: /\b[A-Z]-[0-9]{2}\b/).map { String($0.output) })
            where tests[number]?.contains(name) != true {
                tests[number, default: []].append(name)
            }
        }
        return tests
    }

    private static func name(_ path: String) -> String {
        let parts = path.split(separator: "/").map(String.init)
        let last = parts.last!.split(separator: ".").first.map(String.init) ?? parts.last!
        if path.hasPrefix("Stages/"), parts.count > 1 { return "Stages/\(parts[1])" }
        return path.hasSuffix(".swift") ? last : "\(parts.dropLast().last ?? "")/\(last)"
    }

    private static func withoutTests(_ page: String) -> String {
        page.replacing(/(`[^`]+`(, )?)+( and [0-9]+ more)?/, with: "`…`")
    }

    // MARK: The page

    private func page(_ tests: [String: [String]]) throws -> String {
        var page = """
            # Faults

            What may go wrong, by the number that tests carry in their names, and which test shows it. A fault
            that is not shown, or not wholly, says why. Written by `FaultPageTests`, which fails when a test
            that is named here goes away, or when one comes for a fault that had none; how to rewrite the page
            stands there.

            """
        for (name, text) in Self.sections {
            page += "\n## \(name)\n\n| Number | Fault | Shown by |\n| --- | --- | --- |\n"
            for fault in Self.faults(text) {
                let all = tests[fault.number] ?? []
                var cell = all.prefix(Self.namedMax).map { "`\($0)`" }.joined(separator: ", ")
                if all.count > Self.namedMax { cell += " and \(all.count - Self.namedMax) more" }
                if all.isEmpty {
                    cell = "— \(fault.gap)"
                } else if !fault.gap.isEmpty {
                    cell += "; \(fault.gap)"
                }
                page += "| \(fault.number) | \(fault.title) | \(cell) |\n"
            }
        }
        page += "\n## Not built\n\n"
        for (numbers, what) in FaultList.notBuilt { page += "- \(numbers): \(what).\n" }
        return page
    }
}
