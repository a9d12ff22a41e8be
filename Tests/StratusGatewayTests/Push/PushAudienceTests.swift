import StratusAdmin
import StratusCluster
import StratusDoubles
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusPush
import StratusRecords
import StratusRuntime
import StratusSealing
import Synchronization
import Testing

@testable import StratusGateway
@testable import WireScenarios

/// What administrators see of a user's devices, and the test push.
@Suite struct PushAudienceTests {
    private struct Stage {
        let wire: InProcess
        let caller: Caller
        let desk: PushDesk
        let user: String
        var container: ContainerReference {
            ContainerReference(container: self.caller.container, environment: .development)
        }
        var deadline: MonotonicTime { self.wire.world.now + .seconds(5) }

        init() async throws {
            self.wire = InProcess()
            self.caller = Caller(wire: self.wire, container: try await self.wire.makeContainer())
            try await self.caller.makeZone("Shelves")
            self.desk = PushDesk(
                partitions: PartitionClient(self.wire.router, in: self.wire.world),
                tokenKey: Bytes(repeating: 9, count: 32), authenticator: nil,
                keys: self.wire.pushKeys,
                settings: PushDesk.Settings(
                    productionURL: "https://production.example.org",
                    developmentURL: "https://development.example.org", allowsPrivate: false))
            self.user = try #require(
                try await self.caller.ask("public/users/caller", [:])["userRecordName"].text)
            _ = try await self.wire.pushKeys.add(
                team: "DEF123GHIJ", key: "ABC123DEFG", topics: ["org.a"], SigningKey.make(),
                to: self.container)
        }

        func register(_ byte: String) async throws {
            _ = try await self.caller.ask(
                "private/tokens/register",
                ["apnsToken": .string(String(repeating: byte, count: 32)), "topic": "org.a"])
        }

        func devices() async throws -> [PushDevice] {
            try await self.desk.devices(
                of: self.user, in: self.container, until: self.deadline)
        }

        func explain(
            _ record: String, zone: String = "Shelves", _ change: PushQuestion.Change = .update
        ) async throws -> PushExplanation {
            try await self.desk.explain(
                PushQuestion(
                    container: self.container, user: self.user, isPublic: false, zone: zone,
                    record: record, change: change), until: self.deadline)
        }

        func trial(_ name: String) async throws -> PreparedPush {
            try await self.desk.trial(
                "Hello", to: name, of: self.user, in: self.container, until: self.deadline)
        }
    }

    private static let query: JSON = [
        "subscriptionID": "books", "subscriptionType": "query", "query": ["recordType": "Book"],
        "firesOn": ["create"],
    ]

    @Test func `a user's devices are listed with what stands in their way`() async throws {
        let stage = try await Stage()
        #expect(try await stage.devices().isEmpty)
        try await stage.register("ab")
        _ = try await stage.caller.ask(
            "private/tokens/create", ["apnsEnvironment": "development"])
        var devices = try await stage.devices()
        #expect(Set(devices.map(\.kind)) == [.apns, .poll])
        #expect(devices.allSatisfy { $0.trouble == nil && $0.behind == 0 })
        let apns = try #require(devices.first { $0.kind == .apns })
        #expect(apns.topic == "org.a" && apns.registeredAt != nil)
        try await stage.wire.pushKeys.pause(true, stage.container)
        stage.wire.world.advance(by: .seconds(2))
        devices = try await stage.devices()
        #expect(devices.first { $0.kind == .apns }?.trouble?.contains("paused") == true)
        #expect(devices.first { $0.kind == .poll }?.trouble == nil)
        try await stage.wire.pushKeys.pause(false, stage.container)
        _ = try await stage.wire.pushKeys.remove(
            team: "DEF123GHIJ", key: "ABC123DEFG", from: stage.container)
        stage.wire.world.advance(by: .seconds(2))
        #expect(try await stage.devices().contains { $0.trouble?.contains("no key") == true })
        // Another user of the container takes the device over.
        _ = try await stage.wire.pushKeys.add(
            team: "DEF123GHIJ", key: "ABC123DEFG", topics: ["org.a"], SigningKey.make(),
            to: stage.container)
        stage.wire.world.advance(by: .seconds(2))
        _ = try await stage.caller.acting(as: .other("x")).ask(
            "private/tokens/register",
            ["apnsToken": .string(String(repeating: "ab", count: 32)), "topic": "org.a"])
        #expect(try await stage.devices().contains { $0.trouble?.contains("somebody") == true })
    }

    @Test func `an explanation names what keeps a change from a device`() async throws {
        let stage = try await Stage()
        _ = try await stage.caller.ask(
            "private/subscriptions/modify",
            ["operations": [["operationType": "create", "subscription": Self.query]]])
        try await stage.caller.create("a", in: ["zoneName": "Shelves"])
        let alone = try await stage.explain("a", .create)
        #expect(alone.findings.map(\.fires) == [true] && !alone.reaches && alone.hasRecord)
        try await stage.register("ab")
        #expect(try await stage.explain("a", .create).reaches)
        let update = try await stage.explain("a")
        #expect(update.findings.map(\.why) == ["its 'firesOn' has no 'update'"])
        #expect(!update.reaches)
        let missing = try await stage.explain("b", .create)
        #expect(!missing.hasRecord && !missing.reaches)
    }

    @Test func `a test push goes to one device and moves nothing`() async throws {
        let stage = try await Stage()
        try await stage.register("ab")
        let push = try await stage.trial("")
        guard case .apns(let request, _, _) = push.way else {
            Issue.record("not a push of APNs")
            return
        }
        let payload = try JSON(parsing: request.payload)
        #expect(payload["aps"]["alert"]["body"] == "Hello")
        #expect(payload["ck"]["met"]["sid"] == "stratusctl" && push.isAlert)
        let other = try await stage.trial("")
        guard case .apns(let second, _, _) = other.way else { return }
        #expect(second.identifier != request.identifier)
        await #expect(throws: PushDesk.TrialRefusal.unknown) { try await stage.trial("zz") }
        try await stage.register("cd")
        await #expect(throws: PushDesk.TrialRefusal.ambiguous) { try await stage.trial("") }
        let name = Hexadecimal.text(try #require(try await stage.devices().first).token)
        #expect(try await stage.trial(String(name.prefix(16)).uppercased()).isAlert)
        try await stage.wire.pushKeys.pause(true, stage.container)
        stage.wire.world.advance(by: .seconds(2))
        await #expect(throws: PushDesk.TrialRefusal.self) { try await stage.trial(name) }
    }

    /// Counts what an administrator sends.
    private final class Sender: PushControl {
        let keys: PushKeys
        private let count = Mutex(0)
        var sentCount: Int { self.count.withLock { $0 } }

        init(_ keys: PushKeys) { self.keys = keys }

        func standing() async -> PushStanding {
            PushStanding(activeCount: 0, restingCount: 0, lanes: [])
        }
        func trace(_ ask: PushTrail.Ask) async -> [PushTrail.Entry] { [] }
        func check(
            _ key: PushKeys.APNsKey, topic: String, of container: ContainerReference,
            in environment: Environment
        ) async -> PushCheck { PushCheck(isGood: true, answer: "") }
        func devices(
            of user: String, in container: ContainerReference
        ) async throws -> [PushDevice] { [] }
        func explain(_ question: PushQuestion) async throws -> PushExplanation {
            throw RouteError.notExecuted(retryAfter: .seconds(1))
        }
        func send(
            _ text: String, to name: String, of user: String, in container: ContainerReference
        ) async throws -> PushTrial {
            self.count.withLock { $0 += 1 }
            return .sent(device: [1], lane: "apns", isAccepted: true, answer: "accepted")
        }
    }

    @Test(arguments: [false, true])
    func `a push by hand leaves behind its note in the trail, or not at all`(
        isTrailAway: Bool
    ) async throws {
        let town = Neighbourhood()
        let container = Neighbourhood.container
        _ = try await town.authenticator.registry.create(container)
        let sender = Sender(InProcess.pushKeys(town.router, town.world))
        let handler = AdminHandler(
            control: EncryptionKeyPageTests.NoControl(), health: Health(), metrics: Metrics(),
            log: Log(level: .error, format: .json) { $0.count },
            settings: AdminHandler.Settings(isToken: { _ in true }),
            directory: town.service.directory, push: sender)
        if isTrailAway { town.router.away.withLock { $0 = [.account("audit")] } }
        let answer = await handler.respond(
            to: HTTPRequest(
                head: RequestHead(
                    method: "POST",
                    path: "/v1/containers/\(container.container)/environments/"
                        + "\(container.environment.name)/push/send",
                    query: nil,
                    headers: HeaderFields([
                        HeaderFields.Line(name: "authorization", value: "Bearer x")
                    ])),
                body: CollectedBody(Bytes(#"{"user": "_ann", "alert": "Hello"}"#.utf8)),
                peer: "127.0.0.1:9", identity: RequestIdentity(high: 1, low: 2)))
        #expect((answer.status == 200) == !isTrailAway, "\(answer.status)")
        #expect(sender.sentCount == (isTrailAway ? 0 : 1))
    }
}
