import StratusContainers
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime

/// The page `/app-passwords`: a person makes, lists and withdraws the passwords that programs show.
///
/// The account's password is asked for once. After that every form carries a text that proves who
/// sends it, for a quarter of an hour. There are no cookies, so another site's page has nothing
/// that it could make a browser send.
extension SignInService {
    func appPasswords(_ form: URLQuery, _ request: HTTPRequest, _ html: PeoplePage)
        async throws -> HTTPResponse
    {
        guard let visit = form["v"] else { return try await self.begin(form, request, html) }
        guard let visitor = try await self.accounts.visitor(visit) else {
            return html.appPasswordSignIn(problem: html.text.appPasswords.signedOut)
        }
        let id = visitor.id
        switch form["do"] {
        case "add":
            let label = form["label"] ?? ""
            let containers = try await self.accounts.containers(of: id)
            guard Session.AppPassword.isLabel(label) else {
                return try await self.list(
                    id, visit, html,
                    problem: PeopleText.fill(
                        html.text.appPasswords.nameLength, ["\(Session.AppPassword.labelSizeMax)"]))
            }
            // Of containers that the person has used already: nobody else's are told or touched.
            guard let container = containers.first(where: { Self.text($0) == form["container"] })
            else {
                return try await self.list(
                    id, visit, html, problem: html.text.appPasswords.chooseApp)
            }
            let kind = Session.AppPassword(
                label: label, isReadOnly: form["readOnly"] == "1",
                showsAll: form["everything"] == "1")
            switch try await self.directory.makeAppPassword(
                kind, of: id, provenBy: visitor.generation, in: container)
            {
            case .made(let password, _):
                return try await self.list(
                    id, visit, html, made: (label: label, password: password))
            case .noAccount: return html.appPasswordSignIn(problem: html.text.problems.wrong)
            case .tooMany:
                return try await self.list(
                    id, visit, html,
                    problem: PeopleText.fill(
                        html.text.appPasswords.tooMany, ["\(Accounts.appPasswordCountMax)"]))
            }
        case "withdraw":
            let known = try await self.accounts.appPasswords(of: id).first {
                $0.id == form["id"]
            }
            guard let known,
                try await self.accounts.revokeAppPassword(known.id, of: id, in: known.container)
            else {
                return try await self.list(
                    id, visit, html, problem: html.text.appPasswords.withdrawnAlready)
            }
            self.authenticator.forget()
            return try await self.list(id, visit, html)
        default: return try await self.list(id, visit, html)
        }
    }

    private func begin(_ form: URLQuery, _ request: HTTPRequest, _ html: PeoplePage)
        async throws -> HTTPResponse
    {
        let typed = form["email"] ?? ""
        guard let email = EmailAddress(typed), let password = form["password"],
            (1...Directory.passwordLength.upperBound).contains(password.utf8.count)
        else {
            self.note(.failed)
            return html.appPasswordSignIn(email: typed, problem: html.text.problems.wrong)
        }
        switch try await self.accounts.prove(
            email, Secret(password), from: SocketAddress.site(of: request.peer))
        {
        case .failed:
            self.note(.failed)
            return html.appPasswordSignIn(email: typed, problem: html.text.problems.wrong)
        case .limited(let wait):
            self.note(.limited)
            return html.appPasswordSignIn(
                email: typed, problem: html.limited(wait), status: 429)
        case .busy:
            self.note(.busy)
            return html.appPasswordSignIn(
                email: typed, problem: html.text.problems.busy, status: 503)
        case .proven(let id, let generation):
            self.note(.proven)
            guard let visit = try await self.accounts.visit(of: id, provenBy: generation) else {
                return html.appPasswordSignIn(email: typed, problem: html.text.problems.wrong)
            }
            return try await self.list(id, visit, html)
        }
    }

    private func list(
        _ id: AccountID, _ visit: String, _ html: PeoplePage, problem: String? = nil,
        made: (label: String, password: String)? = nil
    ) async throws -> HTTPResponse {
        let passwords = try await self.accounts.appPasswords(of: id)
        // What people use comes before what developers try.
        let containers = try await self.accounts.containers(of: id).sorted {
            ($0.environment == .production ? 0 : 1, $0.container)
                < ($1.environment == .production ? 0 : 1, $1.container)
        }.map(Self.text)
        return html.appPasswords(
            passwords.map {
                (
                    id: $0.id, label: $0.kind.label, container: Self.text($0.container),
                    made: String(WallTime.text($0.madeMilliseconds).prefix(10)),
                    isReadOnly: $0.kind.isReadOnly, showsAll: $0.kind.showsAll
                )
            }, of: containers, visit: visit, problem: problem, made: made)
    }

    private static func text(_ container: ContainerReference) -> String {
        "\(container.container) \(container.environment.name)"
    }
}

extension PeoplePage {
    typealias ShownAppPassword = (
        id: String, label: String, container: String, made: String, isReadOnly: Bool,
        showsAll: Bool
    )

    func appPasswordSignIn(
        email: String = "", problem: String? = nil, status: Int = 200
    ) -> HTTPResponse {
        let words = self.text.appPasswords
        return self.page(
            status, title: words.title,
            """
            <p>\(Self.escape(words.intro))</p>
            \(self.problem(problem))
            \(self.form("/app-passwords"))
            \(self.emailField(email))
            \(self.passwordField("password", self.text.signIn.password, "current-password"))
            \(self.button(words.proceed))
            </form>
            """)
    }

    func appPasswords(
        _ passwords: [ShownAppPassword], of containers: [String], visit: String,
        problem: String?, made: (label: String, password: String)?
    ) -> HTTPResponse {
        let words = self.text.appPasswords
        var content = self.problem(problem)
        if let made {
            content += """
                <p role="status">\(self.fill(words.copy, [made.label]))</p>
                <label>\(Self.escape(words.one))\
                <input readonly value="\(Self.escape(made.password))"></label>

                """
        }
        if passwords.isEmpty { content += "<p>\(Self.escape(words.none))</p>\n" }
        for password in passwords { content += self.appPassword(password, visit: visit) }
        guard !containers.isEmpty else {
            content += "<p>\(Self.escape(words.noApp))</p>"
            return self.page(200, title: words.title, content)
        }
        let options = containers.map {
            "<option value=\"\(Self.escape($0))\">\(Self.escape($0))</option>"
        }.joined()
        content += """
            <h2>\(Self.escape(words.newOne))</h2>
            \(self.form("/app-passwords"))\(Self.hidden("v", visit))\(Self.hidden("do", "add"))
            \(self.textField("label", words.name, "off", ""))
            <label>\(Self.escape(words.app))<select name="container">\(options)</select></label>
            \(self.check("readOnly", words.readOnly))
            \(self.check("everything", words.showsAll))
            \(self.button(words.submit))
            </form>
            """
        return self.page(200, title: words.title, content)
    }

    /// Withdrawing ends what a program has, so it takes two steps.
    private func appPassword(_ password: ShownAppPassword, visit: String) -> String {
        let words = self.text.appPasswords
        let kind = [
            password.container, password.showsAll ? words.everything : words.documents,
            password.isReadOnly ? words.reading : words.writing,
        ].joined(separator: ", ")
        return """
            <p><strong>\(Self.name(password.label))</strong><br>\(Self.escape(kind))<br>\
            \(Self.escape(PeopleText.fill(words.made, [password.made])))</p>
            <details><summary>\(Self.escape(words.withdraw))</summary>
            \(self.form("/app-passwords"))\(Self.hidden("v", visit))\
            \(Self.hidden("do", "withdraw"))\(Self.hidden("id", password.id))
            <p>\(Self.escape(words.withdrawing))</p>
            <button type="submit" class="away">\
            \(Self.escape(PeopleText.fill(words.withdrawThis, [password.label])))</button>\
            </form></details>
            <hr>

            """
    }
}
