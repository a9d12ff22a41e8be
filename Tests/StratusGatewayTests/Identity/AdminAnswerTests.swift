import Foundation
import StratusAdmin
import StratusCluster
import StratusContainers
import StratusDoubles
import StratusGateway
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusPush
import StratusRuntime
import Testing
import WireScenarios

/// What the administrators' pages about containers, people and keys answer, byte for byte. Their
/// answers are a contract: the file in `Golden/` changes with the contract only. With
/// `STRATUS_GOLDEN=write` it is written anew.
@Suite struct AdminAnswerTests {
    private static let place =
        "/v1/containers/\(Neighbourhood.container.container)/environments/development"
    private static let production =
        "/v1/containers/\(Neighbourhood.container.container)/environments/production"
    private static let user = "/v1/users/ann%40example.org"
    private static let person = place + "/users/ann%40example.org"
    private static let named =
        #"{"container":"\#(Neighbourhood.container.container)","environment":"development"}"#

    /// A node whose pushes come to an end at once.
    private struct Pushes: PushControl {
        let keys: PushKeys

        func standing() async -> PushStanding {
            PushStanding(
                activeCount: 1, restingCount: 2,
                lanes: [
                    PushLaneStanding(
                        name: "apns", state: "open", waiting: 3, underWay: 4, answers: 5,
                        trouble: "slow"),
                    PushLaneStanding(
                        name: "web", state: "idle", waiting: 0, underWay: 0, answers: 0,
                        trouble: nil),
                ])
        }
        func trace(_ ask: PushTrail.Ask) async -> [PushTrail.Entry] { [] }
        func check(
            _ key: PushKeys.APNsKey, topic: String, of container: ContainerReference,
            in environment: Environment
        ) async -> PushCheck { PushCheck(isGood: false, answer: "403 of \(topic)") }
        func devices(of user: String, in container: ContainerReference) async throws
            -> [PushDevice]
        {
            var apns = PushDevice(token: Bytes(1...16), kind: .apns, movedAt: 1_709_631_000_000)
            apns.topic = "org.a"
            apns.environment = .development
            apns.registeredAt = 1_709_631_000_000
            apns.expiresAt = 1_709_632_000_000
            apns.behind = 3
            apns.trouble = "paused"
            return [apns, PushDevice(token: [7], kind: .poll, movedAt: 0)]
        }
        func explain(_ question: PushQuestion) async throws -> PushExplanation {
            PushExplanation(
                hasRecord: true,
                findings: [
                    PushFinding(subscription: "s", kind: "query", fires: true, why: "it matches")
                ], isCut: true,
                devices: try await self.devices(of: question.user, in: question.container))
        }
        func send(
            _ text: String, to name: String, of user: String, in container: ContainerReference
        ) async throws -> PushTrial {
            .sent(device: Bytes(1...16), lane: "apns", isAccepted: true, answer: "200")
        }
    }

    private func ask(
        _ town: Neighbourhood, _ method: String, _ target: String, _ body: String = ""
    ) async -> String {
        town.world.advance(by: .milliseconds(1))
        let handler = AdminHandler(
            control: EncryptionKeyPageTests.NoControl(), health: Health(), metrics: Metrics(),
            log: Log(level: .error, format: .json) { $0.count },
            settings: AdminHandler.Settings(isToken: { _ in true }),
            directory: town.service.directory,
            push: Pushes(keys: InProcess.pushKeys(town.router, town.world)))
        let parts = target.split(separator: "?", maxSplits: 1).map(String.init)
        let answer = await handler.respond(
            to: HTTPRequest(
                head: RequestHead(
                    method: method, path: parts[0], query: parts.count == 2 ? parts[1] : nil,
                    headers: HeaderFields([.init(name: "authorization", value: "Bearer x")])),
                body: CollectedBody(Bytes(body.utf8)), peer: "127.0.0.1:9",
                identity: RequestIdentity(high: 1, low: 2)))
        var bytes = Bytes()
        switch answer.body {
        case .empty: break
        case .bytes(let all): bytes = all
        case .stream(let stream, _):
            do { while let more = try await stream.next() { bytes += more } } catch {
                bytes += Bytes("cut".utf8)
            }
        }
        let text = String(decoding: bytes, as: UTF8.self)
        return "\(method) \(target) \(body.prefix(60))\n\(answer.status) \(text)\n"
    }

    private static let requests: [(String, String, String)] = [
        ("GET", "/v1/containers", ""), ("GET", place, ""),
        ("POST", production, #"{"buckets":4,"placement":"zone","zoneBuckets":8}"#),
        ("POST", production, #"{"buckets":3}"#), ("POST", production, #"{"placement":"half"}"#),
        ("POST", production, #"{"placement":7}"#), ("POST", production, #"{"buckets":"x"}"#),
        ("POST", production, #"{"buckets":4}"#),
        ("POST", production, #"{"placement":"zone","zoneBuckets":1}"#),
        ("POST", production, #"{"zoneBuckets":2}"#),
        ("GET", production + "/places?owner=_a", ""), ("GET", place + "/places", ""),
        ("POST", production + "/references/audit", ""),
        ("GET", place + "/brand", ""), ("PUT", place + "/brand", #"{"welcome":"w"}"#),
        (
            "PUT", place + "/brand",
            ##"{"name":"Shelves","colour":"#0a7d4f","privacy":"https://a.example/p"}"##
        ),
        ("PUT", place + "/brand", #"{"help":"http://a.example"}"#),
        ("PUT", place + "/brand", #"{"colour":"green"}"#),
        ("PUT", place + "/brand", #"{"logo":"AAAA"}"#),
        ("PUT", place + "/brand", #"{"welcome":"Hello"}"#), ("GET", place + "/brand", ""),
        ("DELETE", place + "/brand", ""), ("GET", place + "/brand", ""),
        (
            "POST", "/v1/users",
            #"{"email":"ann@example.org","givenName":"Ann","familyName":"Bee","isDiscoverable":true}"#
        ),
        ("POST", "/v1/users", #"{"email":"ann@example.org"}"#),
        ("POST", "/v1/users", #"{"email":7}"#), ("POST", "/v1/users", #"{"email":"a>b@c.d"}"#),
        ("POST", "/v1/users", #"{"email":"b@example.org","password":"x"}"#),
        ("POST", "/v1/users", "["),
        ("GET", "/v1/users", ""), ("POST", user + "/sign-in", named), ("GET", user, ""),
        ("POST", user + "/disable", ""), ("POST", user + "/enable", ""),
        ("POST", user + "/reset-link", ""), ("POST", user + "/sign-out", ""),
        ("POST", user + "/change", #"{"email":"b@example.org","givenName":"Bea"}"#),
        ("POST", "/v1/users", #"{"email":"ann@example.org","unverified":true}"#),
        ("POST", "/v1/users/b%40example.org/change", #"{"email":"Ann@example.org"}"#),
        ("POST", "/v1/users/b%40example.org/change", #"{"email":"nobody"}"#),
        ("POST", "/v1/users/b%40example.org/change", #"{"email":"zoë@example.org"}"#),
        ("DELETE", user, ""),
        ("POST", "/v1/users/b%40example.org/change", #"{"email":"ann@example.org"}"#),
        ("GET", "/v1/users?limit=1", ""), ("GET", "/v1/users?limit=0", ""),
        ("GET", "/v1/users?after=x", ""), ("POST", user + "/verification", #"{"verified":true}"#),
        ("POST", user + "/verification", "{}"),
        ("POST", user + "/verification", #"{"verified":false}"#),
        ("POST", user + "/invitation", ""), ("DELETE", user + "/sessions/x", ""),
        ("POST", user + "/sign-in", "{}"), ("GET", "/v1/users/nobody%40example.org", ""),
        (
            "POST", place + "/tokens",
            #"{"name":"web","origins":["https://a.b"],"callbackURL":"https://c.d","receivesNames":true}"#
        ),
        ("POST", place + "/tokens", "{}"), ("POST", place + "/tokens", #"{"name":7}"#),
        ("POST", place + "/tokens", #"{"name":"x","origins":["a"]}"#),
        ("POST", place + "/tokens", #"{"name":"x","callbackURL":"ftp"}"#),
        ("POST", production + "/tokens", #"{"name":"x"}"#), ("GET", place + "/tokens", ""),
        ("DELETE", place + "/tokens/ab", ""), ("POST", place + "/keys", #"{"name":"k"}"#),
        ("POST", place + "/keys", #"{"name":"k","publicKey":"x"}"#),
        ("POST", place + "/keys", "PEM"),
        ("GET", place + "/keys", ""), ("DELETE", place + "/keys/ab", ""),
        (
            "POST", place + "/members",
            #"{"role":"librarian","member":true,"user":"ann@example.org"}"#
        ),
        ("POST", place + "/members", #"{"role":"nobody","member":true,"user":"ann@example.org"}"#),
        ("POST", place + "/members", #"{"role":"nobody"}"#), ("GET", place + "/members", ""),
        ("POST", place + "/access", #"{"recordType":"Book","user":"ann@example.org"}"#),
        ("POST", place + "/access", #"{"recordType":"Nothing"}"#),
        ("POST", place + "/access", "{}"),
        ("GET", "/v1/sealing-keys", ""), ("POST", "/v1/sealing-keys", ""),
        ("GET", "/v1/sealing-keys", ""), ("POST", "/v1/sealing-keys/revocation", #"{"before":2}"#),
        ("POST", "/v1/sealing-keys/revocation", "{}"),
        ("GET", "/v1/encryption-keys", ""), ("POST", "/v1/encryption-keys/rotation", "{}"),
        ("POST", "/v1/encryption-keys/rotation", #"{"after":"x"}"#),
        ("POST", "/v1/encryption-keys/forgetting", #"{"version":9}"#),
        ("POST", "/v1/encryption-keys/forgetting", "{}"),
        ("POST", "/v1/encryption-keys/databases/rotation", named),
        ("POST", "/v1/encryption-keys/containers/rotation", named),
        ("POST", "/v1/encryption-keys/containers/rotation", "{}"),
        ("GET", person + "/app-passwords", ""),
        ("POST", person + "/app-passwords", #"{"label":"laptop","readOnly":true}"#),
        ("POST", person + "/app-passwords", "{}"),
        ("POST", person + "/app-passwords", #"{"label":"x","readOnly":"true"}"#),
        ("GET", person + "/app-passwords", ""),
        ("DELETE", person + "/app-passwords/x", ""),
        ("POST", person + "/key-values", #"{"key":"theme","value":{"string":"dark"}}"#),
        ("POST", person + "/key-values", #"{"key":"theme"}"#),
        ("POST", person + "/key-values", "{}"),
        ("POST", person + "/key-values", #"{"key":"theme","value":{"x":1}}"#),
        ("GET", person + "/key-values", ""), ("GET", person + "/key-values/devices", ""),
        ("POST", person + "/key-values", #"{"key":"theme","removed":true}"#),
        ("GET", person + "/documents", ""), ("GET", person + "/documents/usage", ""),
        ("GET", person + "/documents/versions?path=x", ""),
        ("GET", person + "/documents/locks", ""),
        ("GET", person + "/documents/publications", ""),
        ("DELETE", person + "/documents/locks/x", ""),
        ("DELETE", person + "/documents/publications/x", ""),
        ("GET", "/v1/push", ""), ("GET", place + "/push", ""),
        ("POST", place + "/push/apns", #"{"team":"DEF123GHIJ","key":"x"}"#),
        ("POST", place + "/push/apns", #"{"team":"DEF123GHIJ","key":"ABC123DEFG"}"#),
        ("POST", place + "/push/apns/check", "{}"),
        ("POST", place + "/push/apns/check", #"{"apnsEnvironment":"x"}"#),
        ("POST", place + "/push/vapid", #"{"contact":"mailto:a@b.c"}"#),
        ("POST", place + "/push/vapid", "{}"), ("POST", place + "/push/pause", #"{"paused":true}"#),
        ("POST", place + "/push/pause", "{}"), ("GET", place + "/push", ""),
        ("GET", place + "/push/trace", ""), ("GET", place + "/push/trace?limit=x", ""),
        ("GET", place + "/push/devices?user=_u", ""), ("GET", place + "/push/devices", ""),
        ("POST", place + "/push/send", #"{"user":"_u","alert":"Hello"}"#),
        ("POST", place + "/push/send", #"{"user":"_u"}"#),
        ("POST", place + "/push/send", #"{"user":"_u","device":"x"}"#),
        ("GET", place + "/push/explain?user=_u&record=r", ""),
        ("GET", "/v1/assets/lost", ""), ("GET", "/v1/assets/rows", ""),
        ("POST", place + "/assets/verify", ""), ("POST", "/v1/remains", "{}"),
        ("POST", "/v1/remains", #"{"positions":[{"partition":1,"applied":7}]}"#),
        ("POST", "/v1/remains", #"{"positions":[{"partition":1}]}"#),
        ("GET", place + "/usage", ""), ("POST", user + "/export", named),
        ("POST", user + "/export", #"{"container":"x","environment":"development","files":true}"#),
        ("DELETE", user, ""),
        ("POST", place + "/schema/reset?dryRun=1", ""), ("POST", place + "/schema/reset", ""),
        ("POST", place + "/schema/reset/piece", ""),
        ("POST", place + "/schema/reset?confirm=\(Neighbourhood.container.container)", ""),
        ("POST", place + "/schema/reset/piece", ""),
        ("POST", place + "/tokens", #"{"name":"late"}"#),
        ("DELETE", production, ""), ("POST", production + "/erasure", ""),
        ("DELETE", production + "?confirm=\(Neighbourhood.container.container)", ""),
        ("POST", production + "/erasure", ""), ("GET", production, ""),
        ("GET", "/v1/audit?limit=2", ""), ("GET", "/v1/audit?verify=1", ""),
        ("GET", "/v1/exports/files/x", ""), ("GET", "/v1/cluster", ""), ("PATCH", "/v1/users", ""),
        ("GET", "/v1/nothing", ""),
    ]

    /// Texts that are drawn anew in each run.
    private static func masked(_ text: String) -> String {
        text.replacing(/"(token|webAuthToken|password|publicKey|id)":"[^"\n]{9,}"/) {
            "\"\($0.output.1)\":\"DRAWN\""
        }
        .replacing(/s=[\w.-]{9,}/, with: "s=DRAWN")
    }

    /// What may make a container, and what its name alone tells.
    private static let takesAnyContainer: Set<String> = [
        "POST", "POST /keys", "POST /tokens", "PUT /schema", "GET /places",
    ]

    /// A name is mistyped easily, and nobody may be told "nothing" of a container that is not there.
    @Test func `every page about a container refuses one that nobody has made, and no name`()
        async throws
    {
        let town = Neighbourhood()
        _ = try await town.makeContainer()
        _ = try await town.authenticator.registry.create(Neighbourhood.container)
        _ = try await town.account("ann@example.org")
        let prefix = "/v1/containers/{container}/environments/{environment}"
        var count = 0
        for route in AdminRoute.all where route.template.hasPrefix(prefix) {
            let rest = route.template.dropFirst(prefix.count)
            let what = rest.isEmpty ? route.method : "\(route.method) \(rest)"
            func ask(_ container: String) async -> String {
                let path = route.template.split(separator: "/").map { part in
                    switch part {
                    case "{container}": container
                    case "{environment}": rest == "/schema/promote" ? "production" : "development"
                    case "{email}": "ann%40example.org"
                    default: part.hasPrefix("{") ? "x" : String(part)
                    }
                }
                let target = "/" + path.joined(separator: "/")
                return await self.ask(town, route.method, target, #"{"key":"k","removed":true}"#)
            }
            let none = await ask("my%20app%21")
            #expect(none.contains("\n400 ") && none.contains("my app!"), "\(none)")
            if Self.takesAnyContainer.contains(what) { continue }
            count += 1
            let answer = await ask("iCloud.org.example.mistyped")
            #expect(
                answer.contains("\n404 ") && answer.contains("'stratusctl container list'"),
                "\(answer)")
        }
        #expect(count > 25, "\(count) pages")
        for what in ["export", "sign-in"] {
            let body = #"{"container":"iCloud.org.example.mistyped","environment":"development"}"#
            let answer = await self.ask(town, "POST", Self.user + "/" + what, body)
            #expect(answer.contains("'stratusctl container list'"), "\(answer)")
        }
        let made = try await town.authenticator.registry.all()
        #expect(made.map(\.0.container) == [Neighbourhood.container.container])
    }

    @Test func `the pages about containers, people and keys answer as ever`() async throws {
        let town = Neighbourhood()
        _ = try await town.makeContainer()
        _ = try await town.authenticator.registry.create(Neighbourhood.container)
        let pem = try #require(try Vectors.json("signatures.json")["publicKey"].text)
        var text = ""
        for (method, target, body) in Self.requests {
            let sent =
                body == "PEM"
                ? #"{"name":"k","publicKey":"\#(pem.replacing("\n", with: "\\n"))"}"# : body
            if target.hasSuffix("/piece") || target.hasSuffix("/erasure") {
                town.world.advance(by: .seconds(60))
            }
            text += await self.ask(town, method, target, sent)
        }
        text = Self.masked(text)
        let place = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Golden/admin-answers.txt")
        if ProcessInfo.processInfo.environment["STRATUS_GOLDEN"] == "write" {
            try FileManager.default.createDirectory(
                at: place.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(text.utf8).write(to: place)
        }
        let wanted = (try? String(contentsOf: place, encoding: .utf8)) ?? ""
        let lines = text.split(separator: "\n"), kept = wanted.split(separator: "\n")
        #expect(lines.count == kept.count)
        for (line, known) in zip(lines, kept) { #expect(line == known) }
    }
}
