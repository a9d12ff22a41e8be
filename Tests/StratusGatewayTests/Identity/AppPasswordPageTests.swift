import StratusDoubles
import StratusGateway
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime
import Testing

@testable import WireScenarios

/// The page on which people make, list and withdraw app passwords.
@Suite struct AppPasswordPageTests {
    private static let origin = "http://ck.example.org"
    private static let own = "iCloud.org.example.shelves development"

    private func visit(_ page: WireAnswer) throws -> String {
        let text = page.text
        let mark = try #require(text.firstRange(of: "name=\"v\" value=\""), "\(text)")
        return String(text[mark.upperBound...].prefix { $0 != "\"" })
    }

    private func town() async throws -> (Neighbourhood, AccountID) {
        let town = Neighbourhood()
        _ = try await town.makeContainer()
        let ann = try await town.account("ann@example.org", password: "correct horse")
        _ = try await town.signIn(ann)
        return (town, ann)
    }

    private func begin(_ town: Neighbourhood, _ password: String = "correct horse") async throws
        -> WireAnswer
    {
        try await town.form(
            "/app-passwords", [("email", "ann@example.org"), ("password", password)],
            origin: Self.origin)
    }

    private func act(
        _ town: Neighbourhood, _ fields: (String, String)..., origin: String = Self.origin
    ) async throws -> WireAnswer {
        try await town.form("/app-passwords", fields, origin: origin)
    }

    private func password(_ page: WireAnswer) -> String? {
        page.text.firstRange(of: "value=\"sd1_").map {
            "sd1_" + String(page.text[$0.upperBound...].prefix { $0 != "\"" })
        }
    }

    @Test func `a password is made, shown once, used and withdrawn`() async throws {
        let (town, ann) = try await self.town()
        let form = try await town.send(WireRequest(method: "GET", target: "/app-passwords"))
        #expect(form.status == 200 && form.text.contains("name=\"password\""))
        #expect(form.header("Cache-Control") == "no-store")
        #expect(form.header("X-Frame-Options") == "DENY")
        let policy = try #require(form.header("Content-Security-Policy"))
        #expect(
            policy.hasPrefix("default-src 'none';") && policy.contains("frame-ancestors 'none'"))

        let first = try await self.begin(town)
        #expect(first.text.contains("You have no app passwords") && first.text.contains(Self.own))
        #expect(first.header("Set-Cookie") == nil)
        let visit = try self.visit(first)
        let made = try await self.act(
            town, ("v", visit), ("do", "add"), ("label", "lap<top>"), ("container", Self.own),
            ("readOnly", "1"))
        let password = try #require(self.password(made), "\(made.text)")
        #expect(made.text.contains("lap&lt;top&gt;") && !made.text.contains("lap<top>"))
        #expect(made.text.contains("Documents, reading only"))
        var dav = DAVClient(town: town)
        dav.password = password
        #expect(try await dav.status("PROPFIND", "/Documents", [("Depth", "0")]) == 207)
        #expect(try await dav.status("PUT", "/Documents/a", body: "x") == 403)

        let again = try await self.act(town, ("v", visit))
        #expect(again.text.contains("lap&lt;top&gt;") && self.password(again) == nil)
        // Withdrawing takes two steps.
        #expect(again.text.contains("made on 2024-03-05"), "\(again.text)")
        #expect(again.text.contains("<details><summary>Withdraw</summary>"))
        let id = try #require(try await town.accounts.appPasswords(of: ann).first?.id)
        let gone = try await self.act(town, ("v", visit), ("do", "withdraw"), ("id", id))
        #expect(gone.text.contains("You have no app passwords"))
        town.world.advance(by: .seconds(2))
        #expect(try await dav.status("PROPFIND", "/Documents", [("Depth", "0")]) == 401)
        let twice = try await self.act(town, ("v", visit), ("do", "withdraw"), ("id", id))
        #expect(twice.text.contains("withdrawn already"))
    }

    @Test func `apps in production come before those in development`() async throws {
        let (town, ann) = try await self.town()
        _ = try await town.accounts.openSession(
            of: ann, provenBy: nil, in: Neighbourhood.production, stays: false, agent: "")
        let page = try await self.begin(town).text
        let production = try #require(page.firstRange(of: "shelves production</option>"))
        let development = try #require(page.firstRange(of: "shelves development</option>"))
        #expect(production.lowerBound < development.lowerBound)
    }

    @Test func `a person who types an address that leads nowhere gets a page, and a program JSON`()
        async throws
    {
        let (town, _) = try await self.town()
        func get(_ path: String, _ method: String = "GET", accept: String?) async throws
            -> WireAnswer
        {
            try await town.send(
                WireRequest(
                    method: method, target: path,
                    headers: accept.map { [(name: "Accept", value: $0)] } ?? [], body: []))
        }
        let browser = "text/html,application/xhtml+xml,*/*;q=0.8"
        let front = try await get("/", accept: browser)
        #expect(front.status == 200 && front.text.contains("href=\"/app-passwords\""))
        #expect(front.header("Content-Type") == "text/html; charset=utf-8")
        #expect(front.header("Content-Security-Policy")?.hasPrefix("default-src 'none';") == true)
        let nowhere = try await get("/nowhere", accept: browser)
        #expect(nowhere.status == 404 && nowhere.text.contains("There is no such page."))
        for (path, method, accept) in [
            ("/", "GET", nil), ("/", "GET", "*/*"), ("/nowhere", "POST", browser),
            ("/database/1/C/nowhere/public/records/query", "GET", browser),
        ] {
            let answer = try await get(path, method, accept: accept)
            #expect(answer.status == 404 && answer.json["serverErrorCode"] == "NOT_FOUND")
        }
    }

    @Test func `only who proves the account's password is let in, and not for long`() async throws {
        let (town, ann) = try await self.town()
        let wrong = try await self.begin(town, "wrong")
        #expect(wrong.text.contains("not right") && !wrong.text.contains("name=\"v\""))
        let visit = try self.visit(try await self.begin(town))
        let add = [("do", "add"), ("label", "x"), ("container", Self.own)]
        func isRefused(_ visit: String, _ what: String) async throws {
            let page = try await town.form(
                "/app-passwords", [("v", visit)] + add, origin: Self.origin)
            #expect(page.text.contains("Enter your password again"), "\(what)")
            #expect(try await town.accounts.appPasswords(of: ann).isEmpty, "\(what)")
        }
        try await isRefused("", "empty")
        try await isRefused("AAAA", "made up")
        try await isRefused(try await town.signIn(ann), "a web-auth token")
        let altered = (visit.first == "A" ? "B" : "A") + visit.dropFirst()
        try await isRefused(altered, "altered")
        // Another site's form.
        let foreign = try await town.form(
            "/app-passwords", [("v", visit)] + add, origin: "https://evil.example")
        #expect(foreign.status == 403)
        #expect(try await town.accounts.appPasswords(of: ann).isEmpty)
        // Between the proof and the making the account's password is changed.
        let visitor = try #require(try await town.accounts.visitor(visit))
        #expect(try await town.accounts.setPassword(Secret("meanwhile"), of: ann))
        let container = try #require(try await town.accounts.containers(of: ann).first)
        let late = try await town.accounts.makeAppPassword(
            Session.AppPassword(label: "x", isReadOnly: false, showsAll: false), of: ann,
            provenBy: visitor.generation, in: container)
        #expect(late == .noAccount)
        #expect(try await town.accounts.appPasswords(of: ann).isEmpty)
        // A new password ends the visit; so does time.
        #expect(try await town.accounts.setPassword(Secret("battery staple"), of: ann))
        try await isRefused(visit, "a new password")
        let later = try self.visit(try await self.begin(town, "battery staple"))
        town.world.advance(by: .seconds(15 * 60))
        try await isRefused(later, "too late")
    }

    @Test func `nobody reaches another one's passwords or containers`() async throws {
        let (town, ann) = try await self.town()
        let bob = try await town.account("bob@example.org", password: "other words")
        let page = try await town.form(
            "/app-passwords", [("email", "bob@example.org"), ("password", "other words")],
            origin: Self.origin)
        #expect(page.text.contains("Sign in to an app first"))
        let visit = try self.visit(
            try await self.begin(town))
        let made = try await self.act(
            town, ("v", visit), ("do", "add"), ("label", "laptop"), ("container", Self.own))
        #expect(self.password(made) != nil)
        let id = try #require(try await town.accounts.appPasswords(of: ann).first?.id)
        _ = try await town.signIn(bob)
        let bobs = try self.visit(
            try await town.form(
                "/app-passwords", [("email", "bob@example.org"), ("password", "other words")],
                origin: Self.origin))
        let taken = try await self.act(town, ("v", bobs), ("do", "withdraw"), ("id", id))
        #expect(taken.text.contains("withdrawn already") && !taken.text.contains("laptop"))
        #expect(try await town.accounts.appPasswords(of: ann).count == 1)
        for (label, container) in [
            ("", Self.own), (String(repeating: "x", count: 2_000), Self.own),
            ("x", "iCloud.org.example.shelves production"), ("x", "iCloud.other development"),
        ] {
            let page = try await self.act(
                town, ("v", bobs), ("do", "add"), ("label", label), ("container", container))
            #expect(page.text.contains("role=\"alert\""), "\(label.count) \(container)")
        }
        #expect(try await town.accounts.appPasswords(of: bob).isEmpty)
    }
}
