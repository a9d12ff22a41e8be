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

/// Signing up with a proof of the address, and forgotten passwords.
@Suite struct SignInEmailTests {
    /// Keeps what is to be sent until a test makes it.
    final class Outbox: EmailSender {
        private let waiting = Mutex<[@Sendable () async -> EmailMessage?]>([])
        private let isFull = Mutex(false)

        func enqueue(_ make: @escaping @Sendable () async -> EmailMessage?) -> Bool {
            if self.isFull.withLock({ $0 }) { return false }
            self.waiting.withLock { $0.append(make) }
            return true
        }

        func fill() { self.isFull.withLock { $0 = true } }

        func take() async -> [EmailMessage] {
            let all = self.waiting.withLock { waiting in
                defer { waiting = [] }
                return waiting
            }
            var messages: [EmailMessage] = []
            for make in all { if let message = await make() { messages.append(message) } }
            return messages
        }
    }

    private let outbox = Outbox()
    private let town: Neighbourhood

    init() {
        self.town = Neighbourhood(email: EmailDesk(self.outbox, base: "http://ck.example.org"))
    }

    private func link(_ api: String) async throws -> String {
        try Neighbourhood.link(try await self.town.post("public/users/caller", api: api))
    }

    /// The path that a message leads to.
    private func path(in message: EmailMessage) throws -> String {
        let line = try #require(
            message.body.split(separator: "\n").first {
                $0.hasPrefix("http://ck.example.org/") && $0.contains("?")
            })
        return String(line.dropFirst("http://ck.example.org".count))
    }

    private func query(_ path: String) throws -> [String: String] {
        let query = try #require(URLQuery(String(path.drop { $0 != "?" }.dropFirst())))
        return ["t", "p", "s"].reduce(into: [:]) { $0[$1] = query[$1] }
    }

    private func masked(_ page: WireAnswer, _ texts: String...) -> String {
        var text = page.text
        for nonce in page.header("Content-Security-Policy")?.split(separator: "'") ?? [] {
            guard nonce.hasPrefix("nonce-") else { continue }
            text = text.replacing(String(nonce.dropFirst("nonce-".count)), with: "N")
        }
        for one in texts { text = text.replacing(one, with: "") }
        return "\(page.status) \(text)"
    }

    @Test func `an account is made once its address is proven`() async throws {
        let api = try await self.town.apiToken()
        let link = try await self.link(api)
        let first = try await self.town.send(
            WireRequest(method: "GET", target: "/signup?t=\(link)"))
        #expect(first.text.contains("Send me a link") && !first.text.contains("password\""))
        let asked = try await self.town.form(
            "/signup", [("t", link), ("email", "Mara@Example.org")])
        #expect(asked.status == 200 && asked.text.contains("on its way"))
        #expect(Neighbourhood.token(asked) == nil)
        let message = try #require(await self.outbox.take().first)
        #expect(message.to == "Mara@Example.org")
        let address = try #require(EmailAddress("mara@example.org"))
        #expect(try await self.town.accounts.account(of: address) == nil)

        let path = try self.path(in: message)
        let form = try await self.town.send(WireRequest(method: "GET", target: path))
        #expect(form.status == 200 && form.text.contains("Mara@Example.org"))
        let proof = try #require(try self.query(path)["p"])
        let done = try await self.town.form(
            "/signup",
            [
                ("t", link), ("p", proof), ("password", "correct horse"), ("discoverable", "1"),
                // What somebody types beside the proof counts for nothing.
                ("email", "ceo@bigcorp.example"),
            ])
        // The window that the app opened is another one: nobody hears a token.
        #expect(done.text.contains("Your account was made"), "\(done)")
        #expect(Neighbourhood.token(done) == nil && !form.text.contains("signs you in"))
        let id = try #require(try await self.town.accounts.account(of: address))
        let account = try #require(try await self.town.accounts.account(id))
        #expect(account.verification == .proof && account.lastSignInMilliseconds == 0)
        let other = try #require(EmailAddress("ceo@bigcorp.example"))
        #expect(try await self.town.accounts.account(of: other) == nil)
    }

    @Test func `behind a callback an account that is made from an e-mail is signed in`()
        async throws
    {
        let api = try await self.town.apiToken(callback: "https://app.example.org/done")
        let link = try await self.link(api)
        _ = try await self.town.form("/signup", [("t", link), ("email", "mara@example.org")])
        let path = try self.path(in: try #require(await self.outbox.take().first))
        let proof = try #require(try self.query(path)["p"])
        let done = try await self.town.form(
            "/signup", [("t", link), ("p", proof), ("password", "correct horse")])
        #expect(done.header("Location")?.hasPrefix("https://app.example.org/done?") == true)
        let address = try #require(EmailAddress("mara@example.org"))
        let id = try #require(try await self.town.accounts.account(of: address))
        let account = try #require(try await self.town.accounts.account(id))
        #expect(account.lastSignInMilliseconds > 0)
    }

    @Test func `an e-mail that is read after the app's link has ended makes the account alone`()
        async throws
    {
        let link = try await self.link(try await self.town.apiToken())
        _ = try await self.town.form("/signup", [("t", link), ("email", "mara@example.org")])
        let path = try self.path(in: try #require(await self.outbox.take().first))
        self.town.world.advance(by: .seconds(23 * 3_600))
        let form = try await self.town.send(WireRequest(method: "GET", target: path))
        #expect(form.status == 200 && form.text.contains("mara@example.org"), "\(form)")
        let proof = try #require(try self.query(path)["p"])
        let fields = [("t", link), ("p", proof), ("password", "correct horse")]
        let done = try await self.town.form("/signup", fields)
        #expect(done.status == 200 && done.text.contains("Your account was made"), "\(done)")
        #expect(Neighbourhood.token(done) == nil)
        let address = try #require(EmailAddress("mara@example.org"))
        #expect(try await self.town.accounts.account(of: address) != nil)
        // Without a proof the link is too old for anything.
        let bare = try await self.town.send(
            WireRequest(method: "GET", target: "/signup?t=\(link)"))
        #expect(bare.status == 400)
        let signIn = try await self.town.send(
            WireRequest(method: "GET", target: "/signin?t=\(link)&p=\(proof)"))
        #expect(signIn.status == 400)
    }

    @Test func `a proof is altered, too old or another's: no account is made`() async throws {
        let api = try await self.town.apiToken()
        let address = try #require(EmailAddress("mara@example.org"))
        let proof = self.town.accounts.proof(of: address)
        let altered = (proof.first == "A" ? "B" : "A") + String(proof.dropFirst())
        for (text, minutes) in [(altered, 0), (proof, 24 * 60 + 1)] {
            self.town.world.advance(by: .seconds(60 * minutes))
            let link = try await self.link(api)
            let answer = try await self.town.form(
                "/signup", [("t", link), ("p", text), ("password", "correct horse")])
            #expect(answer.status == 400 && Neighbourhood.token(answer) == nil, "\(minutes)")
        }
        #expect(try await self.town.accounts.account(of: address) == nil)
    }

    @Test func `X-13: signing up and a forgotten password answer alike whoever asks`()
        async throws
    {
        try await self.town.account("a@example.org", password: "correct horse")
        let off = try await self.town.account("off@example.org", password: "correct horse")
        _ = try await self.town.accounts.change(off) { $0.status = .disabled }
        let api = try await self.town.apiToken()
        var pages: [String: Set<String>] = [:]
        for email in ["a@example.org", "nobody@example.org", "off@example.org"] {
            let link = try await self.link(api)
            let signUp = try await self.town.form("/signup", [("t", link), ("email", email)])
            let forgot = try await self.town.form("/forgot", [("email", email)])
            pages["signup", default: []].insert(self.masked(signUp, email, link))
            pages["forgot", default: []].insert(self.masked(forgot, email))
        }
        #expect(pages["signup"]?.count == 1 && pages["forgot"]?.count == 1)
        let messages = await self.outbox.take()
        #expect(
            messages.map { "\($0.to) \($0.subject)" } == [
                "a@example.org You have an account already",
                "a@example.org Choose a new password",
                "nobody@example.org Create your account",
                "off@example.org You have an account already",
            ])
    }

    @Test func `a forgotten password is set by a link that works once and proves the address`()
        async throws
    {
        let id = try await self.town.account("a@example.org", password: "correct horse")
        _ = try await self.town.accounts.change(id) { $0.verification = .unproven }
        _ = try await self.town.form("/forgot", [("email", "a@example.org")])
        let path = try self.path(in: try #require(await self.outbox.take().first))
        let secret = try #require(try self.query(path)["s"])
        let page = try await self.town.send(WireRequest(method: "GET", target: path))
        #expect(page.status == 200 && page.text.contains("Set the password"))
        let done = try await self.town.form(
            "/reset", [("s", secret), ("new", "another horse")])
        #expect(done.status == 200, "\(done)")
        let account = try #require(try await self.town.accounts.account(id))
        #expect(account.verification == .proof)
        // The page of a used link has no form.
        let again = try await self.town.send(WireRequest(method: "GET", target: path))
        #expect(again.status == 400 && !again.text.contains("<form"))
    }

    @Test func `an address gets five e-mails within an hour, and a full queue says so`()
        async throws
    {
        for count in 1...6 {
            let page = try await self.town.form("/forgot", [("email", "a@example.org")])
            #expect(page.status == (count <= 5 ? 200 : 429), "\(count)")
        }
        self.outbox.fill()
        let full = try await self.town.form("/forgot", [("email", "b@example.org")])
        #expect(full.status == 503)
        let bad = try await self.town.form("/forgot", [("email", "a>b@example.org")])
        #expect(bad.text.contains("not an e-mail address"))
    }

    @Test func `without e-mail the pages say so, and the address stays unproven`() async throws {
        let town = Neighbourhood()
        let api = try await town.apiToken()
        let link = try Neighbourhood.link(try await town.post("public/users/caller", api: api))
        let forgot = try await town.send(WireRequest(method: "GET", target: "/forgot"))
        #expect(forgot.text.contains("This server sends no e-mail"))
        let form = try await town.send(WireRequest(method: "GET", target: "/signup?t=\(link)"))
        #expect(form.text.contains("does not check that the address is yours"))
        let done = try await town.form(
            "/signup",
            [
                ("t", link), ("email", "ceo@bigcorp.example"), ("password", "correct horse"),
                ("discoverable", "1"),
            ])
        #expect(Neighbourhood.token(done) != nil)
        let address = try #require(EmailAddress("ceo@bigcorp.example"))
        let finder = PeopleFinder(town.accounts, town.access)
        #expect(try await finder.lookUp(address, in: Neighbourhood.container).person == nil)
        let id = try #require(try await town.accounts.account(of: address))
        _ = try await town.accounts.change(id) { $0.verification = .administrator }
        #expect(try await finder.lookUp(address, in: Neighbourhood.container).person != nil)
    }

    @Test func `another address is taken over whole, and is unproven`() async throws {
        let town = self.town
        let id = try await town.account("a@example.org", password: "correct horse")
        try await town.account("b@example.org")
        let (old, new) = (
            try #require(EmailAddress("a@example.org")), try #require(EmailAddress("c@example.org"))
        )
        let taken = try #require(EmailAddress("B@example.org"))
        #expect(try await town.accounts.move(id, to: taken) == .taken)
        #expect(try await town.accounts.move(id, to: new) == .done)
        #expect(try await town.accounts.account(of: old) == nil)
        #expect(try await town.accounts.account(of: new) == id)
        let account = try #require(try await town.accounts.account(id))
        #expect(account.email == "c@example.org" && account.verification == .unproven)
        guard case .proven = try await town.accounts.prove(new, Secret("correct horse"), from: "x")
        else {
            Issue.record("the password went with the address")
            return
        }
        // The old address is free, and a repeat changes nothing.
        #expect(try await town.accounts.move(id, to: new) == .done)
        // Nor does another spelling of it, of which somebody has had a proof.
        _ = try await town.accounts.change(id) { $0.verification = .proof }
        let spelling = try #require(EmailAddress("C@Example.org"))
        #expect(try await town.accounts.move(id, to: spelling) == .done)
        #expect(try await town.accounts.account(id)?.verification == .proof)
        #expect(try await town.accounts.move(id, to: new) == .done)
        try await town.account("a@example.org")
        // What was on its way to the old address makes no link any more.
        #expect(try await town.accounts.makeReset(of: id, mailedTo: old) == nil)
        #expect(try await town.accounts.makeReset(of: id, mailedTo: new) != nil)
    }

    /// Every change of an address that stops after so many commands.
    @Test(arguments: 0..<5)
    func `a change of address that stops midway leaves none behind, and a repeat goes on`(
        commands: Int
    ) async throws {
        let town = self.town
        let id = try await town.account("a@example.org")
        let old = try #require(EmailAddress("a@example.org"))
        let new = try #require(EmailAddress("c@example.org"))
        let left = Mutex(commands)
        town.router.beforeSubmit.withLock { hook in
            hook = { _ in
                left.withLock { left in
                    left -= 1
                    return left < 0 ? .notExecuted(retryAfter: .seconds(1)) : nil
                }
            }
        }
        await #expect(throws: RouteError.self) { try await town.accounts.move(id, to: new) }
        town.router.beforeSubmit.withLock { $0 = nil }
        // Given up midway: the address that was held is free once ten minutes have passed.
        let account = try #require(try await town.accounts.account(id))
        town.world.advance(by: .seconds(601))
        let other = account.email == old.text ? new : old
        #expect(try await town.accounts.account(of: other) == nil)
        #expect(try await town.accounts.move(id, to: new) == .done)
        #expect(try await town.accounts.account(of: new) == id)
        #expect(try await town.accounts.account(of: old) == nil)
        try await town.account("a@example.org")
    }

    /// A command to the partition of an address takes longer where no account has made it.
    @Test func `what a stranger asks for writes nothing where an account would be`() async throws {
        _ = try await self.town.account("mara@example.org")
        let homes = ["mara@example.org", "nobody@example.org"].map { text in
            ShardKey.account(
                "mail:"
                    + Hexadecimal.text(self.town.accounts.store.keys.hash(of: EmailAddress(text)!)))
        }
        self.town.router.written.withLock { $0 = [] }
        for email in ["mara@example.org", "nobody@example.org"] {
            let asked = try await self.town.form("/forgot", [("email", email)])
            #expect(asked.status == 200)
            let address = try #require(EmailAddress(email))
            let proof = try await self.town.accounts.prove(address, Secret("wrong"), from: "there")
            #expect(proof == .failed)
        }
        let written = self.town.router.written.withLock { $0 }
        #expect(!written.isEmpty && written.isDisjoint(with: homes))
    }
}
