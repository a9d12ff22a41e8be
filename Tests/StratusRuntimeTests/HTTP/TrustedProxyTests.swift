import StratusHTTP
import StratusModel
import Testing

@testable import StratusRuntime

/// Requests that proxies pass on count for the addresses of their clients.
@Suite struct TrustedProxyTests {
    private static let proxies = TrustedProxies([
        "127.0.0.1", "10.0.0.0/8", "172.16.0.0/12", "2001:db8:1::/48", "fd00::1",
    ])!

    @Test(arguments: [
        // The peer, X-Forwarded-For, the client; nil: the peer itself.
        ("192.0.2.1", ["203.0.113.9"], nil),
        ("127.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        ("127.0.0.1", ["198.51.100.7, 203.0.113.9"], "203.0.113.9"),
        ("127.0.0.1", ["198.51.100.7", "203.0.113.9"], "203.0.113.9"),
        ("127.0.0.1", ["203.0.113.9, 10.1.2.3"], "203.0.113.9"),
        ("127.0.0.1", ["203.0.113.9,10.1.2.3 , 172.31.255.255"], "203.0.113.9"),
        ("127.0.0.1", ["203.0.113.9, 172.32.0.0"], "172.32.0.0"),
        // Where every one is a proxy's, the first is nearest to the client.
        ("127.0.0.1", ["10.1.2.3, 10.1.2.4"], "10.1.2.3"),
        ("127.0.0.1", [], nil),
        ("127.0.0.1", ["unknown"], nil),
        ("127.0.0.1", ["203.0.113.9, unknown"], nil),
        ("127.0.0.1", ["unknown, 10.1.2.3"], "10.1.2.3"),
        ("127.0.0.1", ["203.0.113.9:4711"], "203.0.113.9"),
        ("127.0.0.1", ["[2001:db8:2::9]:4711"], "2001:db8:2::9"),
        ("127.0.0.1", ["2001:db8:2::9"], "2001:db8:2::9"),
        ("::ffff:127.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        ("2001:db8:1:ffff::5", ["203.0.113.9"], "203.0.113.9"),
        ("2001:db8:2::5", ["203.0.113.9"], nil),
        ("fd00::1", ["203.0.113.9, fd00::2"], "fd00::2"),
        ("unix", ["203.0.113.9"], nil),
        ("127.0.0.1", ["203.0.113.9, " + String(repeating: "x", count: 4_000)], nil),
    ])
    func `the client is the last one that no proxy wrote`(
        peer: String, forwarded: [String], client: String?
    ) {
        let headers = HeaderFields(
            forwarded.map { HeaderFields.Line(name: "x-forwarded-for", value: $0) })
        #expect(Self.proxies.client(behind: peer, headers) == client)
    }

    @Test func `a row of proxies has an end`() {
        let row = ["203.0.113.9"] + Array(repeating: "10.0.0.1", count: TrustedProxies.hopCountMax)
        let headers: HeaderFields = ["X-Forwarded-For": row.joined(separator: ",")]
        #expect(Self.proxies.client(behind: "127.0.0.1", headers) == "10.0.0.1")
    }

    @Test(arguments: [
        "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/+8", "10.0.0.0/8/8", "10.0.0", "host", "", "/8",
        "::/129", "127.0.0.1:80",
    ])
    func `what is no address and no network is refused`(text: String) {
        #expect(!TrustedProxies.isProxy(text))
        #expect(TrustedProxies([text]) == nil)
    }

    @Test func `a Unix socket is a proxy's where that is said`() {
        let headers: HeaderFields = ["X-Forwarded-For": "203.0.113.9"]
        let client = TrustedProxies(["unix"])!.client(behind: TrustedProxies.unix, headers)
        #expect(client == "203.0.113.9")
        #expect(
            TrustedProxies(["0.0.0.0/0"])!.client(behind: "192.0.2.1", headers) == "203.0.113.9")
    }

    // MARK: A server

    private static func request(_ path: String, for client: String?) -> String {
        let forwarded = client.map { "x-forwarded-for: \($0)\r\n" } ?? ""
        return "GET \(path) HTTP/1.1\r\nhost: x\r\n\(forwarded)connection: close\r\n\r\n"
    }

    @Test(arguments: [["127.0.0.1"], []])
    func `handlers see the client, and a proxy's connections count for nobody`(
        trusted: [String]
    ) async throws {
        var limits = HTTPServerLimits.forTests
        limits.connectionCountPerAddressMax = 2
        limits.trustedProxies = TrustedProxies(trusted)!
        let handler = ClosureHandler { .text("from \($0.peer).") }
        try await withServer(handler, limits: limits) { _, address in
            let others = try (0..<2).map { _ in try RawClient(address) }
            if trusted.isEmpty {
                let client = try RawClient(address)
                client.send(Self.request("/", for: nil))
                #expect(client.text().text.hasPrefix("HTTP/1.1 503 "))
                others[0].send(Self.request("/", for: "203.0.113.9"))
                #expect(others[0].text().text.contains("from 127.0.0.1."))
            } else {
                let client = try RawClient(address)
                client.send(Self.request("/", for: "203.0.113.9"))
                #expect(client.text().text.contains("from 203.0.113.9."))
                others[0].send(Self.request("/", for: nil))
                #expect(others[0].text().text.contains("from 127.0.0.1."))
            }
            for other in others { other.close() }
        }
    }

    @Test func `one client behind a proxy leaves the others their places`() async throws {
        var limits = HTTPServerLimits.forTests
        limits.requestCountPerAddressMax = 3
        limits.trustedProxies = TrustedProxies(["127.0.0.1"])!
        let handler = HeldRequestTests.Waiting(.held)
        try await withServer(handler, limits: limits) { server, address in
            func ask(_ path: String, for name: String) throws -> RawClient {
                let client = try RawClient(address)
                client.send(Self.request(path, for: name))
                return client
            }
            let held = try (0..<3).map { _ in try ask("/held", for: "203.0.113.9") }
            try await eventually { handler.waiting == 3 }
            #expect(try ask("/plain", for: "203.0.113.9").text().text.hasPrefix("HTTP/1.1 503 "))
            #expect(try ask("/plain", for: "203.0.113.8").text().text.hasPrefix("HTTP/1.1 200 "))
            for client in held { client.reset() }
            try await eventually { handler.waiting == 0 }
            #expect(try ask("/plain", for: "203.0.113.9").text().text.hasPrefix("HTTP/1.1 200 "))
        }
    }
}
