import StratusCluster
import StratusContainers
import StratusDoubles
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRuntime
import Synchronization
import Testing

@testable import StratusGateway
@testable import WireScenarios

/// The key-value store over the wire: one user's devices.
@Suite struct KeyValueGatewayTests {
    private struct Device {
        let wire: InProcess
        let caller: Caller
        let name: String
        /// How far its clock is off.
        var offset: Int64 = 0
        var batch = 0
        var token: String?

        init(_ wire: InProcess, _ caller: Caller, _ name: String) {
            (self.wire, self.caller, self.name) = (wire, caller, name)
        }

        func send(
            _ method: String, _ path: String, _ body: JSON? = nil
        ) async throws -> WireAnswer {
            try await KeyValueGatewayTests.send(self.wire, self.caller, method, path, body)
        }

        mutating func sync(
            _ changes: [JSON] = [], _ more: JSON = [:]
        ) async throws -> JSON {
            var body = more.setting("device", more["device"] ?? .string(self.name))
            if let token { body = body.setting("token", .string(token)) }
            if !changes.isEmpty {
                self.batch += 1
                let now = self.wire.world.wallMilliseconds + self.offset
                body = body.setting("batch", .number("\(self.batch)"))
                    .setting("now", .number("\(now)")).setting("changes", .array(changes))
            }
            let answer = try await self.send("POST", "kvs/1/sync", body)
            #expect(answer.status == 200, "\(answer)")
            let json = try JSON(parsing: answer.body)
            self.token = json["token"].text
            return json
        }

        func set(_ key: String, _ value: JSON, ago: Int64 = 0) -> JSON {
            let at = self.wire.world.wallMilliseconds + self.offset - ago
            return ["key": .string(key), "at": .number("\(at)"), "value": value]
        }
    }

    private static func send(
        _ wire: InProcess, _ caller: Caller, _ method: String, _ path: String, _ body: JSON? = nil
    ) async throws -> WireAnswer {
        let parts = path.split(separator: "/")
        let target = caller.target("private/\(parts[2])")
            .replacing("/database/1/", with: "/\(parts[0])/1/").replacing("/private/", with: "/")
        return try await wire.send(
            WireRequest(
                method: method, target: target, headers: [],
                body: body.map { Array($0.description.utf8) } ?? []))
    }

    private static func device(
        _ name: String = "phone", settings: GatewaySettings = GatewaySettings(),
        limits: Limits = Limits()
    ) async throws -> Device {
        let wire = InProcess(settings: settings, limits: limits)
        return Device(wire, Caller(wire: wire, container: try await wire.makeContainer()), name)
    }

    @Test func `what one device sets the other hears, by ages and not by clocks`() async throws {
        var phone = try await Self.device()
        var watch = Device(phone.wire, phone.caller, "watch")
        phone.offset = 365 * 86_400_000
        watch.offset = -365 * 86_400_000
        let first = try await phone.sync()
        #expect(first["reason"] == "initialSync" && first["changes"].elements.isEmpty)
        _ = try await watch.sync()
        let values: [(String, JSON)] = [
            ("a", ["string": "é\u{0}"]), ("b", ["integer": 9_007_199_254_740_993]),
            ("c", ["real": 0.5]), ("d", ["boolean": true]), ("e", ["date": -5]),
            ("f", ["data": "AP8="]),
            ("g", ["array": [["integer": 1], ["dictionary": ["k": ["array": []]]]]]),
        ]
        let set = try await phone.sync(values.map { phone.set($0, $1) })
        // What stands because the device brought it is no news to it.
        #expect(set["reason"] == "none" && set["changes"].elements.isEmpty, "\(set)")
        #expect(set["refused"].elements.isEmpty && set["usage"]["keys"] == 7)
        let heard = try await watch.sync()
        #expect(heard["reason"] == "serverChange")
        #expect(heard["changes"].elements.map { $0["key"].text } == values.map(\.0))
        #expect(heard["changes"].elements.compactMap { $0["value"] } == values.map(\.1))
        // The watch's change is the younger one, although its clock is two years behind.
        phone.wire.world.advance(by: .seconds(1))
        let younger = watch.set("a", ["string": "younger"])
        phone.wire.world.advance(by: .seconds(60))
        #expect(
            try await phone.sync([phone.set("a", ["string": "older"], ago: 61_500)])["reason"]
                == "none")
        #expect(try await watch.sync([younger])["changes"].elements.isEmpty)
        let told = try await phone.sync()
        #expect(told["changes"][0]["value"]["string"].text == "younger")
        let all = try await phone.send("GET", "kvs/1/values")
        let document = try JSON(parsing: all.body)
        #expect(document["values"].keys == ["a", "b", "c", "d", "e", "f", "g"])
        #expect(document["token"].text == phone.token)
    }

    /// One batch waits for a leader, and another one does not.
    @Test func `a change keeps its place though it waited for a leader`() async throws {
        var phone = try await Self.device()
        var watch = Device(phone.wire, phone.caller, "watch")
        _ = try await phone.sync([phone.set("theme", ["string": "first"])])
        let (wire, early) = (phone.wire, phone.set("theme", ["string": "early"]))
        let left = Mutex(8)
        wire.router.beforeSubmit.withLock { hook in
            hook = { _ in
                let isAway = left.withLock { left in
                    left -= 1
                    return left >= 0
                }
                guard isAway else { return nil }
                wire.world.advance(by: KeyValueService.proposalPatience)
                // The last one may have arrived: the same command is sent again.
                return left.withLock { $0 } == 0
                    ? .outcomeUnknown : .notExecuted(retryAfter: .milliseconds(100))
            }
        }
        _ = try await phone.sync([early])
        wire.router.beforeSubmit.withLock { $0 = nil }
        // Made a second after the other one, which arrived two seconds after it was made.
        let late = watch.set("theme", ["string": "late"], ago: 1_000)
        _ = try await watch.sync()
        #expect(try await watch.sync([late])["changes"].elements.isEmpty)
        #expect(try await phone.sync()["changes"][0]["value"]["string"].text == "late")
    }

    @Test func `32 levels are 32, and a key that is wrong costs no other`() async throws {
        var phone = try await Self.device()
        _ = try await phone.sync()
        func nested(_ levels: Int) -> JSON {
            var value: JSON = ["integer": 1]
            for _ in 1..<levels { value = ["array": [value]] }
            return value
        }
        let answer = try await phone.sync([
            phone.set("32", nested(32)), phone.set("33", nested(33)),
            phone.set("500", nested(500)), ["key": "untimed", "value": ["integer": 1]],
            ["at": 1, "value": ["integer": 1]], ["key": "flag", "at": 1, "removed": "perhaps"],
            phone.set("good", ["string": "x"]),
        ])
        let refused = answer["refused"].elements
        #expect(
            refused.map { $0["key"].text } == ["33", "500", "untimed", "", "flag"], "\(answer)")
        #expect(refused.allSatisfy { $0["serverErrorCode"] == "BAD_REQUEST" })
        #expect(refused[1]["reason"].text?.isEmpty == false)
        let all = try JSON(parsing: try await phone.send("GET", "kvs/1/values").body)
        #expect(all["values"].keys == ["32", "good"])
        #expect(all["values"]["32"] == nested(32))
    }

    @Test func `the loser of a race is told the winner, even one that it has heard of`()
        async throws
    {
        var phone = try await Self.device()
        var watch = Device(phone.wire, phone.caller, "watch")
        _ = try await phone.sync()
        _ = try await watch.sync()
        let late = phone.set("k", ["integer": 1])
        phone.wire.world.advance(by: .seconds(5))
        _ = try await watch.sync([watch.set("k", ["integer": 2])])
        // It hears of the winner while its own change still waits.
        #expect(try await phone.sync()["changes"][0]["value"]["integer"] == 2)
        let lost = try await phone.sync([late])
        #expect(lost["changes"].elements.count == 1 && lost["refused"].elements.isEmpty)
        #expect(lost["changes"][0]["value"]["integer"] == 2)
    }

    @Test func `a batch that is sent again is not taken again`() async throws {
        var phone = try await Self.device()
        var watch = Device(phone.wire, phone.caller, "watch")
        _ = try await watch.sync()
        _ = try await phone.sync()
        let change = phone.set("k", ["integer": 1])
        _ = try await phone.sync([change])
        phone.wire.world.advance(by: .seconds(1))
        _ = try await watch.sync([watch.set("k", ["integer": 2])])
        phone.batch -= 1
        let again = try await phone.sync([change])
        #expect(again["changes"][0]["value"]["integer"] == 2)
    }

    @Test func `a first sync fills what is absent, and hears everything`() async throws {
        var phone = try await Self.device()
        _ = try await phone.sync([phone.set("k", ["integer": 1])])
        var watch = Device(phone.wire, phone.caller, "watch")
        let first = try await watch.sync([
            watch.set("k", ["integer": 2]), watch.set("l", ["integer": 2]),
        ])
        #expect(first["reason"] == "initialSync")
        #expect(first["changes"].elements.map { $0["value"]["integer"] } == [1, 2])
    }

    @Test func `what is refused keeps its value, and says why`() async throws {
        var limits = Limits()
        limits.keyValueSizeMax = ByteCount(40)
        var phone = try await Self.device(limits: limits)
        _ = try await phone.sync([phone.set("k", ["string": "kept"])])
        let long = String(repeating: "x", count: 60)
        let refused = try await phone.sync([
            phone.set("k", ["string": .string(long)]),
            phone.set("l", ["string": .string(String(repeating: "x", count: 35))]),
            phone.set(long + long, ["integer": 1]), phone.set("m", ["integer": "x"]),
            phone.set("m", 7), phone.set("m", ["integer": 1, "real": 2]),
            phone.set("m", ["data": "?"]), phone.set("m", ["date": 1.5]),
            ["key": "m", "at": 1, "removed": true, "value": ["integer": 1]], ["key": "m", "at": 1],
            phone.set("n", ["integer": 1]),
        ])
        let reasons = refused["refused"].elements
        #expect(
            reasons.map { $0["key"].text } == [long + long] + Array(repeating: "m", count: 7) + [
                "k", "l",
            ])
        #expect(
            reasons.map { $0["serverErrorCode"].text }
                == Array(repeating: "BAD_REQUEST", count: 8) + ["QUOTA_EXCEEDED", "QUOTA_EXCEEDED"])
        #expect(reasons[8]["reason"].text?.hasPrefix("valueTooLarge") == true)
        #expect(reasons[9]["reason"].text?.hasPrefix("storeFull") == true)
        // The client keeps what the server has: the old value, and none.
        #expect(refused["changes"].elements.map { $0["key"].text } == ["k", "l"])
        #expect(refused["changes"][0]["value"]["string"].text == "kept")
        #expect(refused["changes"][1]["removed"] == true)
        #expect(refused["usage"]["bytesMax"] == 40 && refused["usage"]["keys"] == 2)
    }

    @Test(
        arguments: [
            ["device": "a b"], ["device": ""], ["token": 7], ["wait": -1], ["wait": "long"],
            ["changes": [["key": "k", "at": 1]], "now": 1],
            ["changes": [["key": "k", "at": 1]], "batch": 1],
            ["changes": [["key": "k", "at": 1]], "batch": 0, "now": 1],
            ["changes": [1], "batch": 1, "now": 1],
            ["changes": 1], ["identityToken": 1],
        ] as [JSON])
    func `a request of the wrong shape is refused as a whole`(more: JSON) async throws {
        let phone = try await Self.device()
        let body = more["device"] == nil ? more.setting("device", "phone") : more
        let answer = try await phone.send("POST", "kvs/1/sync", body)
        expectFailure(answer, 400, "BAD_REQUEST")
    }

    @Test func `another account's store is never mixed with this one`() async throws {
        var phone = try await Self.device()
        _ = try await phone.sync([phone.set("k", ["integer": 1])])
        let mine = try JSON(parsing: try await phone.send("GET", "ubiquity/1/account").body)
        #expect(mine["available"] == true && mine["keyValue"]["keys"] == 1)
        let identity = try #require(mine["identityToken"].text)
        // The device signs in as somebody else, with the old tokens and waiting changes.
        let other = phone.caller.acting(as: .other("bob"))
        var bob = Device(phone.wire, other, "phone")
        bob.token = phone.token
        let change = try await bob.sync(
            [bob.set("secret", ["integer": 7])], ["identityToken": .string(identity)])
        #expect(change["reason"] == "accountChange" && change["changes"].elements.isEmpty)
        #expect(change["usage"]["keys"] == 0)
        #expect(change["identityToken"].text != identity)
        // A token of another store says nothing of this one.
        bob.token = phone.token
        #expect(try await bob.sync()["reason"] == "initialSync")
        // Without a user there is no account, and no error.
        let nobody = try await Self.send(
            phone.wire, phone.caller.acting(as: .anonymous), "GET", "ubiquity/1/account")
        #expect(nobody.status == 200)
        #expect(try JSON(parsing: nobody.body) == ["available": false])
        let refused = try await Self.send(
            phone.wire, phone.caller.acting(as: .anonymous), "GET", "kvs/1/values")
        #expect(refused.status == 421)
    }

    @Test func `two apps with tokens of one container share its stores`() async throws {
        let town = Neighbourhood()
        _ = try await town.makeContainer()
        let ann = try await town.account("ann@example.org")
        let (free, paid) = (try await town.apiToken(), try await town.apiToken())
        #expect(free != paid)
        func sync(_ api: String, _ user: String, _ body: JSON) async throws -> JSON {
            let path = town.path("private/sync", in: Neighbourhood.container).replacing(
                "/database/1/", with: "/kvs/1/"
            )
            .replacing("/private/", with: "/")
            let answer = try await town.send(
                WireRequest(
                    method: "POST", target: "\(path)?ckAPIToken=\(api)&ckWebAuthToken=\(user)",
                    headers: [], body: Array(body.description.utf8)))
            #expect(answer.status == 200, "\(answer)")
            return try JSON(parsing: answer.body)
        }
        _ = try await sync(
            free, try await town.signIn(ann),
            [
                "device": "mac", "batch": 1, "now": 5,
                "changes": [["key": "k", "at": 5, "value": ["integer": 7]]],
            ])
        let heard = try await sync(paid, try await town.signIn(ann), ["device": "phone"])
        #expect(heard["changes"][0]["value"] == ["integer": 7], "\(heard)")
        let bob = try await town.account("bob@example.org")
        let other = try await sync(paid, try await town.signIn(bob), ["device": "phone"])
        #expect(other["changes"].elements.isEmpty)
    }

    @Test func `a waiting sync answers when another device changes something`() async throws {
        var phone = try await Self.device()
        var watch = Device(phone.wire, phone.caller, "watch")
        _ = try await phone.sync()
        _ = try await watch.sync()
        let waiting = Task { [watch] in
            var watch = watch
            return try await watch.sync([], ["wait": 55])
        }
        while watch.wire.handler.kernel.seats.watchCount == 0 {
            try await Task.sleep(for: .milliseconds(1))
        }
        try await Task.sleep(for: .milliseconds(20))
        _ = try await phone.sync([phone.set("k", ["integer": 1])])
        let heard = try await waiting.value
        #expect(heard["reason"] == "serverChange" && heard["changes"][0]["key"].text == "k")
        #expect(watch.wire.handler.kernel.seats.count == 0)
    }

    @Test func `where nobody may wait any more, values are set all the same`() async throws {
        var settings = GatewaySettings()
        settings.heldRequestCountMax = 1
        var phone = try await Self.device(settings: settings)
        var watch = Device(phone.wire, phone.caller, "watch")
        _ = try await phone.sync()
        _ = try await watch.sync()
        let waiting = Task { [watch] in
            var watch = watch
            return try await watch.sync([], ["wait": 55])
        }
        while phone.wire.handler.kernel.held.waits.size == 0 {
            try await Task.sleep(for: .milliseconds(1))
        }
        let refusal = try await phone.send(
            "POST", "kvs/1/sync",
            ["device": "phone", "token": .string(phone.token ?? ""), "wait": 55])
        let json = try JSON(parsing: refusal.body)
        #expect(refusal.status == 503 && json["serverErrorCode"].text == "TRY_AGAIN_LATER")
        #expect(json["retryAfter"] == 30 && json["reason"].text == "too many held requests")
        #expect(try await phone.sync([], ["wait": 0])["reason"] == "none")
        _ = try await phone.sync([phone.set("k", ["integer": 1])], ["wait": 55])
        #expect(try await waiting.value["reason"] == "serverChange")
        #expect(phone.wire.handler.kernel.held.waits.size == 0)
    }

    @Test func `a newer wait of a device ends the older one, and a client may go`() async throws {
        var watch = try await Self.device("watch")
        _ = try await watch.sync()
        let older = Task { [watch] in
            var watch = watch
            return try await watch.sync([], ["wait": 55])
        }
        while watch.wire.handler.kernel.seats.watchCount == 0 {
            try await Task.sleep(for: .milliseconds(1))
        }
        let newer = Task { [watch] in
            var watch = watch
            return try await watch.sync([], ["wait": 55])
        }
        #expect(try await older.value["reason"] == "none")
        newer.cancel()
        #expect(try await newer.value["reason"] == "none")
        #expect(watch.wire.handler.kernel.seats.count == 0)
    }

    @Test func `too many batches in a minute are throttled, and reading is not`() async throws {
        var settings = GatewaySettings()
        settings.keyValueRateMax = 2
        var phone = try await Self.device(settings: settings)
        for number in 0..<4 {
            _ = try await phone.sync([phone.set("k", ["integer": .number("\(number)")])])
        }
        let answer = try await phone.send(
            "POST", "kvs/1/sync",
            [
                "device": "phone", "batch": 9, "now": 1,
                "changes": [["key": "k", "at": 1, "removed": true]],
            ])
        expectFailure(answer, 429, "THROTTLED")
        #expect(try await phone.sync()["reason"] == "none")
    }
}
