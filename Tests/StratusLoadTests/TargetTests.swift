import Foundation
import StratusDoubles
import StratusHTTP
import StratusModel
import StratusRuntime
import Testing

@testable import StratusLoad

/// The requests on the wire, and the judgement of the answers.
@Suite struct TargetTests {
    static let stratus = StratusTarget(
        StratusTarget.Place(
            container: "iCloud.org.example.load", environment: "development",
            database: "private", apiToken: "00", webAuthTokens: ["a+b", "c"], valueSize: 5))

    private func body(_ request: HTTPClientRequest) throws -> JSONValue {
        guard case .bytes(let bytes) = request.body else { throw Problem() }
        return try JSONDocument(parsing: bytes).root
    }

    private struct Problem: Error {}

    @Test func `each step is one request of the web services`() throws {
        var client = LoadClient(number: 0, seed: 1)
        let save = Self.stratus.request(for: .save(7), of: &client)
        #expect(
            save.target
                == "/database/1/iCloud.org.example.load/development/private/records/modify"
                + "?ckAPIToken=00&ckWebAuthToken=a%2Bb")
        let operation = try self.body(save)["operations"]?.array?.first { _ in true }
        #expect(operation?["record"]?["recordName"]?.string == "load-7")
        #expect(operation?["record"]?["fields"]?["body"]?["value"]?.string?.utf8.count == 5)
        var other = LoadClient(number: 1, seed: 1)
        #expect(Self.stratus.request(for: .lookup(7), of: &other).target.hasSuffix("=c"))
        let batch = try self.body(Self.stratus.request(for: .batch([1, 2]), of: &client))
        #expect(batch["atomic"]?.bool == true)
        #expect(batch["zoneID"]?["zoneName"]?.string == "load")
        let query = try self.body(
            Self.stratus.request(for: .query(from: 3, limit: 20), of: &client))
        #expect(query["resultsLimit"]?.int64 == 20)
    }

    @Test func `a sync goes on where the last one ended`() throws {
        var client = LoadClient(number: 0, seed: 1)
        let first = try self.body(Self.stratus.request(for: .sync, of: &client))
        #expect(first["zones"]?.array?.first { _ in true }?["syncToken"] == nil)
        let answer = Bytes(#"{"zones":[{"syncToken":"there","moreComing":false}]}"#.utf8)
        #expect(
            Self.stratus.judge(.sync, status: 200, body: answer, of: &client) == .done)
        let second = try self.body(Self.stratus.request(for: .sync, of: &client))
        #expect(second["zones"]?.array?.first { _ in true }?["syncToken"]?.string == "there")
    }

    @Test(arguments: [
        (200, #"{"records":[{"recordName":"load-7"}]}"#, Verdict.done),
        (
            200, #"{"records":[{"serverErrorCode":"TRY_AGAIN_LATER","retryAfter":2}]}"#,
            .again(after: .seconds(2))
        ),
        (200, #"{"records":[{"serverErrorCode":"NOT_FOUND"}]}"#, .failed("NOT_FOUND")),
        (429, #"{"serverErrorCode":"THROTTLED","retryAfter":1}"#, .again(after: .seconds(1))),
        (503, "", .again(after: nil)),
        (
            421, #"{"serverErrorCode":"AUTHENTICATION_REQUIRED"}"#,
            .failed("AUTHENTICATION_REQUIRED")
        ),
        (404, "nothing here", .failed("status 404")),
    ]) func `what was refused for now is asked again, what was refused for good is named`(
        status: Int, body: String, verdict: Verdict
    ) {
        var client = LoadClient(number: 0, seed: 1)
        #expect(
            Self.stratus.judge(.save(7), status: status, body: Bytes(body.utf8), of: &client)
                == verdict)
    }

    @Test func `others can what they can`() {
        let etcd = EtcdTarget(valueSize: 3)
        #expect(Step.Kind.allCases.filter(etcd.supports) == [.save, .lookup, .readModifyWrite])
        var client = LoadClient(number: 0, seed: 1)
        #expect(etcd.request(for: .lookup(1), of: &client).target == "/v3/kv/range")
        #expect(
            etcd.judge(.lookup(1), status: 200, body: Bytes("{}".utf8), of: &client)
                == .failed("not found"))
        let pocket = PocketBaseTarget(valueSize: 3)
        #expect(
            pocket.request(for: .lookup(42), of: &client).target
                == "/api/collections/items/records/load00000000042")
    }
}

@Suite struct RegisterHistoryTests {
    private static let history = RegisterHistory([
        .init(register: 1, client: 0, event: .init(.write(5), calledAt: 1, returnedAt: 4)),
        .init(register: 1, client: 1, event: .init(.read(nil), calledAt: 2, returnedAt: 3)),
        .init(
            register: 1, client: 1,
            event: .init(.compareAndSet(expected: 5, value: 6), calledAt: 5, returnedAt: nil)),
        .init(
            register: 2, client: 2,
            event: .init(.failedCompareAndSet(expected: 9), calledAt: 1, returnedAt: 9)),
    ])

    @Test func `a history is read back from its lines`() throws {
        let read = try RegisterHistory(lines: Self.history.lines)
        #expect(read.entries == Self.history.entries)
        #expect(throws: RegisterHistory.Unreadable.self) {
            try RegisterHistory(lines: Bytes("{\"register\":1}\n".utf8))
        }
    }

    @Test func `a stale read is found, in its register`() {
        #expect(Self.history.findings().isEmpty)
        var bad = Self.history
        bad.entries.append(
            .init(register: 1, client: 2, event: .init(.read(nil), calledAt: 7, returnedAt: 8)))
        #expect(bad.findings().map(\.register) == [1])
    }
}

@Suite struct LoadReportTests {
    private static var report: LoadReport {
        var report = LoadReport(target: "stratus", workload: "<save>", clientCount: 3, rate: 100)
        for done in [5, 0, 0, 7] {
            var second = LoadReport.Second()
            second.done = done
            for _ in 0..<done { second.latencies.record(microseconds: 1_500) }
            report.latencies.merge(second.latencies)
            report.seconds.append(second)
        }
        report.kinds = [(.save, report.latencies)]
        report.marks = [.init(seconds: 1.5, text: "kill 2 & wait")]
        report.elapsed = 4
        return report
    }

    @Test func `sums, silence and JSON`() throws {
        #expect(Self.report.perSecond == 3)
        #expect(Self.report.longestSilence == 2)
        let root = try JSONDocument(parsing: Self.report.json).root
        #expect(root["operations"]?.int64 == 12)
        #expect(root["latencyMicroseconds"]?["p99.9"]?.int64 == 1_500)
        #expect(root["seconds"]?.array.map { Array($0).count } == 4)
    }

    @Test func `the page shows marks, and nothing of what it was told becomes markup`() {
        let page = LoadPage(Self.report).html
        #expect(page.contains("kill 2 &amp; wait"))
        #expect(page.contains("stratus: &lt;save&gt;"))
        #expect(!page.contains("<save>"))
        #expect(page.components(separatedBy: "<svg").count == 4)
    }

    @Test(arguments: [(0.0, 0.001), (0.7, 1), (1, 1), (1.1, 2), (33, 50), (99, 100), (100, 100)])
    func `an axis ends at a round number`(value: Double, end: Double) {
        #expect(abs(LoadPage.ceiling(value) - end) <= end / 1e6)
    }

    @Test func `ratios are of rounds, and the median is shown`() {
        func round(_ own: Double, _ other: Double) -> [LoadReport] {
            [("stratus", own), ("etcd", other)].map { name, rate in
                var report = LoadReport(
                    target: name, workload: "save", clientCount: 1, rate: nil)
                var second = LoadReport.Second()
                second.done = Int(rate)
                report.seconds = [second]
                report.elapsed = 1
                return report
            }
        }
        let table = Comparison([round(100, 50), round(10, 20), round(30, 30)]).table
        #expect(table.contains("1 x (0.5 to 2)"))
        #expect(Comparison.median([1, 2, 3, 4]) == 2.5)
    }
}
