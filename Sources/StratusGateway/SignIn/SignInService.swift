import StratusCluster
package import StratusContainers
import StratusHTTP
package import StratusIdentity
package import StratusModel
import StratusRecords
package import StratusRuntime

/// The pages where people sign in, sign up and choose a new password: what a 421's `redirectURL`
/// leads to.
///
/// They work without scripts up to the last step, handing the token to the window that asked, which
/// is a script's business anyway. Nothing on them comes from elsewhere, and nothing may frame them.
package final class SignInService: Sendable {
    package static let bodySizeMax: ByteCount = .kibibytes(16)

    package struct Settings: Sendable, Equatable {
        /// Whether anybody may make an account.
        package var signUpIsOpen = false
        /// Whether an address counts as its person's without a proof: in development.
        package var addressesAreTrusted = false
        /// How long a save may wait: what was let in before an end may arrive until then.
        package var commandDeadline: Duration = Limits().commandDeadline

        package init() {}
    }

    package let directory: Directory
    package let settings: Settings
    package var accounts: Accounts { self.directory.accounts }
    var email: EmailDesk? { self.directory.email }
    package var access: ContainerAccess { self.directory.access }
    package var authenticator: CredentialAuthenticator { self.directory.authenticator }
    private let log: Log
    private var store: IdentityStore { self.accounts.store }
    package var brands: Brands { Brands(self.store) }

    package init(
        authenticator: CredentialAuthenticator, settings: Settings = Settings(),
        keys: DatabaseKeys? = nil, email: EmailDesk? = nil, log: Log = .silent()
    ) {
        self.directory = Directory(
            authenticator, commandDeadline: settings.commandDeadline, form: .webServices,
            keys: keys, email: email)
        self.settings = settings
        self.log = log
    }

    /// What became of an attempt to sign in with a password.
    package enum Outcome: String, CaseIterable, Sendable { case proven, failed, limited, busy }

    private let outcomes = Outcome.allCases.map { _ in Counter() }

    /// Attempts that ended in this way since the start.
    package func count(_ outcome: Outcome) -> UInt64 { self.counter(outcome).value }

    func note(_ outcome: Outcome) { self.counter(outcome).add() }

    private func counter(_ outcome: Outcome) -> Counter {
        self.outcomes[Outcome.allCases.firstIndex(of: outcome) ?? 0]
    }

    package enum Page: String, CaseIterable, Sendable {
        case signIn = "/signin"
        case signUp = "/signup"
        case password = "/password"
        case reset = "/reset"
        case forgot = "/forgot"
        case appPasswords = "/app-passwords"
    }

    /// Draws what its pages may run.
    func html(at page: Page?, _ head: RequestHead) -> PeoplePage {
        let nonce = Base64URL.encode(self.store.draw(16))
        guard let page else {
            var html = PeoplePage(nonce: nonce)
            html.choose(nil, head)
            return html
        }
        return PeoplePage(nonce: nonce, at: page.rawValue, head)
    }

    /// The page as one of an app, with the app's look.
    func html(_ html: PeoplePage, of link: SignInLink, _ head: RequestHead) async throws
        -> PeoplePage
    {
        var html = html
        html.app = PeoplePage.App(
            container: link.container, server: self.server(head),
            brand: try await self.brands.brand(of: link.container))
        return html
    }

    /// What people call this server: the host of the address that the configuration names, or the
    /// one that they came by.
    private func server(_ head: RequestHead) -> String {
        let base = self.authenticator.signInBase ?? head.headers["Host"] ?? ""
        return String(base.split(separator: "/", omittingEmptySubsequences: true).last ?? "")
    }

    /// Answers a request by a method that ``SignInPages`` takes.
    func respond(to request: HTTPRequest, at page: Page?) async -> HTTPResponse {
        var html = self.html(at: page, request.head)
        guard let page else { return html.message(404, html.text.page.notFound) }
        do { try await self.authenticator.keepUp() } catch {
            return html.message(503, html.text.problems.unavailable)
        }
        switch request.head.method {
        case "GET", "HEAD":
            do { return try await self.show(page, request, html) } catch {
                return html.message(503, html.text.problems.unavailable)
            }
        case "POST":
            guard self.comesFromHere(request.head) else {
                return html.message(403, html.text.problems.otherSite)
            }
            let body: Bytes
            do throws(RequestBodyError) { body = try await request.body.collect() } catch {
                return html.message(
                    error == .tooLarge ? 413 : 400, html.text.problems.halfForm)
            }
            guard let text = String(validating: body, as: UTF8.self), let form = URLQuery(text)
            else {
                return html.message(400, html.text.problems.noForm)
            }
            html.choose(form["lang"], request.head)
            do { return try await self.take(page, form, request, html) } catch {
                return html.message(503, html.text.problems.unavailable)
            }
        default: preconditionFailure("another method is refused before")
        }
    }

    // MARK: Showing

    private func show(_ page: Page, _ request: HTTPRequest, _ html: PeoplePage) async throws
        -> HTTPResponse
    {
        let query = URLQuery(request.head.query)
        switch page {
        case .signIn, .signUp:
            let proof = page == .signUp ? query?["p"] : nil
            guard let text = query?["t"], let link = self.link(text, proof: proof) else {
                return html.message(400, html.text.problems.incompleteSignIn)
            }
            if page == .signUp, !self.settings.signUpIsOpen { return Self.closed(html) }
            let html = try await self.html(html, of: link, request.head)
            guard let receiver = try await self.receiver(of: link) else {
                return Self.unwelcome(html)
            }
            if page == .signUp {
                return self.showSignUp(text, link, receiver, proof: proof, html)
            }
            return html.signIn(
                link: text, to: receiver,
                canSignUp: self.settings.signUpIsOpen)
        case .password: return html.password()
        case .appPasswords: return html.appPasswordSignIn()
        case .forgot: return html.forgot(canSend: self.email != nil)
        case .reset:
            guard let secret = query?["s"], !secret.isEmpty else {
                return html.message(400, html.text.problems.incompleteLink)
            }
            guard try await self.accounts.isGood(reset: secret) else { return Self.usedUp(html) }
            return html.reset(secret: secret)
        }
    }

    private static func usedUp(_ html: PeoplePage) -> HTTPResponse {
        html.message(400, html.text.problems.usedLink)
    }

    /// - Parameter proof: with a good one the link may be too old: an e-mail is read when it is read.
    func link(_ text: String, proof: String? = nil) -> SignInLink? {
        guard let link = SignInLink(text: text, openedWith: self.store.keys.cipher),
            link.isAlive(at: self.store.now) || proof.flatMap(self.accounts.provenAddress) != nil
        else { return nil }
        return link
    }

    /// Nil: the app may not ask people to sign in, or not from there.
    private func receiver(of link: SignInLink) async throws -> SignInReceiver? {
        let token = try await self.authenticator.apiToken(link.tokenHash, in: link.container)
        if token == nil {
            guard try await self.authenticator.takesAnyToken(in: link.container) else {
                return nil
            }
        }
        return SignInReceiver(of: link, token)
    }

    private static func unwelcome(_ html: PeoplePage) -> HTTPResponse {
        html.message(400, html.text.problems.unwelcome)
    }

    private static func closed(_ html: PeoplePage) -> HTTPResponse {
        html.message(403, html.text.problems.closed)
    }

    // MARK: Taking forms

    private func take(
        _ page: Page, _ form: URLQuery, _ request: HTTPRequest, _ html: PeoplePage
    ) async throws -> HTTPResponse {
        switch page {
        case .signIn: try await self.signIn(form, request, html)
        case .signUp: try await self.signUp(form, request, html)
        case .password: try await self.changePassword(form, request, html)
        case .reset: try await self.resetPassword(form, request, html)
        case .forgot: try await self.sendReset(form, request, html)
        case .appPasswords: try await self.appPasswords(form, request, html)
        }
    }

    private func signIn(_ form: URLQuery, _ request: HTTPRequest, _ html: PeoplePage)
        async throws -> HTTPResponse
    {
        guard let text = form["t"], let link = self.link(text) else {
            return html.message(400, html.text.problems.oldSignIn)
        }
        let html = try await self.html(html, of: link, request.head)
        guard let receiver = try await self.receiver(of: link) else { return Self.unwelcome(html) }
        let typed = form["email"] ?? ""
        func again(_ problem: String, _ status: Int = 200) -> HTTPResponse {
            html.signIn(
                link: text, to: receiver,
                canSignUp: self.settings.signUpIsOpen, email: typed, problem: problem,
                status: status)
        }
        guard let email = EmailAddress(typed), let password = form["password"],
            (1...Directory.passwordLength.upperBound).contains(password.utf8.count)
        else {
            self.counter(.failed).add()
            return again(html.text.problems.wrong)
        }
        let proof = try await self.accounts.prove(
            email, Secret(password), from: SocketAddress.site(of: request.peer))
        switch proof {
        case .failed:
            self.counter(.failed).add()
            return again(html.text.problems.wrong)
        case .limited(let wait):
            self.counter(.limited).add()
            return again(html.limited(wait), 429)
        case .busy:
            self.counter(.busy).add()
            return again(html.text.problems.busy, 503)
        case .proven(let id, let password):
            self.counter(.proven).add()
            return try await self.hand(
                id, provenBy: password, link, stays: form["stay"] == "1", agent: request, html)
        }
    }

    private func signUp(_ form: URLQuery, _ request: HTTPRequest, _ html: PeoplePage)
        async throws -> HTTPResponse
    {
        guard self.settings.signUpIsOpen else { return Self.closed(html) }
        guard let text = form["t"], let link = self.link(text, proof: form["p"])
        else {
            return html.message(400, html.text.problems.oldSignIn)
        }
        let html = try await self.html(html, of: link, request.head)
        guard let receiver = try await self.receiver(of: link) else { return Self.unwelcome(html) }
        if self.email != nil, form["p"] == nil {
            return try await self.sendProof(text, form, link, receiver, request, html)
        }
        var fields = PeoplePage.SignUpFields()
        fields.email = form["email"] ?? ""
        fields.isUnchecked = !self.settings.addressesAreTrusted
        if let proof = form["p"] {
            guard let address = self.accounts.provenAddress(proof) else {
                return html.message(400, html.text.problems.oldSignUp)
            }
            fields.email = address.text
            fields.proof = proof
            fields.isUnchecked = false
        }
        fields.givenName = String((form["given"] ?? "").prefix(100))
        fields.familyName = String((form["family"] ?? "").prefix(100))
        fields.isDiscoverable = form["discoverable"] == "1"
        func again(_ problem: String, _ status: Int = 200) -> HTTPResponse {
            html.signUp(
                link: text, to: receiver, fields: fields,
                problem: problem, status: status)
        }
        guard let email = EmailAddress(fields.email) else {
            return again(html.text.problems.notAnAddress)
        }
        guard let password = form["password"],
            Directory.passwordLength.contains(password.utf8.count)
        else { return again(html.passwordRule) }
        guard let room = self.accounts.hasher.reserve() else {
            return again(html.text.problems.busy, 503)
        }
        if let wait = try await self.accounts.countTry(of: SocketAddress.site(of: request.peer)) {
            return again(html.limited(wait), 429)
        }
        var registration = Accounts.Registration(email: email, password: Secret(password))
        registration.givenName = fields.givenName
        registration.familyName = fields.familyName
        registration.isDiscoverable = fields.isDiscoverable
        registration.verification = self.verification(of: fields)
        switch try await self.accounts.register(registration, in: room) {
        case .taken:
            return again(html.text.problems.taken)
        case .busy: return again(html.text.problems.busy, 503)
        case .made(let id):
            let isHeard = fields.proof == nil || !receiver.isWindow
            guard isHeard, link.isAlive(at: self.store.now) else {
                return html.message(200, html.text.account.made)
            }
            return try await self.hand(
                id, provenBy: nil, link, stays: form["stay"] == "1", agent: request, html)
        }
    }

    private func changePassword(_ form: URLQuery, _ request: HTTPRequest, _ html: PeoplePage)
        async throws -> HTTPResponse
    {
        let typed = form["email"] ?? ""
        guard let new = form["new"], Directory.passwordLength.contains(new.utf8.count) else {
            return html.password(email: typed, problem: html.passwordRule)
        }
        guard let email = EmailAddress(typed), let password = form["password"] else {
            return html.password(email: typed, problem: html.text.problems.wrong)
        }
        switch try await self.accounts.prove(
            email, Secret(password), from: SocketAddress.site(of: request.peer))
        {
        case .failed: return html.password(email: typed, problem: html.text.problems.wrong)
        case .limited(let wait):
            return html.password(email: typed, problem: html.limited(wait), status: 429)
        case .busy:
            return html.password(email: typed, problem: html.text.problems.busy, status: 503)
        case .proven(let id, _):
            guard try await self.accounts.setPassword(Secret(new), of: id) else {
                return html.password(email: typed, problem: html.text.problems.busy, status: 503)
            }
            self.authenticator.forget()
            return html.message(200, html.text.password.changed)
        }
    }

    private func resetPassword(_ form: URLQuery, _ request: HTTPRequest, _ html: PeoplePage)
        async throws -> HTTPResponse
    {
        let secret = form["s"] ?? ""
        guard let new = form["new"], Directory.passwordLength.contains(new.utf8.count) else {
            return html.reset(secret: secret, problem: html.passwordRule)
        }
        guard let room = self.accounts.hasher.reserve() else {
            return html.reset(secret: secret, problem: html.text.problems.busy, status: 503)
        }
        if let wait = try await self.accounts.countTry(of: SocketAddress.site(of: request.peer)) {
            return html.reset(secret: secret, problem: html.limited(wait), status: 429)
        }
        switch try await self.accounts.redeem(reset: secret, password: Secret(new), in: room) {
        case .done: self.authenticator.forget()
        case .busy: return html.reset(secret: secret, problem: html.text.problems.busy, status: 503)
        case .refused:
            return Self.usedUp(html)
        }
        return html.message(200, html.text.password.wasSet)
    }

    // MARK: Handing the token over

    private func hand(
        _ id: AccountID, provenBy password: Accounts.PasswordGeneration?, _ link: SignInLink,
        stays: Bool, agent request: HTTPRequest, _ html: PeoplePage
    ) async throws -> HTTPResponse {
        guard let receiver = try await self.receiver(of: link) else { return Self.unwelcome(html) }
        guard try await self.access.use(link) else {
            return html.message(400, html.text.problems.usedSignIn)
        }
        guard
            let text = try await self.directory.open(
                id, provenBy: password, in: link.container, stays: stays,
                agent: request.head.headers["User-Agent"] ?? "")
        else {
            return html.message(400, html.text.problems.passwordChanged)
        }
        self.log.info(
            "signed in",
            [
                "request": .text(request.identity.uuid),
                "container": .text(link.container.container),
                "environment": .text(link.container.environment.name),
            ])
        switch receiver {
        case .callback(let url): return html.redirect(to: Self.appending(text, to: url))
        // Every one of a list is told, and the browser delivers to the one that is there.
        case .origins(let origins): return html.handOver(token: text, to: origins)
        case .opener: return html.handOver(token: text, to: ["*"])
        case .page: return html.show(token: text)
        }
    }

    static func appending(_ token: String, to callback: String) -> String {
        let encoded = PercentCoding.encode(token)
        return callback + (callback.utf8.contains(UInt8(ascii: "?")) ? "&" : "?")
            + "ckWebAuthToken=\(encoded)&ckSession=\(encoded)"
    }

    // MARK: Who sends

    /// Browsers say where a form came from. Where they do not, it was no browser.
    ///
    /// If the configuration names the address at which people sign in, that address counts and
    /// `Host` does not. A proxy may send its own `Host`, and a request by another name that was
    /// pointed at this server carries that name.
    private func comesFromHere(_ head: RequestHead) -> Bool {
        if let site = head.headers["Sec-Fetch-Site"], site != "same-origin" { return false }
        guard let origin = head.headers["Origin"] else { return true }
        if let base = self.authenticator.signInBase {
            return WebOrigin(of: base)?.isSame(as: origin) == true
        }
        guard let host = head.headers["Host"] else { return false }
        return origin == "https://" + host || origin == "http://" + host
    }
}
