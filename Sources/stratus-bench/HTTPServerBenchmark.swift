import Glibc
import StratusHTTP
import StratusModel
import StratusRuntime
import StratusTLS

extension Benchmark {
    /// `http-server [--port N] [--loops N] [--certificates DIRECTORY]`: the server alone, under a
    /// handler that reads the body and answers 300 bytes. Runs until its input ends.
    ///
    /// Prints its address, and with `--certificates` writes `ca.pem`, `server.pem` and `server.key`
    /// there and a second address that speaks TLS.
    static let httpServer = Benchmark(
        name: "http-server", summary: "answers 300 bytes to every request, until its input ends"
    ) { arguments in
        let port = UInt16(Self.option("port", in: arguments) ?? "0") ?? 0
        let loops = EventLoop.group(count: Int(Self.option("loops", in: arguments) ?? "1") ?? 1)
        var listeners = [HTTPServerConfiguration.Listener(.ip("127.0.0.1", port: port))]
        if let directory = Self.option("certificates", in: arguments) {
            let tls = try TLSContextSource(Self.makeCertificates(in: directory))
            listeners.append(.init(.ip("127.0.0.1", port: 0), tls: tls))
        }
        var limits = HTTPServerLimits()
        limits.connectionCountMax = 30_000
        limits.connectionCountPerAddressMax = 30_000
        if let seconds = Self.option("deadline", in: arguments).flatMap(Int64.init) {
            limits.timeouts.header = .seconds(seconds)
            limits.timeouts.grace = .seconds(seconds)
        }
        let server = HTTPServer(
            configuration: HTTPServerConfiguration(listeners: listeners, limits: limits),
            loops: loops, world: try RealWorld(dataDirectory: "/tmp"), handler: FixedAnswer())
        for address in try await server.start() { print(address) }
        fflush(nil)
        await WorkerThread(name: "input").run { while getchar() != EOF {} }
        await server.stop(deadline: .seconds(1))
    }

    private static func makeCertificates(
        in directory: String
    ) throws -> TLSServerConfiguration {
        let now = RealClock.wallMilliseconds / 1_000
        let authority = try CertificateAuthority.make(
            commonName: "Stratus benchmark", now: now, validSeconds: 86_400)
        let identity = try authority.issue(
            .init(
                commonName: "localhost", dnsNames: ["localhost"], addresses: ["127.0.0.1"],
                purpose: .server, now: now, validSeconds: 86_400))
        Self.write(authority.identity.certificatePEM, to: "\(directory)/ca.pem")
        Self.write(identity.certificatePEM, to: "\(directory)/server.pem")
        Self.write(identity.privateKeyPEM, to: "\(directory)/server.key")
        return TLSServerConfiguration(identity: identity)
    }

    static func write(_ bytes: Bytes, to path: String) {
        guard let file = fopen(path, "w") else { return print("cannot write \(path)") }
        fwrite(bytes, 1, bytes.count, file)
        fclose(file)
    }
}

private struct FixedAnswer: HTTPHandler {
    private let body = Bytes(repeating: UInt8(ascii: "a"), count: 300)

    func plan(for head: RequestHead) -> RequestPlan {
        RequestPlan(bodySizeMax: .mebibytes(16)) { await self.respond(to: $0) }
    }

    func respond(to request: HTTPRequest) async -> HTTPResponse {
        guard (try? await request.body.collect()) != nil else { return HTTPResponse(status: 413) }
        return HTTPResponse(
            status: 200, headers: ["content-type": "text/plain"], body: .bytes(self.body))
    }
}
