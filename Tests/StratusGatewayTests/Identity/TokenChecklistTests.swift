import StratusCluster
import StratusDoubles
import StratusGateway
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime
import Synchronization
import Testing

@testable import WireScenarios

/// Part 2 of the wire reference, §18, lines 1 to 10: API tokens, web-auth tokens, the sign-in page.
@Suite struct TokenChecklistTests {
    @Test func `1: no credentials, or an unknown API token, are 401`() async throws {
        let town = Neighbourhood()
        expectFailure(
            try await town.post("public/users/caller"), 401, "AUTHENTICATION_FAILED",
            reason: "no auth method found")
        for token in [
            String(repeating: "a", count: 64), "short", String(repeating: "A", count: 64),
        ] {
            for operation in ["public/users/caller", "private/records/query"] {
                expectFailure(
                    try await town.post(operation, api: token), 401, "AUTHENTICATION_FAILED",
                    reason: "Authentication failed")
            }
        }
    }

    @Test func `2, 3: an API token alone is 421 where a user is needed`() async throws {
        let town = Neighbourhood()
        let api = try await town.apiToken()
        for operation in [
            "public/users/caller", "private/users/current", "private/records/query",
            "shared/zones/list", "public/users/discover",
        ] {
            let answer = try await town.post(operation, api: api)
            expectFailure(
                answer, 421, "AUTHENTICATION_REQUIRED", reason: "request needs authorization")
            #expect(
                answer.json["redirectURL"].text?.hasPrefix("http://ck.example.org/signin?t=")
                    == true)
            #expect(answer.header("X-Apple-CloudKit-Web-Auth-Token") == nil)
        }
    }

    @Test func `4: an API token alone queries what the world may read`() async throws {
        let town = Neighbourhood()
        _ = try await town.makeContainer()
        let api = try await town.apiToken()
        let answer = try await town.post(
            "public/records/query", ["query": ["recordType": "Book"]], api: api)
        #expect(answer.status == 200, "\(answer)")
    }

    @Test func `5: a web-auth token in every encoding that clients produce`() async throws {
        let town = Neighbourhood()
        let api = try await town.apiToken()
        let user = try await town.signIn(try await town.account("a@example.org"))
        // Letters, digits, '-' and '_': what a URL, a cookie and a form leave alone.
        #expect(
            user.utf8.allSatisfy {
                ($0 >= 0x30 && $0 <= 0x39) || ($0 >= 0x41 && $0 <= 0x5A)
                    || ($0 >= 0x61 && $0 <= 0x7A) || $0 == 0x2D || $0 == 0x5F
            } && user.utf8.count < 200)
        let everything = user.utf8.map { byte in
            "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }.joined()
        let rows: [(name: String, query: String, status: Int)] = [
            ("raw", "ckWebAuthToken=\(user)", 200),
            ("encoded once", "ckWebAuthToken=\(everything)", 200),
            (
                "encoded twice", "ckWebAuthToken=\(everything.replacing("%", with: "%25"))", 200
            ),
            ("as ckSession", "ckSession=\(user)", 200),
            ("beside ckSession=null", "ckSession=null&ckWebAuthToken=\(user)", 200),
            ("under both names", "ckSession=\(user)&ckWebAuthToken=\(user)", 200),
            ("6: null", "ckSession=null", 421),
            ("6: undefined", "ckWebAuthToken=undefined", 421),
            ("6: empty", "ckWebAuthToken=", 421),
            ("not ours", "ckWebAuthToken=84__31__t%2Bk", 421),
            ("one letter changed", "ckWebAuthToken=\(Self.altered(user))", 421),
            ("X-02: twice", "ckWebAuthToken=\(user)&ckWebAuthToken=\(user)", 401),
            ("X-02: two names, two tokens", "ckSession=other&ckWebAuthToken=\(user)", 401),
            ("X-02: two API tokens", "ckAPIToken=\(api)&ckWebAuthToken=\(user)", 401),
        ]
        for row in rows {
            let answer = try await town.send(
                WireRequest(
                    method: "GET",
                    target: town.path("public/users/caller") + "?ckAPIToken=\(api)&" + row.query))
            #expect(answer.status == row.status, "\(row.name): \(answer)")
        }
    }

    private static func altered(_ token: String) -> String {
        var bytes = Array(token.utf8)
        bytes[20] = bytes[20] == 0x41 ? 0x42 : 0x41
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test func `7: answers bring the next token, and older ones live on`() async throws {
        let town = Neighbourhood()
        let api = try await town.apiToken()
        let first = try await town.signIn(try await town.account("a@example.org"))
        let same = try await town.post("public/users/caller", api: api, user: first)
        #expect(same.header("X-Apple-CloudKit-Web-Auth-Token") == first)
        #expect(same.header("X-Apple-CloudKit-Session") == first)
        // A refused request tells it too: the token was good.
        let refused = try await town.post("private/records/lookup", api: api, user: first)
        #expect(refused.status == 400)
        #expect(refused.header("X-Apple-CloudKit-Web-Auth-Token") == first)

        town.world.advance(by: .seconds(25 * 3_600))
        let later = try await town.post("public/users/caller", api: api, user: first)
        let second = try #require(later.header("X-Apple-CloudKit-Web-Auth-Token"))
        #expect(later.status == 200 && second != first)
        // Twenty at once with one token: all are served, all hear of the same next one.
        let answers = try await withThrowingTaskGroup(of: WireAnswer.self) { group in
            for _ in 0..<20 {
                group.addTask { try await town.post("public/users/caller", api: api, user: first) }
            }
            return try await group.reduce(into: [WireAnswer]()) { $0.append($1) }
        }
        #expect(answers.allSatisfy { $0.status == 200 })
        #expect(Set(answers.map { $0.header("X-Apple-CloudKit-Session") }) == [second])
        // X-11: unused for longer than its life, it is no more; its successor is.
        town.world.advance(by: .seconds(2 * 3_600))
        #expect(try await town.post("public/users/caller", api: api, user: first).status == 421)
        #expect(try await town.post("public/users/caller", api: api, user: second).status == 200)
    }

    @Test func `a session whose person chose to stay is good for two weeks unused`() async throws {
        let town = Neighbourhood()
        let api = try await town.apiToken()
        let token = try await town.signIn(try await town.account("a@example.org"), stays: true)
        town.world.advance(by: .seconds(13 * 86_400))
        #expect(try await town.post("public/users/caller", api: api, user: token).status == 200)
        town.world.advance(by: .seconds(2 * 86_400))
        #expect(try await town.post("public/users/caller", api: api, user: token).status == 421)
    }

    @Test func `8, X-35: a token of another container or environment is not accepted`()
        async throws
    {
        let town = Neighbourhood()
        let other = ContainerReference(container: "iCloud.other", environment: .development)
        let id = try await town.account("a@example.org")
        let token = try await town.signIn(id)
        for container in [other, Neighbourhood.production] {
            let api = try await town.apiToken(in: container)
            #expect(
                try await town.post("public/users/caller", api: api, user: token, in: container)
                    .status == 421)
            // Nor is the API token good at home.
            #expect(try await town.post("public/users/caller", api: api, user: token).status == 401)
        }
        #expect(town.recordName(id) != town.recordName(id, in: other))
        #expect(town.recordName(id) != town.recordName(id, in: Neighbourhood.production))
        #expect(town.recordName(id).utf8.count == 33)
    }

    @Test func `10 and G-20: an origin that the token does not allow is refused`() async throws {
        let town = Neighbourhood()
        let api = try await town.apiToken(
            origins: ["https://app.example.org", "http://[::1]:8080"])
        let rows: [(origin: String?, isAllowed: Bool)] = [
            (nil, true), ("https://app.example.org", true), ("HTTPS://App.Example.ORG", true),
            ("http://[::1]:8080", true), ("https://evil.example.org", false), ("null", false),
            ("*", false), ("", false), ("http://app.example.org", false),
            ("https://app.example.org:8443", false), ("https://example.org", false),
            ("https://app.example.org.evil.test", false),
            ("https://evilapp.example.org", false), ("https://app.example.org/", false),
            ("https://app.example.org https://evil.test", false),
        ]
        for (origin, isAllowed) in rows {
            let answer = try await town.post(
                "public/users/caller", api: api,
                headers: origin.map { [("Origin", $0)] } ?? [])
            // Who may ask is told to sign in.
            #expect(answer.status == (isAllowed ? 421 : 403), "\(origin ?? "none"): \(answer)")
        }
    }

    // MARK: Revoking (X-11)

    @Test func `what was revoked is refused within a second`() async throws {
        let town = Neighbourhood()
        let api = try await town.apiToken()
        let spare = try await town.apiToken()
        let id = try await town.account("a@example.org")
        let one = try await town.signIn(id)
        let two = try await town.signIn(id)
        func status(_ user: String, _ token: String) async throws -> Int {
            town.world.advance(by: .seconds(1))
            return try await town.post("public/users/caller", api: token, user: user).status
        }
        #expect(try await status(one, api) == 200)
        #expect(try await town.post("public/users/signOut", api: api, user: one).status == 200)
        #expect(try await status(one, api) == 421)
        #expect(try await status(two, api) == 200)

        let listed = try await town.access.tokens(in: Neighbourhood.container)
        let hash = town.accounts.store.keys.hash(ofToken: api)
        let name = try #require(listed.first { $0.hash == hash }).id
        #expect(try await town.access.revokeToken(id: name, in: Neighbourhood.container))
        #expect(try await status(two, api) == 401)
        #expect(try await status(two, spare) == 200)

        #expect(
            try await town.post(
                "private/users/signOut", ["everywhere": true], api: spare, user: two
            ).status == 200)
        #expect(try await status(two, spare) == 421)

        let three = try await town.signIn(id)
        #expect(try await status(three, spare) == 200)
        _ = try await town.accounts.change(id) { $0.status = .disabled }
        #expect(try await status(three, spare) == 421)
    }

    @Test func `an account has so many sessions, and the oldest end first`() async throws {
        let town = Neighbourhood()
        let api = try await town.apiToken()
        let id = try await town.account("a@example.org")
        var tokens: [String] = []
        for _ in 0...Accounts.sessionCountMax {
            town.world.advance(by: .milliseconds(5))
            tokens.append(try await town.signIn(id))
        }
        #expect(try await town.accounts.sessions(of: id).count == Accounts.sessionCountMax)
        for (token, status) in [(tokens[0], 421), (tokens[1], 200), (tokens[100], 200)] {
            #expect(
                try await town.post("public/users/caller", api: api, user: token).status == status)
        }
    }

    @Test func `while nobody can be asked, what was known stands for ten seconds and no longer`()
        async throws
    {
        let town = Neighbourhood()
        let api = try await town.apiToken()
        let user = try await town.signIn(try await town.account("a@example.org"))
        #expect(try await town.post("public/users/caller", api: api, user: user).status == 200)
        town.router.fault.withLock { $0 = .notExecuted(retryAfter: .seconds(3)) }
        town.world.advance(by: .seconds(5))
        let request = PresentedRequest(
            head: RequestHead(
                method: "POST", path: town.path("private/zones/list"),
                query: "ckAPIToken=\(api)&ckWebAuthToken=\(user)"),
            container: Neighbourhood.container, scope: .private)
        #expect(try await town.authenticator.authenticate(request).principal.kind == .user)
        town.world.advance(by: .seconds(6))
        let answer = try await town.post("public/users/caller", api: api, user: user)
        expectFailure(answer, 503, "TRY_AGAIN_LATER")
        #expect(answer.header("Retry-After") == "3")
        town.router.fault.withLock { $0 = nil }
        #expect(try await town.post("public/users/caller", api: api, user: user).status == 200)
    }

    @Test func `in development any token is good, and a real one is still real`() async throws {
        let town = Neighbourhood(isOpen: true)
        let anything = String(repeating: "ab", count: 32)
        let user = try await town.signIn(try await town.account("a@example.org"))
        let mine = try await town.post("public/users/caller", api: anything, user: user)
        let other = try await town.post("public/users/caller", api: anything, user: "whatever")
        #expect(mine.status == 200 && other.status == 200)
        #expect(mine.json["userRecordName"] != other.json["userRecordName"])
        // A token of ours that is not good signs nobody in as somebody else.
        let broken = try await town.post(
            "public/users/caller", api: anything, user: Self.altered(user))
        #expect(broken.status == 421)
        #expect(
            try await town.post(
                "public/users/caller", api: anything, user: "whatever",
                in: Neighbourhood.production
            ).status == 401)
    }
}
