import StratusHTTP
import StratusModel
import Testing

@testable import StratusPush

@Suite struct VerdictTests {
    private static func verdict(
        _ status: Int, _ body: String = "", headers: HeaderFields = [:]
    ) -> APNsVerdict {
        APNsVerdict(
            ResponseHead(status: status, headers: headers), Bytes(body.utf8), at: 1_700_000_000)
    }

    @Test func `accepted, with the identity that APNs says`() {
        let identity = "8d6f5c0e-3a5e-4b1f-a9f0-0a8f6d0b6c11"
        #expect(
            Self.verdict(200, headers: ["apns-id": identity]) == .accepted(identifier: identity))
        #expect(Self.verdict(200, headers: ["apns-id": "<b>"]) == .accepted(identifier: nil))
    }

    @Test func `P-03: gone, with the moment that decides whether the token was renewed since`() {
        #expect(
            Self.verdict(410, #"{"reason":"Unregistered","timestamp":1709716600123}"#)
                == .gone(before: 1_709_716_600_123))
        #expect(Self.verdict(410, #"{"reason":"ExpiredToken"}"#) == .gone(before: nil))
    }

    /// P-04, P-06, P-09, P-11: each documented answer.
    @Test(
        arguments: [
            (400, "BadDeviceToken", APNsVerdict.unknownDevice),
            (400, "DeviceTokenNotForTopic", .dropped(reason: "DeviceTokenNotForTopic")),
            (400, "BadCollapseId", .dropped(reason: "BadCollapseId")),
            (400, "BadExpirationDate", .dropped(reason: "BadExpirationDate")),
            (400, "BadMessageId", .dropped(reason: "BadMessageId")),
            (400, "BadPriority", .dropped(reason: "BadPriority")),
            (400, "BadTopic", .dropped(reason: "BadTopic")),
            (400, "DuplicateHeaders", .dropped(reason: "DuplicateHeaders")),
            (400, "IdleTimeout", .unavailable(reason: "IdleTimeout", after: nil)),
            (400, "InvalidPushType", .dropped(reason: "InvalidPushType")),
            (400, "MissingDeviceToken", .dropped(reason: "MissingDeviceToken")),
            (400, "MissingTopic", .dropped(reason: "MissingTopic")),
            (400, "PayloadEmpty", .dropped(reason: "PayloadEmpty")),
            (400, "TopicDisallowed", .dropped(reason: "TopicDisallowed")),
            (403, "BadCertificate", .tokenRefused(reason: "BadCertificate")),
            (403, "BadCertificateEnvironment", .tokenRefused(reason: "BadCertificateEnvironment")),
            (
                403, "BadEnvironmentKeyIdInToken",
                .tokenRefused(reason: "BadEnvironmentKeyIdInToken")
            ),
            (403, "ExpiredProviderToken", .tokenRefused(reason: "ExpiredProviderToken")),
            (403, "Forbidden", .tokenRefused(reason: "Forbidden")),
            (403, "InvalidProviderToken", .tokenRefused(reason: "InvalidProviderToken")),
            (403, "MissingProviderToken", .tokenRefused(reason: "MissingProviderToken")),
            (403, "UnrelatedKeyIdInToken", .tokenRefused(reason: "UnrelatedKeyIdInToken")),
            (404, "BadPath", .dropped(reason: "BadPath")),
            (405, "MethodNotAllowed", .dropped(reason: "MethodNotAllowed")),
            (413, "PayloadTooLarge", .tooLarge),
            (429, "TooManyRequests", .deviceBusy(after: nil)),
            (
                429, "TooManyProviderTokenUpdates",
                .unavailable(reason: "TooManyProviderTokenUpdates", after: nil)
            ),
            (500, "InternalServerError", .unavailable(reason: "InternalServerError", after: nil)),
            (503, "ServiceUnavailable", .unavailable(reason: "ServiceUnavailable", after: nil)),
            (503, "Shutdown", .unavailable(reason: "Shutdown", after: nil)),
        ] as [(Int, String, APNsVerdict)])
    func `each answer of APNs`(_ status: Int, _ reason: String, _ expected: APNsVerdict) {
        #expect(Self.verdict(status, #"{"reason":"\#(reason)"}"#) == expected)
    }

    @Test func `what nobody documented is judged by its status`() {
        #expect(Self.verdict(400, "<html>") == .dropped(reason: "status 400"))
        #expect(Self.verdict(302) == .dropped(reason: "status 302"))
        #expect(Self.verdict(599) == .unavailable(reason: "no reason", after: nil))
        #expect(Self.verdict(410, "[]") == .gone(before: nil))
        let long = String(repeating: "a", count: 100)
        #expect(Self.verdict(400, #"{"reason":"\#(long)"}"#) == .dropped(reason: "status 400"))
        #expect(Self.verdict(400, #"{"reason":"a\nb"}"#) == .dropped(reason: "status 400"))
    }

    @Test func `P-09: Retry-After in seconds or as a date, an hour at most`() {
        let now: Int64 = 784_111_777
        func after(_ text: String) -> Duration? { RetryAfter.duration(text, at: now) }
        #expect(after("120") == .seconds(120))
        #expect(after("Sun, 06 Nov 1994 08:50:07 GMT") == .seconds(30))
        #expect(after("Sun, 06 Nov 1994 08:49:07 GMT") == .zero)
        #expect(after("99999999999999999999") == RetryAfter.max)
        #expect(after("Tue, 29 Feb 2028 12:00:00 GMT") == RetryAfter.max)
        for bad in ["", "-1", "soon", "1.5", "Sun, 06 Nov 1994 08:49:37 CET"] {
            #expect(after(bad) == nil, "\(bad)")
        }
        // Every day of some years, by the formatter of our own answers.
        for day in stride(from: Int64(0), to: 80_000, by: 37) {
            let seconds = day * 86_400 + 3_723
            #expect(
                RetryAfter.duration(HTTPDate.text(seconds), at: seconds - 5) == .seconds(5))
        }
    }

    @Test(
        arguments: [
            (201, WebPushVerdict.accepted), (200, .accepted), (202, .accepted), (404, .gone),
            (410, .gone), (413, .tooLarge), (401, .tokenRefused(status: 401)),
            (403, .tokenRefused(status: 403)), (400, .dropped(status: 400)),
            (307, .dropped(status: 307)), (429, .deviceBusy(after: .seconds(7))),
            (503, .unavailable(status: 503, after: .seconds(7))),
        ] as [(Int, WebPushVerdict)])
    func `P-11: each answer of a Web Push service`(_ status: Int, _ expected: WebPushVerdict) {
        let head = ResponseHead(status: status, headers: ["retry-after": "7"])
        #expect(WebPushVerdict(head, at: 0) == expected)
    }

    @Test func `a request of APNs has its fields, and its limits`() throws {
        let request = try APNsRequest(
            deviceToken: [0x6F, 0x0A, 0xC1], topic: "org.example.shelves", kind: .background,
            identifier: "8d6f5c0e-3a5e-4b1f-a9f0-0a8f6d0b6c11", collapseIdentifier: "Library",
            expiration: 1_709_716_600, payload: Bytes("{}".utf8))
        #expect(request.target == "/3/device/6f0ac1")
        let headers = request.headers(ProviderToken(text: "t", issuedAt: 0))
        #expect(headers["authorization"] == "bearer t" && headers["apns-priority"] == "5")
        #expect(
            headers["apns-push-type"] == "background" && headers["apns-collapse-id"] == "Library")
        #expect(headers["apns-expiration"] == "1709716600")
        func problem(_ token: Bytes, _ topic: String, _ collapse: String?, _ size: Int)
            -> APNsRequest.Problem?
        {
            do throws(APNsRequest.Problem) {
                _ = try APNsRequest(
                    deviceToken: token, topic: topic, kind: .alert, identifier: "",
                    collapseIdentifier: collapse, payload: Bytes(repeating: 1, count: size))
                return nil
            } catch { return error }
        }
        #expect(problem([1], "a", nil, 4_096) == nil)
        #expect(problem([1], "a", nil, 4_097) == .payloadTooLarge)
        #expect(problem([1], "a", nil, 0) == .payloadEmpty)
        #expect(problem([], "a", nil, 1) == .deviceToken)
        #expect(problem([1], "a b", nil, 1) == .topic)
        #expect(problem([1], "a", String(repeating: "c", count: 65), 1) == .collapseIdentifier)
        #expect(problem([1], "a", "x\r\ny", 1) == .collapseIdentifier)
    }
}
