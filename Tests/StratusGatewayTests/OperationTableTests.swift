import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime
import Synchronization
import Testing
import WireScenarios

@testable import StratusGateway

/// The change "add an operation": a service of its own with a list of its own, called through the
/// handler.
@Suite struct OperationTableTests {
    /// An example of a new service: a value that holds the exchange, and its list.
    private struct EchoService {
        let exchange: Exchange

        static let service = GatewayService(root: "/echo/1/", namesDatabase: false)
        static let operations = [
            GatewayOperation(
                "greet", of: service, methods: [.get, .post], in: .public, needs: .user
            ) {
                try EchoService(exchange: $0).greet($1)
            },
            GatewayOperation(
                "files/*", of: service, methods: .put, in: .public, needs: .user,
                patience: .total(.seconds(3_600)),
                .pulled(sizeMax: .mebibytes(1_024)) {
                    try await EchoService(exchange: $0).weigh($1)
                }),
            // Beneath a database, with an answer that is never in memory whole.
            GatewayOperation(
                "echo/stream", methods: .get, in: .private, needs: .reader, patience: .held,
                .collected { _, _ in
                    .stream(Numbers(count: 1_000), length: nil, contentType: "text/plain")
                }),
        ]

        func greet(_ input: Input) throws -> Bytes {
            var writer = JSONWriter()
            let name = try input.string("name") ?? "nobody"
            writer.object { $0.member("greeting", "hello \(name)") }
            return writer.finish()
        }

        func weigh(_ body: any RequestBody) async throws -> GatewayAnswer {
            var size = 0
            while let piece = try await body.next() { size += piece.count }
            var writer = JSONWriter()
            writer.object {
                $0.member("size", Int64(size))
                $0.member("path", self.exchange.route.rest)
            }
            return .json(writer.finish())
        }
    }

    /// Lines of text, made when they are pulled.
    private final class Numbers: ResponseBody {
        private let count: Int
        private let position = Atomic(0)

        init(count: Int) { self.count = count }

        func next() async throws -> Bytes? {
            let number = self.position.add(1, ordering: .relaxed).oldValue
            return number < self.count ? Bytes("\(number)\n".utf8) : nil
        }
    }

    /// A body that exists only piece by piece.
    private final class LongBody: RequestBody {
        private let piece: Int
        private let left: Atomic<Int>

        init(pieces: Int, of size: Int) {
            self.piece = size
            self.left = Atomic(pieces)
        }

        func next() async throws(RequestBodyError) -> Bytes? {
            guard self.left.subtract(1, ordering: .relaxed).oldValue > 0 else { return nil }
            return Bytes(repeating: 7, count: self.piece)
        }

        var isUntouched: Bool { self.left.load(ordering: .relaxed) == 256 }
    }

    private static let table = OperationTable(
        OperationTable.standard().operations, EchoService.operations)
    private static let echo = "/echo/1/iCloud.a/development/"
    private static let user = "ckAPIToken=\(String(repeating: "a", count: 64))&ckWebAuthToken=u"
    private static let apiToken = "ckAPIToken=\(String(repeating: "a", count: 64))"

    private func ask(
        _ handler: Gateway, _ method: String, _ path: String, as query: String = Self.user,
        _ body: any RequestBody = CollectedBody([])
    ) async -> HTTPResponse {
        await handler.respond(
            to: HTTPRequest(
                head: RequestHead(method: method, path: path, query: query), body: body,
                peer: "test", identity: RequestIdentity(high: 1, low: 2)))
    }

    private func text(_ response: HTTPResponse) async throws -> String {
        switch response.body {
        case .empty: return ""
        case .bytes(let bytes): return String(decoding: bytes, as: UTF8.self)
        case .stream(let stream, _):
            var whole: Bytes = []
            while let piece = try await stream.next() { whole += piece }
            return String(decoding: whole, as: UTF8.self)
        }
    }

    @Test func `an operation of one's own takes an object and answers with one`() async throws {
        let handler = InProcess(operations: Self.table).handler
        let answer = await self.ask(
            handler, "POST", Self.echo + "greet", CollectedBody(Bytes(#"{"name":"Ada"}"#.utf8)))
        #expect(answer.status == 200)
        #expect(answer.headers["Content-Type"] == "application/json; charset=UTF-8")
        #expect(try await self.text(answer) == #"{"greeting":"hello Ada"}"#)
        // The table's own columns: what it needs, which methods it takes, who else knows it.
        let stranger = await self.ask(handler, "GET", Self.echo + "greet", as: Self.apiToken)
        #expect(stranger.status == 421)
        let wrong = await self.ask(handler, "PUT", Self.echo + "greet")
        #expect(try await self.text(wrong).contains("echo/greet does not take PUT"))
        let unknown = await self.ask(handler, "POST", Self.echo + "shout")
        #expect(unknown.status == 404)
        let standard = await self.ask(InProcess().handler, "POST", Self.echo + "greet")
        #expect(standard.status == 404)
    }

    @Test func `a body larger than any buffer is pulled, and nothing of it is held`() async throws {
        var limits = Limits()
        limits.requestSizeMax = .kibibytes(64)
        limits.bufferedBodySizeMax = .mebibytes(1)
        let handler = InProcess(limits: limits, operations: Self.table).handler
        let answer = await self.ask(
            handler, "PUT", Self.echo + "files/a/b%20c", LongBody(pieces: 256, of: 1 << 20))
        #expect(answer.status == 200)
        #expect(try await self.text(answer) == #"{"size":268435456,"path":"a/b%20c"}"#)
        func limit(_ path: String) -> ByteCount {
            handler.bodyLimit(for: RequestHead(method: "PUT", path: path))
        }
        #expect(limit(Self.echo + "files/a") == .mebibytes(1_024))
        #expect(limit(Self.echo + "greet") == .kibibytes(64))
        #expect(limit(Self.echo + "files") == .kibibytes(64))
    }

    @Test func `who may not call an operation sends its body for nothing`() async throws {
        let handler = InProcess(operations: Self.table).handler
        let body = LongBody(pieces: 256, of: 1 << 20)
        let answer = await self.ask(
            handler, "PUT", Self.echo + "files/a", as: Self.apiToken, body)
        #expect(answer.status == 421)
        #expect(body.isUntouched)
    }

    @Test func `a signature covers a whole body, so a signed one is read first and bounded`()
        async throws
    {
        var limits = Limits()
        limits.requestSizeMax = .kibibytes(64)
        let wire = InProcess(
            limits: limits, authenticator: Signatures(), operations: Self.table)
        let small = await self.ask(
            wire.handler, "PUT", Self.echo + "files/a", LongBody(pieces: 3, of: 1_000))
        #expect(try await self.text(small) == #"{"size":3000,"path":"a"}"#)
        let large = await self.ask(
            wire.handler, "PUT", Self.echo + "files/a", LongBody(pieces: 256, of: 1 << 20))
        #expect(large.status == 413)
    }

    @Test func `an answer is pulled as its client takes it`() async throws {
        let handler = InProcess(operations: Self.table).handler
        let answer = await self.ask(
            handler, "GET", "/database/1/iCloud.a/development/private/echo/stream")
        #expect(answer.status == 200)
        #expect(answer.headers["Content-Type"] == "text/plain")
        #expect(answer.headers["Cache-Control"] == "no-store")
        #expect(
            try await self.text(answer)
                == (0..<1_000).map { "\($0)\n" }.joined())
    }

    @Test func `labels are a fixed set, and each is said once`() throws {
        let labels = Self.table.operations.map(\.label)
        #expect(Set(labels).count == labels.count)
        #expect(labels.contains("echo/greet") && labels.contains("echo/files/*"))
        #expect(try Self.table.route(of: Self.echo + "files/a/b").operation.label == "echo/files/*")
        #expect(
            try Self.table.route(of: Self.echo + "files/a").operation.patience
                == .total(.seconds(3_600)))
        // What waits for a change bounds its wait by itself.
        let held = OperationTable.standard().operations.filter(\.patience.isHeld)
        #expect(held.map(\.label) == ["live", "kvs/sync", "documents/changes"])
    }

    @Test func `a stream lets no body in, which it would hold as long as it lasts`() throws {
        let live = try #require(OperationTable.standard().operations.first { $0.label == "live" })
        #expect(live.bodySizeMax(Limits()) == .kibibytes(1))
        guard case .pulled = live.action else {
            Issue.record("the body is collected")
            return
        }
    }
}

/// Lets everybody in as one user whose requests are signed.
private struct Signatures: Authenticator {
    func needsBody(_ head: RequestHead) -> Bool { true }

    func authenticate(_ request: PresentedRequest) async throws(AuthenticationRefusal)
        -> Authentication
    {
        Authentication(principal: Principal(kind: .user, userRecordName: "_anybody"))
    }

    func refusalWithoutUser(_ request: PresentedRequest) async -> AuthenticationRefusal {
        .required(redirectURL: "")
    }
}
