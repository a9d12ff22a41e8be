import StratusHTTP
import StratusModel
import Synchronization
import Testing

@testable import StratusRuntime

/// G-14: behind a proxy, nobody gets a request past it, or into another client's: both agree on
/// where each request ends.
@Suite(.serialized) struct ReverseProxyTests {
    private final class Seen: Sendable {
        let requests = Mutex<[ReverseProxy.Passed]>([])
    }

    @Test(
        "G-14 the same bytes through a proxy: the server sees what the proxy passed on, and no more",
        .enabled(
            if: ReverseProxy.Kind.allCases.contains(where: \.isInstalled),
            "neither nginx nor haproxy is installed"),
        arguments: ReverseProxy.Kind.allCases.filter(\.isInstalled))
    func agrees(kind: ReverseProxy.Kind) async throws {
        let seen = Seen()
        let handler = ClosureHandler { request in
            var target = request.head.path
            if let query = request.head.query { target += "?\(query)" }
            let passed = ReverseProxy.Passed(
                method: request.head.method, target: target, status: 200)
            // A request whose body does not come whole is none: the connection ends with it.
            guard let body = try? await request.body.collect() else {
                return .text("", status: 413)
            }
            seen.requests.withLock { $0.append(passed) }
            return HTTPResponse(
                status: 200, body: .bytes(Bytes("\(passed.method) \(target) ".utf8) + body))
        }
        try await withServer(handler, gzipSizeMin: nil) { _, address in
            let proxy = try await ReverseProxy(kind, before: try #require(address.port))
            var read = 0
            var reached = 0
            for (number, row) in HTTPCase.all.enumerated() {
                seen.requests.withLock { $0 = [] }
                let client = try proxy.client()
                client.send(row.bytes)
                client.endSending()
                _ = client.receive()
                client.close()

                // The next client gets the answer to its own question, over the same connection
                // behind the proxy.
                let probe = "/honest-\(number)"
                let honest = try proxy.client()
                honest.send("GET \(probe) HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                let answer = honest.text().text
                #expect(answer.hasPrefix("HTTP/1.1 200"), "\(row.name): \(answer.prefix(200))")
                #expect(answer.contains("GET \(probe) "), "\(row.name): \(answer.prefix(400))")

                // The proxy writes its line after the answer.
                try await eventually {
                    ((try? proxy.passed()) ?? []).last?.target == probe
                }
                let all = try proxy.passed()
                let passed = all[read...].filter { $0.status != nil }
                read = all.count
                let taken = seen.requests.withLock { $0 }
                reached += taken.count - 1
                // The server may or may not have begun to answer requests that it refused or cut
                // short. The rest is equal, in order, and there is nothing else.
                #expect(
                    Self.isAccounted(taken, by: Array(passed)),
                    "\(row.name): saw \(taken), was passed \(Array(passed))")
                #expect(taken.last?.target == probe, "\(row.name)")
            }
            // Or nothing was tested.
            #expect(reached > 100)
        }
    }

    /// Whether every request taken was passed on, in the same order, and each one answered 200 was
    /// taken.
    private static func isAccounted(
        _ taken: [ReverseProxy.Passed], by passed: [ReverseProxy.Passed]
    ) -> Bool {
        var rest = passed[...]
        for request in taken {
            var isFound = false
            while !isFound {
                guard let next = rest.popFirst() else { return false }
                isFound = next.method == request.method && Self.path(next.target) == request.target
                // Passed on and not taken: good only where the server did not answer it as its own.
                if !isFound, next.status == 200 { return false }
            }
        }
        return rest.allSatisfy { $0.status != 200 }
    }

    /// Without the scheme and authority of the absolute form.
    private static func path(_ target: String) -> String {
        if target.hasPrefix("?") { return "/" + target }
        guard let mark = target.firstRange(of: "://"), !target.hasPrefix("/") else { return target }
        let rest = target[mark.upperBound...]
        guard let slash = rest.firstIndex(where: { $0 == "/" || $0 == "?" }) else { return "/" }
        return rest[slash] == "?" ? "/" + rest[slash...] : String(rest[slash...])
    }

    @Test func `the account is strict`() {
        func row(_ target: String, _ status: Int? = 200) -> ReverseProxy.Passed {
            ReverseProxy.Passed(method: "GET", target: target, status: status)
        }
        #expect(Self.isAccounted([row("/a"), row("/b")], by: [row("/a"), row("/b")]))
        #expect(Self.isAccounted([row("/b")], by: [row("/a", 400), row("/b")]))
        #expect(Self.isAccounted([row("/a")], by: [row("http://x/a")]))
        // One that nobody passed on, one that was answered and not taken, one in another place.
        #expect(
            !Self.isAccounted(
                [row("/a"), row("/smuggled"), row("/b")], by: [row("/a"), row("/b")]))
        #expect(!Self.isAccounted([row("/b")], by: [row("/a"), row("/b")]))
        #expect(!Self.isAccounted([row("/b"), row("/a")], by: [row("/a"), row("/b")]))
        #expect(!Self.isAccounted([row("/a"), row("/a")], by: [row("/a")]))
        #expect(!Self.isAccounted([row("/a"), row("/b")], by: [row("/x", 400), row("/a")]))
    }
}
