import ChildProcesses
import Foundation
import StratusHTTP
import StratusModel
import StratusTLS
import Testing

@testable import StratusRuntime

private let nghttp = "/usr/bin/nghttp"
private let h2load = "/usr/bin/h2load"

private func isInstalled(_ path: String) -> Bool {
    FileManager.default.isExecutableFile(atPath: path)
}

/// Our server against programs that share none of its code: `curl`, `nghttp` and `h2load`. All
/// three stand on nghttp2, as our sessions do; `Tests/Stages/58-http2` asks Python's h2, which does
/// not.
@Suite struct HTTP2PeerTests {
    private static func curl(_ arguments: [String]) async throws -> ChildProcess.Ended {
        try await ChildProcess.run("/usr/bin/curl", ["-sS", "--max-time", "60"] + arguments)
    }

    private static func tls(_ certificates: TestCertificates) throws -> TLSContextSource {
        var configuration = TLSServerConfiguration(identity: certificates.server)
        configuration.protocols = ["h2", "http/1.1"]
        return try TLSContextSource(configuration)
    }

    /// Answers with the request it received, as text.
    private static let teller = ClosureHandler { request in
        var body = ""
        do { body = String(decoding: try await request.body.collect(), as: UTF8.self) } catch {
            return .text("body \(error)", status: 413)
        }
        return .text(
            "\(request.version.rawValue) \(request.head.method) \(request.head.path) "
                + "\(request.head.query ?? "-") \(request.isSecure) \(body)")
    }

    @Test func `curl with prior knowledge, and HTTP/1.1 on the same port`() async throws {
        try await withServer(Self.teller, plainHTTP2: true) { _, address in
            let url = "http://\(address)/a?b=c"
            let new = try await Self.curl(["--http2-prior-knowledge", "-i", "-d", "hello", url])
            #expect(new.output.hasPrefix("HTTP/2 200"))
            #expect(new.output.contains("content-length:") && new.output.contains("date: "))
            #expect(new.output.hasSuffix("h2 POST /a b=c false hello"))
            let old = try await Self.curl(["--http1.1", "-i", url])
            #expect(old.output.hasPrefix("HTTP/1.1 200"))
            // Asking to change over is ignored (G-13).
            let upgrade = try await Self.curl(["--http2", "-i", url])
            #expect(upgrade.output.hasPrefix("HTTP/1.1 200"))
        }
    }

    @Test func `without the setting the preface is a malformed request`() async throws {
        try await withServer(Self.teller) { _, address in
            let ended = try await Self.curl(
                ["--http2-prior-knowledge", "-i", "http://\(address)/"])
            #expect(ended.code != 0)
        }
    }

    @Test func `a preface that comes byte by byte, and one that is none`() async throws {
        try await withServer(Self.teller, plainHTTP2: true) { _, address in
            let client = try RawClient(address)
            for byte in HTTP2Connection.preface + [0, 0, 0, 4, 0, 0, 0, 0, 0] {
                client.send([byte])
                pause(microseconds: 500)
            }
            let answer = client.receive { $0.count >= 9 }
            #expect(answer.bytes.count >= 9 && answer.bytes[3] == 4)
            let other = try RawClient(address)
            other.send("PRI")
            pause(microseconds: 20_000)
            other.send("NT / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            #expect(other.text().text.contains("http/1.1 PRINT / - false"))
            let cut = try RawClient(address)
            cut.send("PRI * HT")
            cut.endSending()
            #expect(cut.isClosedByServer())
        }
    }

    @Test func `curl over TLS agrees on h2, and on http/1.1 when it wants that`() async throws {
        let certificates = try TestCertificates()
        try await withServer(Self.teller, tls: try Self.tls(certificates)) { _, address in
            let port = "\(address)".split(separator: ":").last!
            let trust = ["--cacert", certificates.path("ca.pem"), "-i"]
            let url = "https://localhost:\(port)/x"
            let new = try await Self.curl(trust + ["--http2", url])
            #expect(new.output.hasPrefix("HTTP/2 200") && new.output.hasSuffix("h2 GET /x - true "))
            let old = try await Self.curl(trust + ["--http1.1", url])
            #expect(old.output.hasPrefix("HTTP/1.1 200"))
            let none = try await Self.curl(trust + ["--no-alpn", url])
            #expect(none.output.hasPrefix("HTTP/1.1 200"))
        }
    }

    @Test func `bodies of megabytes go both ways`() async throws {
        let directory = makeTemporaryDirectory()
        defer { removeDirectory(directory) }
        let sent = Bytes((0..<5_000_003).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        try Data(sent).write(to: URL(filePath: "\(directory)/sent"))
        try await withServer(echo, plainHTTP2: true) { _, address in
            for more in [[], ["-H", "Expect: 100-continue"], ["-H", "Content-Length:"]] {
                let ended = try await Self.curl(
                    [
                        "--http2-prior-knowledge", "--data-binary", "@\(directory)/sent", "-o",
                        "\(directory)/back", "http://\(address)/",
                    ] + more)
                #expect(ended.code == 0, "\(more): \(ended.errors)")
                let back = try Data(contentsOf: URL(filePath: "\(directory)/back"))
                #expect(Bytes(back) == sent, "\(more)")
            }
        }
    }

    @Test func `an answer in pieces, one without a body, HEAD, and one that breaks off`()
        async throws
    {
        struct Pieces: ResponseBody {
            let count = Flag()
            let breaks: Bool
            func next() async throws -> Bytes? {
                await Task.yield()
                if !self.count.raise() { return Bytes(repeating: 0x61, count: 300_000) }
                if self.breaks { throw RequestBodyError.cutShort }
                return nil
            }
        }
        let handler = ClosureHandler { request in
            switch request.head.path {
            case "/pieces":
                HTTPResponse(status: 200, body: .stream(Pieces(breaks: false), length: nil))
            case "/breaks":
                HTTPResponse(status: 200, body: .stream(Pieces(breaks: true), length: nil))
            case "/none": HTTPResponse(status: 204)
            default: .text("hello")
            }
        }
        try await withServer(handler, plainHTTP2: true) { _, address in
            let start = ["--http2-prior-knowledge"]
            let url = "http://\(address)"
            let pieces = try await Self.curl(start + ["\(url)/pieces"])
            #expect(pieces.output.utf8.count == 300_000)
            let breaks = try await Self.curl(start + ["\(url)/breaks"])
            #expect(breaks.code != 0)
            let none = try await Self.curl(start + ["-i", "\(url)/none"])
            #expect(none.output.hasPrefix("HTTP/2 204") && !none.output.contains("content-length"))
            let head = try await Self.curl(start + ["-I", "\(url)/"])
            #expect(head.output.contains("content-length: 5"))
        }
    }

    @Test func `a body beyond the handler's limit is refused in its form`() async throws {
        let directory = makeTemporaryDirectory()
        defer { removeDirectory(directory) }
        try Data(Bytes(repeating: 0x61, count: 3_000_000)).write(
            to: URL(filePath: "\(directory)/large"))
        var small = echo
        small.bodySizeMax = .kibibytes(1)
        try await withServer(small, plainHTTP2: true) { _, address in
            for more in [[], ["-H", "Content-Length:"]] {
                let ended = try await Self.curl(
                    [
                        "--http2-prior-knowledge", "-i", "--data-binary", "@\(directory)/large",
                        "http://\(address)/",
                    ] + more)
                #expect(ended.output.hasPrefix("HTTP/2 413"), "\(ended.output) \(ended.errors)")
                #expect(ended.code == 0 && ended.output.contains("body tooLarge"))
            }
        }
    }

    @Test(.enabled(if: isInstalled(nghttp)))
    func `nghttp: forty streams on one connection`() async throws {
        try await withServer(Self.teller, plainHTTP2: true) { server, address in
            let urls = (0..<40).map { "http://\(address)/\($0)" }
            let ended = try await ChildProcess.run(nghttp, urls)
            #expect(ended.code == 0)
            for number in 0..<40 { #expect(ended.output.contains("h2 GET /\(number) - ")) }
        }
    }

    @Test(.enabled(if: isInstalled(nghttp)))
    func `nghttp: padding, continuations, trailers, small windows`() async throws {
        let directory = makeTemporaryDirectory()
        defer { removeDirectory(directory) }
        try Data(Bytes(repeating: 0x61, count: 100_000)).write(
            to: URL(filePath: "\(directory)/body"))
        try await withServer(echo, plainHTTP2: true) { _, address in
            for more in [
                ["--padding=100"], ["--continuation"], ["--trailer", "x-t: 1"],
                ["--window-bits=4", "--connection-window-bits=16"], ["--header-table-size=0"],
                ["--max-concurrent-streams=1"], ["--no-content-length"], ["--expect-continue"],
            ] {
                let ended = try await ChildProcess.run(
                    nghttp, more + ["-d", "\(directory)/body", "http://\(address)/"])
                #expect(ended.code == 0 && ended.output.utf8.count == 100_000, "\(more)")
            }
        }
    }

    @Test(.enabled(if: isInstalled(h2load)))
    func `h2load: twenty thousand requests, none fails`() async throws {
        let metrics = Metrics()
        let handler = ClosureHandler { request in
            // Every seventh leaves the loop and comes back.
            if request.head.path.hasSuffix("7") { await Task.yield() }
            return .text(request.head.path)
        }
        try await withServer(
            handler, loops: 2, plainHTTP2: true,
            http2Metrics: HTTP2Metrics(metrics, listener: "test")
        ) { _, address in
            let ended = try await ChildProcess.run(
                h2load,
                [
                    "-n", "20000", "-c", "8", "-m", "32", "http://\(address)/1",
                    "http://\(address)/7",
                ])
            #expect(
                ended.output.contains("20000 total, 20000 started, 20000 done, 20000 succeeded"),
                "\(ended.output)")
            try await eventually {
                String(decoding: metrics.exposition(), as: UTF8.self).contains(
                    #"stratus_http2_connections{listener="test"} 0"#)
            }
            #expect(
                String(decoding: metrics.exposition(), as: UTF8.self).contains(
                    #"stratus_http2_streams{listener="test"} 0"#))
        }
    }
}
