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
    func appPasswords(_ form: URLQuery, _ request: HTTPRequest, _ html: SignInHTML)
        async throws -> HTTPResponse
    {
        guard let visit = form["v"] else { return try await self.begin(form, request, html) }
        guard let visitor = try await self.accounts.visitor(visit) else {
            return html.appPasswordSignIn(
                problem: "You were signed out here. Enter your password again.")
        }
        let id = visitor.id
        switch form["do"] {
        case "add":
            let label = form["label"] ?? ""
            let containers = try await self.accounts.containers(of: id)
            guard Session.AppPassword.isLabel(label) else {
                return try await self.list(
                    id, visit, html,
                    problem: "A name has 1 to \(Session.AppPassword.labelSizeMax) characters.")
            }
            // Of containers that the person has used already: nobody else's are told or touched.
            guard let container = containers.first(where: { Self.text($0) == form["container"] })
            else {
                return try await self.list(id, visit, html, problem: "Choose an app.")
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
            case .noAccount: return html.appPasswordSignIn(problem: Self.wrong)
            case .tooMany:
                return try await self.list(
                    id, visit, html,
                    problem: "You have \(Accounts.appPasswordCountMax) app passwords: withdraw one "
                        + "first.")
            }
        case "withdraw":
            let known = try await self.accounts.appPasswords(of: id).first {
                $0.id == form["id"]
            }
            guard let known,
                try await self.accounts.revokeAppPassword(known.id, of: id, in: known.container)
            else {
                return try await self.list(
                    id, visit, html, problem: "This password was withdrawn already.")
            }
            self.authenticator.forget()
            return try await self.list(id, visit, html)
        default: return try await self.list(id, visit, html)
        }
    }

    private func begin(_ form: URLQuery, _ request: HTTPRequest, _ html: SignInHTML)
        async throws -> HTTPResponse
    {
        let typed = form["email"] ?? ""
        guard let email = EmailAddress(typed), let password = form["password"],
            (1...Directory.passwordLength.upperBound).contains(password.utf8.count)
        else {
            self.note(.failed)
            return html.appPasswordSignIn(email: typed, problem: Self.wrong)
        }
        switch try await self.accounts.prove(
            email, Secret(password), from: Self.place(of: request.peer))
        {
        case .failed:
            self.note(.failed)
            return html.appPasswordSignIn(email: typed, problem: Self.wrong)
        case .limited(let wait):
            self.note(.limited)
            return html.appPasswordSignIn(
                email: typed, problem: Self.limited(wait), status: 429)
        case .busy:
            self.note(.busy)
            return html.appPasswordSignIn(email: typed, problem: Self.busy, status: 503)
        case .proven(let id, let generation):
            self.note(.proven)
            guard let visit = try await self.accounts.visit(of: id, provenBy: generation) else {
                return html.appPasswordSignIn(email: typed, problem: Self.wrong)
            }
            return try await self.list(id, visit, html)
        }
    }

    private func list(
        _ id: AccountID, _ visit: String, _ html: SignInHTML, problem: String? = nil,
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

extension SignInHTML {
    typealias ShownAppPassword = (
        id: String, label: String, container: String, made: String, isReadOnly: Bool,
        showsAll: Bool
    )

    func appPasswordSignIn(
        email: String = "", problem: String? = nil, status: Int = 200
    ) -> HTTPResponse {
        self.page(
            status, title: "App passwords",
            """
            <p>Programs that mount your documents show an app password instead of your own.</p>
            \(self.problem(problem))
            <form method="post" action="/app-passwords" autocomplete="on">
            \(Self.emailField(email))
            \(Self.passwordField("password", "Password", "current-password"))
            <button type="submit">Continue</button>
            </form>
            """)
    }

    func appPasswords(
        _ passwords: [ShownAppPassword], of containers: [String], visit: String,
        problem: String?, made: (label: String, password: String)?
    ) -> HTTPResponse {
        let hidden = "<input type=\"hidden\" name=\"v\" value=\"\(Self.escape(visit))\">"
        var content = self.problem(problem)
        if let made {
            content += """
                <p role="status">Copy the password of <strong>\(Self.escape(made.label))</strong> \
                into the program now. It is shown only here, and only once.</p>
                <label>App password<input readonly value="\(Self.escape(made.password))"></label>

                """
        }
        if passwords.isEmpty { content += "<p>You have no app passwords.</p>\n" }
        for password in passwords {
            // Withdrawing ends what a program has, so it takes two steps.
            content += """
                <p><strong>\(Self.escape(password.label))</strong><br>\
                \(Self.escape(password.container)), \
                \(password.showsAll ? "everything" : "Documents"), \
                \(password.isReadOnly ? "reading only" : "reading and writing")<br>\
                made on \(password.made)</p>
                <details><summary>Withdraw</summary>
                <form method="post" action="/app-passwords">\(hidden)\
                <input type="hidden" name="do" value="withdraw">\
                <input type="hidden" name="id" value="\(Self.escape(password.id))">
                <p>Programs that show this password are let in no more.</p>
                <button type="submit" class="away">Withdraw \(Self.escape(password.label))</button>\
                </form></details>
                <hr>

                """
        }
        guard !containers.isEmpty else {
            content += "<p>Sign in to an app first: it has no documents of yours yet.</p>"
            return self.page(200, title: "App passwords", content)
        }
        let options = containers.map {
            "<option value=\"\(Self.escape($0))\">\(Self.escape($0))</option>"
        }.joined()
        content += """
            <h2>A new one</h2>
            <form method="post" action="/app-passwords">\(hidden)\
            <input type="hidden" name="do" value="add">
            \(Self.textField("label", "Name, for instance of the program", "off", ""))
            <label>App<select name="container">\(options)</select></label>
            <label class="check"><input type="checkbox" name="readOnly" value="1"> For reading \
            only</label>
            <label class="check"><input type="checkbox" name="everything" value="1"> Shows \
            everything, and not the folder Documents alone</label>
            <button type="submit">Make the app password</button>
            </form>
            """
        return self.page(200, title: "App passwords", content)
    }
}
