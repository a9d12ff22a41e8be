import StratusGateway
import StratusHTTP
import StratusModel
import StratusRuntime
import Testing
import WireScenarios

/// Caches between clients and the server may keep nothing.
@Suite struct CachingTests {
    @Test(arguments: ["GET", "POST"])
    func `X-31 no answer is for a cache, whoever asks and whatever becomes of it`(
        _ method: String
    ) async throws {
        let wire = InProcess()
        let container = try await wire.makeContainer()
        let base = "/database/1/\(container)/development/"
        let token = "?ckAPIToken=" + Caller.apiToken
        for target in [
            "public/users/current" + token, "private/zones/list" + token + "&ckWebAuthToken=me",
            "private/records/lookup" + token + "&ckWebAuthToken=me", "private/zones/list",
            "private/nothing" + token, "nowhere/zones/list" + token,
        ] {
            let answer = try await wire.send(
                WireRequest(
                    method: method, target: base + target, headers: [],
                    body: method == "GET" ? [] : Array(#"{"records":["a"]}"#.utf8)))
            let said = answer.headers.filter { $0.0.lowercased() == "cache-control" }.map(\.1)
            #expect(said == ["no-store"], "\(method) \(target): \(answer)")
        }
    }

    @Test func `X-31 what the server says of a request it cannot read is for no cache either`()
        throws
    {
        let handler = InProcess().handler
        for refusal in HTTPRefusal.allCases {
            let form = try #require(handler.form(of: refusal))
            #expect(form.headers["Cache-Control"] == "no-store", "\(refusal)")
        }
    }

    @Test func `a request that the server has no place for is told so in the gateway's form`()
        throws
    {
        let handler = InProcess().handler
        let identity = RequestIdentity(high: 1, low: 2)
        for refusal in CrowdRefusal.allCases {
            let form = try #require(handler.form(of: refusal, identity))
            #expect(form.headers["Access-Control-Allow-Origin"] == "*")
            let answer = try JSON(parsing: form.body)
            #expect(answer["serverErrorCode"] == "TRY_AGAIN_LATER")
            #expect(answer["uuid"].text == identity.uuid)
            #expect(answer["retryAfter"].integer == Int64(refusal.retryAfterSeconds))
            #expect(answer["reason"].text == refusal.rawValue)
        }
    }
}
