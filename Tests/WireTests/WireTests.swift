import Testing
import WireScenarios

/// Every conversation once more, over real sockets with a real process. Skipped, visibly, where the
/// program has not been built.
@Suite(.serialized, .enabled(if: ServerProcess.binary != nil, "no stratus program was built"))
struct WireTests {
    @Test(arguments: Scenario.all)
    func `over HTTP`(scenario: Scenario) async throws {
        try await scenario.run(over: try await OverHTTP.strict.value)
    }

    @Test func `one connection's broken request disturbs no other`() async throws {
        let wire = try await OverHTTP.strict.value
        var patient = try wire.connect()
        let request = WireRequest(
            method: "POST", target: "/database/1/iCloud.x/development/public/records/lookup",
            body: Array("{}".utf8))
        let whole = OverHTTP.message(request, close: false)
        patient.send(Array(whole[..<40]))
        for broken in [
            "GARBAGE\r\n\r\n", "POST / HTTP/9.9\r\n\r\n", "GET /\u{0} HTTP/1.1\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\nshort",
        ] {
            var other = try wire.connect()
            other.send(Array(broken.utf8))
            // The last one waits for the rest of its body: nothing comes, and it is left alone.
            if broken.hasSuffix("short") { continue }
            if let answer = try other.receive() {
                #expect((400..<600).contains(answer.status), "\(broken)")
                let json = try? JSON(parsing: answer.body)
                #expect(json?["serverErrorCode"] != nil, "\(broken): \(answer)")
            }
        }
        patient.send(Array(whole[40...]))
        let answer = try #require(try patient.receive())
        #expect(answer.status == 401)
    }

    @Test func `a connection carries many requests, also sent ahead of their answers`() async throws
    {
        let wire = try await OverHTTP.strict.value
        var socket = try wire.connect()
        let request = OverHTTP.message(
            WireRequest(method: "GET", target: "/nowhere"), close: false)
        for _ in 0..<50 { socket.send(request) }
        var names: Set<String> = []
        for _ in 0..<50 {
            let answer = try #require(try socket.receive())
            #expect(answer.status == 404)
            names.insert(
                answer.headers.first { $0.name.lowercased() == "x-apple-request-uuid" }?.value ?? ""
            )
        }
        #expect(names.count == 50)
    }
}
