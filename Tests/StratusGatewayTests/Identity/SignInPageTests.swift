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

/// Part 2 of the wire reference, §18, line 9, and what keeps a sign-in page safe.
@Suite struct SignInPageTests {
    private func link(
        _ town: Neighbourhood, _ api: String, origin: String? = nil
    ) async throws -> String {
        try Neighbourhood.link(
            try await town.post(
                "public/users/caller", api: api, headers: origin.map { [("Origin", $0)] } ?? []))
    }

    @Test(arguments: [
        ("192.0.2.1", "192.0.2.1"), ("192.0.2.1:4711", "192.0.2.1"), ("unix", "unix"),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.1"), ("[2001:db8::1]:4711", "2001:db8:0:0"),
        ("2001:db8::a:b:c:d", "2001:db8:0:0"), ("2001:db8::1:2:3:4", "2001:db8:0:0"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2"), ("2001:db8:0:1::", "2001:db8:0:1"),
    ])
    func `of an address of version 6 the half that names a site counts`(
        peer: String, place: String
    ) { #expect(SocketAddress.site(of: peer) == place) }

    @Test func `9: signing in hands both keys to the origin that asked, once`() async throws {
        let town = Neighbourhood()
        let api = try await town.apiToken(origins: ["https://app.example.org"])
        try await town.account("a@example.org", password: "correct horse")
        let link = try await self.link(town, api, origin: "https://app.example.org")
        let form = try await town.send(WireRequest(method: "GET", target: "/signin?t=\(link)"))
        #expect(form.status == 200 && form.text.contains("iCloud.org.example.shelves"))
        #expect(form.header("Cache-Control") == "no-store")
        #expect(form.header("Cross-Origin-Opener-Policy") == nil)
        #expect(form.header("X-Frame-Options") == "DENY")
        let policy = try #require(form.header("Content-Security-Policy"))
        #expect(
            policy.hasPrefix("default-src 'none';") && policy.contains("frame-ancestors 'none'"))

        let fields = [("t", link), ("email", " A@Example.org "), ("password", "correct horse")]
        let done = try await town.form("/signin", fields, origin: "http://ck.example.org")
        let token = try #require(Neighbourhood.token(done), "\(done)")
        #expect(
            done.text.contains(
                "window.opener.postMessage({ckWebAuthToken: token, ckSession: token}, origin)"))
        #expect(done.text.contains("[\"https://app.example.org\"]"))
        let caller = try await town.post("public/users/caller", api: api, user: token)
        #expect(caller.status == 200)
        // The link was good for one sign-in.
        let again = try await town.form("/signin", fields)
        #expect(again.status == 400 && Neighbourhood.token(again) == nil)
    }

    typealias Callback = (callback: String, expected: String)
    static let callbacks: [Callback] = [
        ("https://app.example.org/done", "https://app.example.org/done?"),
        ("https://app.example.org/done?a=b", "https://app.example.org/done?a=b&"),
        (
            "cloudkit-icloud.org.example.shelves://signin",
            "cloudkit-icloud.org.example.shelves://signin?"
        ),
    ]

    @Test(arguments: callbacks)
    func `9: a callback gets both keys behind its own query`(row: Callback) async throws {
        let town = Neighbourhood()
        let api = try await town.apiToken(callback: row.callback)
        try await town.account("a@example.org", password: "correct horse")
        let link = try await self.link(town, api)
        let done = try await town.form(
            "/signin", [("t", link), ("email", "a@example.org"), ("password", "correct horse")])
        #expect(done.status == 303)
        let location = try #require(done.header("Location"))
        #expect(location.hasPrefix(row.expected + "ckWebAuthToken=s1_"))
        #expect(location.contains("&ckSession=s1_"))
    }

    @Test func `X-13: a wrong password, an unknown address and a disabled account look the same`()
        async throws
    {
        let town = Neighbourhood()
        let api = try await town.apiToken()
        try await town.account("a@example.org", password: "correct horse")
        let off = try await town.account("off@example.org", password: "correct horse")
        _ = try await town.accounts.change(off) { $0.status = .disabled }
        try await town.account("none@example.org")
        var pages: Set<String> = []
        for (email, password) in [
            ("a@example.org", "wrong"), ("b@example.org", "correct horse"),
            ("off@example.org", "correct horse"), ("none@example.org", ""),
        ] {
            let link = try await self.link(town, api)
            let page = try await town.form(
                "/signin", [("t", link), ("email", email), ("password", password)])
            #expect(page.status == 200 && Neighbourhood.token(page) == nil)
            let nonce = try #require(
                page.header("Content-Security-Policy")?.split(separator: "'")[3])
            pages.insert(
                page.text.replacing(link, with: "").replacing(email, with: "")
                    .replacing(String(nonce), with: "").replacing(nonce.dropFirst(6), with: ""))
        }
        #expect(pages.count == 1)
    }

    @Test func `X-12: guessing one password is limited, and shuts out nobody elsewhere`()
        async throws
    {
        let town = Neighbourhood()
        try await town.account("a@example.org", password: "correct horse")
        let email = try #require(EmailAddress("a@example.org"))
        for _ in 0..<10 {
            #expect(try await town.accounts.prove(email, Secret("wrong"), from: "here") == .failed)
        }
        guard
            case .limited(let wait) = try await town.accounts.prove(
                email, Secret("correct horse"), from: "here")
        else {
            Issue.record("the eleventh try was judged")
            return
        }
        #expect((1...15 * 60_000).contains(wait))
        guard
            case .proven = try await town.accounts.prove(
                email, Secret("correct horse"), from: "elsewhere")
        else {
            Issue.record("the owner was shut out")
            return
        }
        town.world.advance(by: .milliseconds(wait))
        guard
            case .proven = try await town.accounts.prove(
                email, Secret("correct horse"), from: "here")
        else {
            Issue.record("the wait did not end")
            return
        }
        // An address that nobody has is limited just the same.
        let nobody = try #require(EmailAddress("nobody@example.org"))
        for _ in 0..<10 {
            #expect(try await town.accounts.prove(nobody, Secret("x"), from: "here") == .failed)
        }
        guard case .limited = try await town.accounts.prove(nobody, Secret("x"), from: "here")
        else {
            Issue.record("an unknown address is not limited")
            return
        }
    }

    @Test func `attempts to sign in are counted by what became of them`() async throws {
        let town = Neighbourhood()
        let api = try await town.apiToken()
        try await town.account("a@example.org", password: "correct horse")
        let link = try await self.link(town, api)
        for password in ["correct horse"] + Array(repeating: "wrong", count: 12) {
            _ = try await town.form(
                "/signin", [("t", link), ("email", "a@example.org"), ("password", password)])
        }
        _ = try await town.form(
            "/signin", [("t", link), ("email", "no address"), ("password", "x")])
        let counts = SignInService.Outcome.allCases.map { town.service.count($0) }
        // The first one is among the ten that count.
        #expect(counts.reduce(0, +) == 14)
        #expect(town.service.count(.proven) == 1 && town.service.count(.busy) == 0)
        #expect(town.service.count(.limited) >= 2 && town.service.count(.failed) >= 10)
    }

    @Test func `a form from another site, and what is no form, are refused`() async throws {
        let town = Neighbourhood()
        let api = try await town.apiToken()
        try await town.account("a@example.org", password: "correct horse")
        let link = try await self.link(town, api)
        let fields = [("t", link), ("email", "a@example.org"), ("password", "correct horse")]
        for origin in ["https://evil.example.org", "null", "http://ck.example.org.evil.org"] {
            #expect(try await town.form("/signin", fields, origin: origin).status == 403)
        }
        for target in ["/signin", "/signin?t=", "/signin?t=zzzz", "/signup?t=\(link)x", "/reset"] {
            #expect(
                try await town.send(WireRequest(method: "GET", target: target)).status == 400,
                "\(target)")
        }
        #expect(try await town.form("/signin", [("t", "\u{0}"), ("email", "%")]).status == 400)
        #expect(
            try await town.send(WireRequest(method: "PUT", target: "/signin")).status == 405)
        // A link is good for half an hour.
        town.world.advance(by: .seconds(31 * 60))
        #expect(try await town.form("/signin", fields).status == 400)
    }

    @Test func `what somebody typed comes back as text and never as markup`() async throws {
        let town = Neighbourhood()
        let api = try await town.apiToken()
        let link = try await self.link(town, api)
        let page = try await town.form(
            "/signin", [("t", link), ("email", "\"><script>alert(1)</script>"), ("password", "x")])
        #expect(!page.text.contains("<script>alert"))
        #expect(page.text.contains("&quot;&gt;&lt;script&gt;"))
    }

    @Test func `signing up makes one account for an address, and a Users record`() async throws {
        let town = Neighbourhood()
        let api = try await town.apiToken()
        let fields = [
            ("email", "New@example.org"), ("password", "long enough"), ("given", "Nia"),
            ("family", "O'<Lee>"), ("discoverable", "1"),
        ]
        let short = try await town.form(
            "/signup",
            [("t", try await self.link(town, api)), ("email", "x@y.z"), ("password", "short")])
        #expect(short.text.contains("8 to"))
        let done = try await town.form(
            "/signup", [("t", try await self.link(town, api))] + fields)
        let token = try #require(Neighbourhood.token(done), "\(done)")
        let caller = try await town.post("public/users/caller", api: api, user: token)
        #expect(caller.json["nameComponents"]["familyName"].text == "O'<Lee>")
        let name = try #require(caller.json["userRecordName"].text)
        let users = try await town.post(
            "public/records/lookup", ["records": [["recordName": .string(name)]]], api: api,
            user: token)
        #expect(users.json["records"][0]["recordType"] == "Users", "\(users)")
        #expect(users.json["records"][0]["created"]["userRecordName"].text == name)
        let twice = try await town.form(
            "/signup", [("t", try await self.link(town, api))] + fields)
        #expect(Neighbourhood.token(twice) == nil)

        let closed = Neighbourhood(signUpIsOpen: false)
        let there = try await closed.apiToken()
        let link = try await self.link(closed, there)
        #expect(
            try await closed.form("/signup", [("t", link)] + fields).status == 403)
    }

    @Test func `a new password ends every session; a reset link is good once and for a day`()
        async throws
    {
        let town = Neighbourhood()
        let api = try await town.apiToken()
        let id = try await town.account("a@example.org", password: "correct horse")
        let token = try await town.signIn(id)
        func status() async throws -> Int {
            town.world.advance(by: .seconds(1))
            return try await town.post("public/users/caller", api: api, user: token).status
        }
        #expect(try await status() == 200)
        let changed = try await town.form(
            "/password",
            [("email", "a@example.org"), ("password", "correct horse"), ("new", "battery staple")])
        #expect(changed.status == 200 && changed.text.contains("was changed"), "\(changed)")
        #expect(try await status() == 421)
        let email = try #require(EmailAddress("a@example.org"))
        #expect(
            try await town.accounts.prove(email, Secret("correct horse"), from: "x") == .failed)

        let old = try #require(try await town.accounts.makeReset(of: id))
        let secret = try #require(try await town.accounts.makeReset(of: id))
        // Another one replaces the first.
        #expect(try await town.form("/reset", [("s", old), ("new", "another one")]).status == 400)
        #expect(
            try await town.form("/reset", [("s", secret), ("new", "another one")]).status == 200)
        #expect(
            try await town.form("/reset", [("s", secret), ("new", "yet another")]).status == 400)
        guard
            case .proven(id, _) = try await town.accounts.prove(
                email, Secret("another one"), from: "x")
        else {
            Issue.record("the new password is not taken")
            return
        }
        let late = try #require(try await town.accounts.makeReset(of: id))
        town.world.advance(by: .seconds(86_401))
        #expect(
            try await town.form("/reset", [("s", late), ("new", "too late now")]).status == 400)
    }

    // MARK: Whose window gets the token (security audit 7)

    static let noOrigins = [
        "null", "javascript:alert(1)", "*", "https://", "https://a b", "ftp://app.example.org",
        "https://app.example.org/path", "https://me@app.example.org", "https://app.example.org:0",
        "https://app.example.org:99999", "app.example.org", "https://[::1", "https://a\"b",
    ]

    @Test(arguments: noOrigins)
    func `security audit 7: only an origin of the web is one`(text: String) {
        #expect(WebOrigin(text) == nil)
    }

    @Test func `security audit 7: origins of the web are taken as they are`() {
        for text in [
            "https://app.example.org", "http://localhost:3000", "https://[2001:db8::1]:8443",
            "HTTPS://APP.example.org", "https://xn--bcher-kva.example",
        ] {
            #expect(WebOrigin(text)?.text == text)
        }
        #expect(WebOrigin(of: "https://auth.example.org/x?y")?.text == "https://auth.example.org")
    }

    @Test func `security audit 7: the page names the origin that gets the token`() async throws {
        let town = Neighbourhood()
        let api = try await town.apiToken(in: Neighbourhood.production)
        let answer = try await town.post(
            "public/users/caller", api: api, in: Neighbourhood.production,
            headers: [("Origin", "https://evil.example")])
        let link = try Neighbourhood.link(answer)
        for page in ["/signin", "/signup"] {
            let shown = try await town.send(
                WireRequest(method: "GET", target: "\(page)?t=\(link)"))
            #expect(
                shown.text.contains(
                    "This signs you in to <strong><bdi>https://evil.example</bdi></strong>."),
                "\(page)")
        }
    }

    @Test(arguments: [nil, "null", "javascript:alert(1)"])
    func `security audit 7: outside development a token is never posted to any window`(
        origin: String?
    ) async throws {
        for container in [Neighbourhood.production, Neighbourhood.container] {
            let town = Neighbourhood()
            let api = try await town.apiToken(in: container)
            try await town.account("a@example.org", password: "correct horse")
            let answer = try await town.post(
                "public/users/caller", api: api, in: container,
                headers: origin.map { [("Origin", $0)] } ?? [])
            let link = try Neighbourhood.link(answer)
            let done = try await town.form(
                "/signin", [("t", link), ("email", "a@example.org"), ("password", "correct horse")])
            #expect(done.status == 200)
            let isPosted = done.text.contains("postMessage")
            #expect(isPosted == (container.environment == .development), "\(container)")
            #expect(done.text.contains("[\"*\"]") == isPosted)
            #expect(done.text.contains("Web-auth token"))
        }
    }

    // MARK: Passwords and sessions (security audit 8)

    @Test func `security audit 8: a sign-in that proved the old password opens no session`()
        async throws
    {
        let town = Neighbourhood()
        let id = try await town.account("a@example.org", password: "correct horse")
        let email = try #require(EmailAddress("a@example.org"))
        guard
            case .proven(id, let password) = try await town.accounts.prove(
                email, Secret("correct horse"), from: "x")
        else {
            Issue.record("the password is not taken")
            return
        }
        #expect(try await town.accounts.setPassword(Secret("battery staple"), of: id))
        let late = try await town.accounts.openSession(
            of: id, provenBy: password, in: Neighbourhood.container, stays: false, agent: "")
        #expect(late == nil)
        #expect(try await town.accounts.sessions(of: id).isEmpty)
    }

    /// Nodes' clocks differ: a session may be opened in the future by the clock of the node that
    /// changes the password.
    @Test func `security audit 8: a new password ends sessions of nodes whose clock is ahead`()
        async throws
    {
        let town = Neighbourhood()
        let api = try await town.apiToken()
        let id = try await town.account("a@example.org", password: "correct horse")
        town.world.jumpWall(milliseconds: 5_000)
        let token = try await town.signIn(id)
        town.world.jumpWall(milliseconds: -4_000)
        #expect(try await town.accounts.setPassword(Secret("battery staple"), of: id))
        town.authenticator.forget()
        town.world.advance(by: .seconds(10))
        #expect(try await town.post("public/users/caller", api: api, user: token).status == 421)
        // And who signs in with the new one, at a node whose clock is behind, is signed in.
        town.world.jumpWall(milliseconds: -20_000)
        let fresh = try await town.signIn(id)
        #expect(try await town.post("public/users/caller", api: api, user: fresh).status == 200)
    }

    @Test func `security audit 8: who is disabled and enabled again signs in anew`() async throws {
        let town = Neighbourhood()
        let api = try await town.apiToken()
        let id = try await town.account("a@example.org", password: "correct horse")
        let token = try await town.signIn(id)
        #expect(try await town.accounts.disable(id))
        #expect(
            try await town.accounts.openSession(
                of: id, provenBy: nil, in: Neighbourhood.container, stays: false, agent: "") == nil)
        _ = try await town.accounts.change(id) { $0.status = .active }
        town.authenticator.forget()
        #expect(try await town.post("public/users/caller", api: api, user: token).status == 421)
        let again = try await town.signIn(id)
        #expect(try await town.post("public/users/caller", api: api, user: again).status == 200)
    }

    @Test func `security audit 8: a try that was not made is not counted`() async throws {
        let hasher = PasswordHasher(
            cost: .init(memoryKibibytes: 64, passes: 1), waitingCountMax: 1)
        let town = Neighbourhood(hasher: hasher)
        let id = try await town.account("a@example.org", password: "correct horse")
        let email = try #require(EmailAddress("a@example.org"))
        var room = hasher.reserve()
        #expect(room != nil)
        for _ in 0..<400 {
            #expect(try await town.accounts.prove(email, Secret("x"), from: "here") == .busy)
        }
        room = nil
        _ = room
        guard
            case .proven(id, _) = try await town.accounts.prove(
                email, Secret("correct horse"), from: "here")
        else {
            Issue.record("tries that were not made were counted")
            return
        }
    }

    @Test
    func
        `security audit 8, proxies: forms come from the address in signIn.url, whatever Host says`()
        async throws
    {
        // The proxy sends its own Host, ck.example.org.
        let town = Neighbourhood(signInBase: "https://auth.example.org")
        let api = try await town.apiToken()
        try await town.account("a@example.org", password: "correct horse")
        func status(_ origin: String?) async throws -> Int {
            let answer = try await town.post("public/users/caller", api: api)
            #expect(
                answer.json["redirectURL"].text?.hasPrefix("https://auth.example.org/signin?t=")
                    == true)
            return try await town.form(
                "/signin",
                [
                    ("t", try Neighbourhood.link(answer)), ("email", "a@example.org"),
                    ("password", "correct horse"),
                ], origin: origin
            ).status
        }
        #expect(try await status("https://auth.example.org") == 200)
        // A foreign name that points at this server: Host and Origin agree, and that is not enough.
        #expect(try await status("http://ck.example.org") == 403)
        #expect(try await status("https://auth.example.org.evil.example") == 403)
    }
}
