import StratusCluster
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime
import Testing

@testable import StratusGateway

/// The memory that all requests' answers together may take.
@Suite struct AnswerBudgetTests {
    private let budget = AnswerBudget(ByteCount(1_200_000))
    private let handler: Gateway

    init() {
        let wire = InProcess()
        var settings = GatewaySettings()
        settings.developmentSchema = .justInTime
        self.handler = Gateway(
            InProcess.kernel(wire.router, wire.world, settings: settings, answers: self.budget))
    }

    private func save(_ name: String, size: Int) async -> Int {
        await self.handler.post(
            "records/modify",
            #"""
            {"operations":[{"operationType":"create","record":{"recordName":"\#(name)",
            "recordType":"Text","fields":{"text":{"value":"\#(String(repeating: "x", count: size))"}}}}]}
            """#
        ).status
    }

    private func lookUp(_ names: String...) async -> HTTPResponse {
        let records = names.map { #"{"recordName":"\#($0)"}"# }.joined(separator: ",")
        return await self.handler.post("records/lookup", #"{"records":[\#(records)]}"#)
    }

    @Test func `S-30 an answer for which there is no room is told to come again, small ones pass`()
        async throws
    {
        #expect(await self.save("big", size: 600_000) == 200)
        #expect(await self.save("small", size: 100) == 200)
        #expect(self.budget.size == 0)

        // Large ones may have three quarters: 900,000.
        var first: HTTPResponse? = await self.lookUp("big")
        #expect(first?.status == 200)
        #expect(self.budget.size > 600_000)
        let refused = await self.lookUp("big")
        #expect(refused.status == 503)
        #expect(refused.headers["Retry-After"] == "1")
        #expect(await self.lookUp("small").status == 200)

        first = nil
        #expect(self.budget.size == 0)
        #expect(await self.lookUp("big").status == 200)
        #expect(self.budget.size == 0)
    }

    @Test func `S-30 a query and a feed are counted as well`() async throws {
        #expect(await self.save("big", size: 600_000) == 200)
        let query = #"{"query":{"recordType":"Text"}}"#
        let first = await self.handler.post("records/query", query)
        #expect(first.status == 200)
        #expect(self.budget.size > 600_000)
        #expect(await self.handler.post("records/query", query).status == 503)
        withExtendedLifetime(first.held) {}
    }
}
