import StratusHTTP
import StratusModel
import StratusRuntime
import Testing

@testable import StratusGateway
@testable import WireScenarios

/// What clients are answered, over sockets, where a node has too few places for all who wait.
@Suite struct HeldPlacesTests {
    /// A server over a gateway, and a client for each request.
    private final class Stand: Sendable {
        let wire: InProcess
        private let loops: [EventLoop]
        private let server: HTTPServer
        private let address: SocketAddress

        init(_ settings: GatewaySettings) async throws {
            self.wire = InProcess(settings: settings)
            self.loops = EventLoop.group(count: 2, name: "test")
            self.server = HTTPServer(
                configuration: HTTPServerConfiguration(
                    listeners: [.init(.ip("127.0.0.1", port: 0))]),
                loops: [self.loops[0]], world: self.wire.world, handler: self.wire.handler)
            self.address = try await self.server.start()[0]
        }

        var held: HeldRequests { self.wire.handler.kernel.held }

        func stop() async {
            await self.server.stop(deadline: .zero)
            for loop in self.loops { loop.stop() }
        }

        func open(_ method: String, _ target: String, _ body: JSON? = nil) async throws
            -> HTTPClientResponse
        {
            let client = HTTPClient(
                HTTPEndpoint([self.address], host: "x"), loop: self.loops[1], idleCountMax: 0)
            return try await client.open(
                HTTPClientRequest(
                    method: method, target: target,
                    body: .bytes(body.map { Bytes($0.description.utf8) } ?? [])),
                deadline: .seconds(300))
        }

        func ask(_ method: String, _ target: String, _ body: JSON? = nil) async throws -> Answer {
            let response = try await self.open(method, target, body)
            var bytes: Bytes = []
            while let piece = try await response.next() { bytes += piece }
            return Answer(
                status: response.head.status, retryAfter: response.head.headers["Retry-After"],
                text: String(decoding: bytes, as: UTF8.self))
        }

        /// A user of a container of their own.
        func caller(_ name: String, in container: String? = nil) async throws -> Caller {
            let container =
                if let container { container } else { try await self.wire.makeContainer() }
            return Caller(wire: self.wire, container: container).acting(as: .other(name))
        }

        /// The target of a poll of a new token.
        func poll(_ caller: Caller) async throws -> String {
            let answer = try await caller.ask(
                "private/tokens/create", ["apnsEnvironment": "development"])
            let url = try #require(answer["webcourierURL"].text)
            return "/aps?" + String(try #require(url.split(separator: "?").last))
        }

        func target(_ caller: Caller, _ operation: String, in service: String) -> String {
            caller.target("private/\(operation)")
                .replacing("/database/1/", with: "/\(service)/1/").replacing("/private/", with: "/")
        }

        /// A request that waits for changes of a key-value store.
        func wait(_ caller: Caller, device: String) async throws -> Task<Answer, any Error> {
            let target = self.target(caller, "sync", in: "kvs")
            let first = try JSON(
                parsing: Bytes(
                    try await self.ask("POST", target, ["device": .string(device)]).text.utf8))
            let before = self.held.waits.size + Int(self.held.waits.endedCount)
            let task = Task {
                try await self.ask(
                    "POST", target,
                    [
                        "device": .string(device), "token": .string(first["token"].text ?? ""),
                        "wait": 55,
                    ])
            }
            try await self.until(task) {
                self.held.waits.size + Int(self.held.waits.endedCount) > before
            }
            return task
        }

        func hold(_ target: String) async throws -> Task<Answer, any Error> {
            let before = self.held.waits.size + Int(self.held.waits.endedCount)
            let task = Task { try await self.ask("GET", target) }
            try await self.until(task) {
                self.held.waits.size + Int(self.held.waits.endedCount) > before
            }
            return task
        }

        private func until(
            _ task: Task<Answer, any Error>, _ condition: () -> Bool
        ) async throws {
            for _ in 0..<20_000 where !condition() { try await Task.sleep(for: .milliseconds(1)) }
            #expect(condition())
        }
    }

    struct Answer: Sendable, Equatable {
        var status: Int
        var retryAfter: String?
        var text: String

        func isCrowded() throws -> Bool {
            let json = try JSON(parsing: Bytes(self.text.utf8))
            return self.status == 503 && self.retryAfter == "30"
                && json["serverErrorCode"] == "TRY_AGAIN_LATER" && json["retryAfter"] == 30
                && json["reason"] == "too many held requests"
        }
    }

    private static func settings(_ body: (inout GatewaySettings) -> Void) -> GatewaySettings {
        var settings = GatewaySettings()
        body(&settings)
        return settings
    }

    private static func eventually(_ condition: () -> Bool) async throws {
        for _ in 0..<20_000 where !condition() { try await Task.sleep(for: .milliseconds(1)) }
        #expect(condition())
    }

    @Test func `polls and waits of one give way to those of another container, the oldest first`()
        async throws
    {
        let stand = try await Stand(Self.settings { $0.heldRequestCountMax = 8 })
        let attacker = try await stand.caller("attacker")
        let poll = try await stand.hold(try await stand.poll(attacker))
        var waits: [Task<Answer, any Error>] = []
        for number in 0..<7 {
            waits.append(try await stand.wait(attacker, device: "d\(number)"))
        }
        #expect(stand.held.waits.size == 8 && stand.held.waits.endedCount == 0)
        // The node is full: whoever has it all gets no more.
        let more = try await stand.ask("GET", try await stand.poll(attacker))
        #expect(try more.isCrowded(), "\(more)")
        // A container has one of eight, and takes it from the oldest: a poll ends as it does when
        // there is nothing.
        let other = try await stand.caller("other")
        let honest = try await stand.hold(try await stand.poll(other))
        #expect(try await poll.value == Answer(status: 200, text: "null\n"))
        let second = try await stand.ask("GET", try await stand.poll(other))
        #expect(try second.isCrowded(), "\(second)")
        // A third one takes it from the oldest wait, which answers what it had.
        let third = try await stand.caller("third")
        let waiting = try await stand.wait(third, device: "d")
        let ended = try await waits[0].value
        #expect(ended.status == 200)
        let json = try JSON(parsing: Bytes(ended.text.utf8))
        #expect(json["reason"] == "none" && json["changes"].elements.isEmpty, "\(ended)")
        #expect(json["token"].text?.isEmpty == false)
        #expect(stand.held.waits.size == 8 && stand.held.waits.endedCount == 2)
        let figures = stand.held.figures[0]
        #expect(figures.kind == "wait" && figures.size() == 8 && figures.endedCount() == 2)
        // Those that have a place are told as ever.
        _ = try await other.ask(
            "private/subscriptions/modify",
            [
                "operations": [
                    [
                        "operationType": "create",
                        "subscription": [
                            "subscriptionID": "q", "subscriptionType": "query",
                            "query": ["recordType": "Book"], "firesOn": ["create"],
                        ],
                    ]
                ]
            ])
        try await other.create("a")
        #expect(try await honest.value.text.contains(#""rid":"a""#))
        try await Self.eventually { stand.held.waits.size == 7 }
        waiting.cancel()
        for wait in waits { wait.cancel() }
        await stand.stop()
    }

    @Test func `in one container a user's waits give way to another user's`() async throws {
        let stand = try await Stand(Self.settings { $0.heldRequestCountMax = 4 })
        let attacker = try await stand.caller("attacker")
        var waits: [Task<Answer, any Error>] = []
        for number in 0..<4 {
            waits.append(try await stand.wait(attacker, device: "d\(number)"))
        }
        let other = try await stand.caller("other", in: attacker.container)
        for number in 0..<2 {
            waits.append(try await stand.wait(other, device: "d\(number)"))
            #expect(try await waits[number].value.status == 200)
        }
        let third = try await stand.ask("GET", try await stand.poll(other))
        #expect(try third.isCrowded(), "\(third)")
        for wait in waits { wait.cancel() }
        await stand.stop()
    }

    @Test func `a stream that gives way says when to come back, and loses nothing`() async throws {
        let stand = try await Stand(
            Self.settings {
                $0.liveStreamCountMax = 8
                $0.userLiveStreamCountMax = 3
            })
        let container = try await stand.wire.makeContainer()
        var streams: [HTTPClientResponse] = []
        for user in 0..<3 {
            let caller = try await stand.caller("a\(user)", in: container)
            try await caller.makeZone("Shelves")
            for _ in 0..<(user == 2 ? 2 : 3) {
                streams.append(
                    try await stand.open(
                        "GET", caller.target("private/live", query: "zone=Shelves&database=1")))
            }
            if user == 0 {
                let fourth = try await stand.ask(
                    "GET", caller.target("private/live", query: "database=1"))
                #expect(fourth.status == 429 && fourth.retryAfter == "30")
            }
        }
        #expect(streams.allSatisfy { $0.head.status == 200 })
        let oldest = streams[0]
        #expect(try await oldest.next() == Bytes("retry: 1000\n\n".utf8))
        var begun = ""
        while !(begun.contains("event: zones") && begun.contains("event: changes")) {
            begun += String(decoding: try #require(try await oldest.next()), as: UTF8.self)
        }
        let other = try await stand.caller("other")
        let newcomer = try await stand.open(
            "GET", other.target("private/live", query: "database=1"))
        #expect(newcomer.head.status == 200)
        #expect(try await oldest.next() == Bytes("retry: 30000\n\n".utf8))
        #expect(try await oldest.next() == nil)
        #expect(stand.held.streams.size == 8 && stand.held.streams.endedCount == 1)
        let second = try await stand.ask(
            "GET", other.target("private/live", query: "database=1"))
        #expect(second.status == 503 && second.retryAfter == "30")
        // What happened meanwhile is told behind the last ID, once there is room.
        let caller = try await stand.caller("a0", in: container)
        try await caller.create("book", in: ["zoneName": "Shelves"])
        for stream in streams[1...] { await stream.abandon() }
        try await Self.eventually { stand.held.streams.size == 1 }
        let id = try #require(
            begun.split(separator: "\n").last { $0.hasPrefix("id: ") }?.dropFirst(4))
        let again = try await stand.open(
            "GET",
            caller.target(
                "private/live",
                query: "zone=Shelves&database=1&lastEventID="
                    + id.replacing("+", with: "%2B").replacing("/", with: "%2F")
                    .replacing("=", with: "%3D").replacing(",", with: "%2C")))
        var told = ""
        while !told.contains("event: changes") {
            told += String(decoding: try #require(try await again.next()), as: UTF8.self)
        }
        #expect(told.contains(#""recordName":"book""#), "\(told)")
        await again.abandon()
        await newcomer.abandon()
        await stand.stop()
    }

    @Test func `polls of strangers have places of their own, by their addresses`() async throws {
        let wire = InProcess()
        let held = wire.handler.kernel.held
        func poll(from peer: String) -> Task<Int, Never> {
            Task {
                await wire.handler.respond(
                    to: HTTPRequest(
                        head: RequestHead(method: "GET", path: "/aps", query: "tok=abc"),
                        body: CollectedBody([]), peer: peer,
                        identity: RequestIdentity(high: 1, low: 2), patience: .held)
                ).status
            }
        }
        var polls: [Task<Int, Never>] = []
        for number in 1...256 {
            polls.append(poll(from: "192.0.2.1:\(number)"))
            try await Self.eventually { held.strangers.size == number }
        }
        // One more of that address is answered at once; another address has 32 for sure.
        #expect(await poll(from: "192.0.2.1:1").value == 410)
        for number in 0..<32 {
            polls.append(poll(from: "192.0.2.2:1"))
            #expect(await polls[number].value == 410)
        }
        #expect(await poll(from: "192.0.2.2:1").value == 410)
        #expect(held.strangers.size == 256 && held.strangers.endedCount == 32)
        for poll in polls { poll.cancel() }
        for poll in polls { #expect(await poll.value == 410) }
        #expect(held.strangers.size == 0 && held.waits.size == 0 && held.count == 0)
    }
}
