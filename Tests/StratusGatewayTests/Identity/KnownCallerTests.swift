import StratusDoubles
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime
import Testing

@testable import StratusGateway
@testable import WireScenarios

/// A caller who was proved is known for the next requests of the connection, and not for longer than
/// its credentials are believed.
@Suite struct KnownCallerTests {
    private static let lookUp: JSON = ["records": [["recordName": "r"]]]

    /// A container with an API token and a user who is signed in.
    private struct Street {
        let town: Neighbourhood
        let api: String
        let account: AccountID
        let user: String

        init(
            connections: Int = 1, origins: [String] = [],
            rates: GatewaySettings = GatewaySettings(), bugs: PlantedBugs = PlantedBugs()
        ) async throws {
            self.town = Neighbourhood(connections: connections, rates: rates, bugs: bugs)
            _ = try await self.town.makeContainer()
            self.api = try await self.town.apiToken(origins: origins)
            self.account = try await self.town.account("ann@example.org")
            self.user = try await self.town.signIn(self.account)
        }

        func ask(
            _ scope: String = "private", _ headers: [(name: String, value: String)] = [],
            user: Bool = true
        ) async throws -> WireAnswer {
            try await self.town.send(
                WireRequest(
                    method: "POST",
                    target: self.town.path("\(scope)/records/lookup") + "?ckAPIToken=\(self.api)"
                        + (user ? "&ckWebAuthToken=\(self.user)" : ""),
                    headers: headers, body: Array(KnownCallerTests.lookUp.description.utf8)))
        }

        func closeSession() async throws {
            let session = try #require(
                self.town.authenticator.session(self.user, in: Neighbourhood.container))
            try await self.town.accounts.closeSession(session.session, of: self.account)
        }
    }

    @Test func `a known caller gets the same answer as one who is proved`() async throws {
        for headers in [[], [(name: "Origin", value: "https://a.example")]] {
            let street = try await Street()
            let proved = try await street.ask("private", headers)
            let known = try await street.ask("private", headers)
            #expect(street.town.knownCount == 1)
            #expect(proved.status == 200 && known.status == 200)
            #expect(known.body == proved.body)
            let name = "X-Apple-Request-UUID"
            #expect(known.headers.map(\.name) == proved.headers.map(\.name))
            for (one, other) in zip(known.headers, proved.headers) where one.name != name {
                #expect(one.value == other.value, "\(one.name)")
            }
            #expect(
                known.headers.first { $0.name == name }?.value
                    != proved.headers.first { $0.name == name }?.value)
        }
    }

    // MARK: How it ends

    /// Statuses before and after the node itself ends the session.
    private static func withdrawnHere(_ bugs: PlantedBugs) async throws -> [Int] {
        let street = try await Street(bugs: bugs)
        var statuses = [try await street.ask().status, try await street.ask().status]
        try await street.closeSession()
        street.town.authenticator.forget()
        statuses.append(try await street.ask().status)
        return statuses
    }

    @Test func `what this node withdraws ends it at once`() async throws {
        #expect(try await Self.withdrawnHere(PlantedBugs()) == [200, 200, 421])
    }

    /// Statuses of a caller who asks all the time while another node ends the session.
    private static func withdrawnElsewhere(_ bugs: PlantedBugs) async throws -> [Int] {
        let street = try await Street(connections: 2, bugs: bugs)
        var statuses = [try await street.ask().status]
        street.town.world.advance(by: .milliseconds(700))
        // The other connection learns it from the same answer, which is old by now.
        statuses.append(try await street.ask().status)
        try await street.closeSession()
        for _ in 0..<20 {
            street.town.world.advance(by: .milliseconds(100))
            statuses.append(try await street.ask().status)
        }
        return statuses
    }

    @Test func `what another node withdraws ends it after a second, however often it is used`()
        async throws
    {
        let statuses = try await Self.withdrawnElsewhere(PlantedBugs())
        #expect(statuses.prefix(2) == [200, 200])
        #expect(statuses.dropFirst(5).allSatisfy { $0 == 421 }, "\(statuses)")
    }

    @Test func `the second counts from the oldest answer that it was made from`() async throws {
        let street = try await Street(connections: 2)
        #expect(try await street.ask().status == 200)
        street.town.world.advance(by: .milliseconds(700))
        // Proved on the other connection by the same answers.
        #expect(try await street.ask().status == 200)
        street.town.world.advance(by: .milliseconds(295))
        _ = try await street.ask()
        let known = street.town.knownCount
        street.town.world.advance(by: .milliseconds(10))
        _ = try await street.ask()
        #expect(street.town.knownCount == known, "it was known for longer than a second")
    }

    private static func otherOrigin(_ bugs: PlantedBugs) async throws -> [Int] {
        let street = try await Street(origins: ["https://a.example"], bugs: bugs)
        var statuses: [Int] = []
        for origin in ["https://a.example", "https://a.example", "https://b.example"] {
            statuses.append(
                try await street.ask("public", [("Origin", origin)], user: false).status)
        }
        statuses.append(try await street.ask("public", user: false).status)
        return statuses
    }

    @Test func `another origin is proved by itself`() async throws {
        #expect(try await Self.otherOrigin(PlantedBugs()) == [200, 200, 403, 200])
    }

    /// Whether a caller is known who shows another password than the one proved.
    private static func otherPassword(_ bugs: PlantedBugs) -> Bool {
        func head(_ password: String?) -> RequestHead {
            RequestHead(
                method: "GET", path: "/dav/a",
                headers: HeaderFields(
                    password.map { [HeaderFields.Line(name: "Authorization", value: $0)] } ?? []))
        }
        let callers = KnownCallers(bugs: bugs)
        callers.keep(
            KnownCaller(
                of: head("Basic YTpi"), isSecure: true,
                goodUntil: MonotonicTime(nanoseconds: .max), epoch: 0, version: 0,
                plan: RequestPlan(bodySizeMax: 0) { _ in HTTPResponse(status: 200) }))
        func isKnown(_ password: String?, isSecure: Bool = true) -> Bool {
            var bytes: Bytes = []
            let view = RequestView(laying: head(password), body: [], into: &bytes)!
            return callers.caller(of: view, bytes.span, isSecure: isSecure) != nil
        }
        #expect(isKnown("Basic YTpi"))
        #expect(!isKnown("Basic YTpi", isSecure: false))
        return isKnown("Basic YTpj") || isKnown(nil)
    }

    @Test func `another password, and none, are proved by themselves`() {
        #expect(!Self.otherPassword(PlantedBugs()))
    }

    private static func tooMany(_ bugs: PlantedBugs) async throws -> [Int] {
        var rates = GatewaySettings()
        rates.requestRateMax = 1
        let street = try await Street(rates: rates, bugs: bugs)
        var statuses: [Int] = []
        for _ in 0..<4 { statuses.append(try await street.ask().status) }
        return statuses
    }

    @Test func `requests of a known caller count against its rate`() async throws {
        #expect(try await Self.tooMany(PlantedBugs()) == [200, 200, 429, 429])
    }

    @Test func `a known caller that is refused gets its token back`() async throws {
        var rates = GatewaySettings()
        rates.requestRateMax = 1
        let street = try await Street(rates: rates)
        var answers: [WireAnswer] = []
        for _ in 0..<4 { answers.append(try await street.ask()) }
        #expect(answers.map(\.status) == [200, 200, 429, 429])
        for answer in answers {
            #expect(answer.headers.contains { $0.name == "X-Apple-CloudKit-Web-Auth-Token" })
        }
    }

    @Test func `a signature beside the same tokens is judged`() async throws {
        let street = try await Street()
        #expect(try await street.ask().status == 200)
        #expect(try await street.ask().status == 200)
        let signed = try await street.ask(
            "private", [(SignedRequest.keyField, String(repeating: "a", count: 64))])
        #expect(signed.status == 401)
        #expect(street.town.knownCount == 1)
    }

    @Test func `other settings make it anew`() async throws {
        let street = try await Street()
        #expect(try await street.ask().status == 200)
        let callers = street.town.connections[0]
        let other = Neighbourhood(connections: 1)
        var bytes: Bytes = []
        let head = RequestHead(
            method: "POST", path: street.town.path("private/records/lookup"),
            query: "ckAPIToken=\(street.api)&ckWebAuthToken=\(street.user)")
        let view = try #require(RequestView(laying: head, body: [], into: &bytes))
        let call = SurfaceCall(
            identity: other.world.drawIdentity(), peer: "192.0.2.7", isSecure: false,
            version: .http1, callers: callers)
        #expect(callers.caller(of: view, bytes.span, isSecure: false) != nil)
        #expect(other.handler.services.knownPlan(view, bytes.span, call) == nil)
        #expect(callers.caller(of: view, bytes.span, isSecure: false) == nil)
    }

    @Test func `a connection knows four callers, and the oldest makes room`() {
        let callers = KnownCallers()
        func head(_ number: Int) -> RequestHead { RequestHead(method: "GET", path: "/\(number)") }
        func isKnown(_ number: Int) -> Bool {
            var bytes: Bytes = []
            let view = RequestView(laying: head(number), body: [], into: &bytes)!
            return callers.caller(of: view, bytes.span, isSecure: false) != nil
        }
        for number in 0..<5 {
            callers.keep(
                KnownCaller(
                    of: head(number), isSecure: false,
                    goodUntil: MonotonicTime(nanoseconds: .max), epoch: 0, version: 0,
                    plan: RequestPlan(bodySizeMax: 0) { _ in HTTPResponse(status: 200) }))
        }
        #expect((0..<5).map(isKnown) == [false, true, true, true, true])
    }

    #if STRATUS_PLANTED
        @Test func `the planted bugs are found`() async throws {
            #expect(
                try await Self.withdrawnHere(PlantedBugs([.knownCallerIgnoresEpoch])).last == 200)
            #expect(
                try await Self.withdrawnElsewhere(PlantedBugs([.knownCallerNeverExpires])).last
                    == 200)
            #expect(try await Self.otherOrigin(PlantedBugs([.originNotCompared]))[2] == 200)
            #expect(Self.otherPassword(PlantedBugs([.authorizationNotCompared])))
            #expect(
                try await Self.tooMany(PlantedBugs([.rateNotCountedWhenKnown])).last == 200)
        }
    #endif
}
