import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime

/// What people ask for by e-mail: a proof of their address, and a link to choose a new password.
///
/// The answer is the same whether anybody has the address, and it leaves before anybody looks: the
/// message is made by ``EmailSender`` afterwards.
extension SignInService {
    func showSignUp(
        _ text: String, _ link: SignInLink, _ receiver: SignInReceiver, proof: String?,
        _ html: SignInHTML
    ) -> HTTPResponse {
        let app = link.container.container
        var fields = SignInHTML.SignUpFields()
        if let proof {
            guard let address = self.accounts.provenAddress(proof) else {
                return Self.tooOld(html, "sign up")
            }
            fields.email = address.text
            fields.proof = proof
        } else if self.email != nil {
            return html.askForProof(link: text, container: app, to: receiver)
        }
        fields.isUnchecked = proof == nil && !self.settings.addressesAreTrusted
        return html.signUp(link: text, container: app, to: receiver, fields: fields)
    }

    func verification(of fields: SignInHTML.SignUpFields) -> Account.Verification {
        if fields.proof != nil { return .proof }
        return self.settings.addressesAreTrusted ? .administrator : .unproven
    }

    /// Sends a link by which the account can be made, or the word that there is one.
    func sendProof(
        _ text: String, _ form: URLQuery, _ link: SignInLink, _ receiver: SignInReceiver,
        _ request: HTTPRequest, _ html: SignInHTML
    ) async throws -> HTTPResponse {
        let typed = form["email"] ?? ""
        let app = link.container.container
        func again(_ problem: String, _ status: Int = 200) -> HTTPResponse {
            html.askForProof(
                link: text, container: app, to: receiver, email: typed, problem: problem,
                status: status)
        }
        guard let desk = self.email, let address = EmailAddress(typed), address.isMailable else {
            return again("That is not an e-mail address.")
        }
        if let wait = try await self.accounts.countEmail(
            to: address, from: Self.place(of: request.peer))
        {
            return again(Self.limited(wait), 429)
        }
        let accounts = self.accounts
        let isTaken = desk.sender.enqueue {
            if (try? await accounts.account(of: address)) != nil {
                return desk.alreadyThere(to: address, app: app)
            }
            return desk.signUp(
                to: address, app: app, link: text, proof: accounts.proof(of: address))
        }
        guard isTaken else { return again(Self.busy, 503) }
        return html.isOnItsWay(to: address)
    }

    /// Sends a link to choose a new password, where somebody has the address.
    func sendReset(_ form: URLQuery, _ request: HTTPRequest, _ html: SignInHTML)
        async throws -> HTTPResponse
    {
        let typed = form["email"] ?? ""
        guard let desk = self.email else { return html.forgot(canSend: false) }
        guard let address = EmailAddress(typed), address.isMailable else {
            return html.forgot(
                canSend: true, email: typed, problem: "That is not an e-mail address.")
        }
        if let wait = try await self.accounts.countEmail(
            to: address, from: Self.place(of: request.peer))
        {
            return html.forgot(
                canSend: true, email: typed, problem: Self.limited(wait), status: 429)
        }
        let accounts = self.accounts
        let isTaken = desk.sender.enqueue {
            guard let id = try? await accounts.account(of: address),
                let account = try? await accounts.account(id), account.status == .active,
                let secret = try? await accounts.makeReset(of: id, mailedTo: address)
            else { return nil }
            return desk.reset(to: address, secret: secret)
        }
        guard isTaken else {
            return html.forgot(canSend: true, email: typed, problem: Self.busy, status: 503)
        }
        return html.isOnItsWay(to: address)
    }
}

extension SignInHTML {
    func askForProof(
        link: String, container: String, to receiver: SignInReceiver, email: String = "",
        problem: String? = nil, status: Int = 200
    ) -> HTTPResponse {
        self.page(
            status, title: "Create an account",
            """
            <p>to continue to <strong>\(Self.escape(container))</strong></p>
            \(Self.says(receiver))
            \(self.problem(problem))
            <form method="post" action="/signup" autocomplete="on">
            <input type="hidden" name="t" value="\(Self.escape(link))">
            \(Self.emailField(email))
            <button type="submit">Send me a link</button>
            </form>
            <p>You get an e-mail with a link. Open it to choose a password.</p>
            <p><a href="/signin?t=\(Self.escape(link))">I have an account</a></p>
            """)
    }

    func forgot(
        canSend: Bool, email: String = "", problem: String? = nil, status: Int = 200
    ) -> HTTPResponse {
        guard canSend else {
            return self.page(
                status, title: "Forgot your password?",
                "<p>This server sends no e-mail. Ask whoever runs it for a link with which you can "
                    + "choose a new password.</p>")
        }
        return self.page(
            status, title: "Forgot your password?",
            """
            \(self.problem(problem))
            <form method="post" action="/forgot" autocomplete="on">
            \(Self.emailField(email))
            <button type="submit">Send me a link</button>
            </form>
            <p>You get an e-mail with a link. Open it to choose a new password.</p>
            """)
    }

    /// The same for everybody.
    func isOnItsWay(to address: EmailAddress) -> HTTPResponse {
        self.page(
            200, title: "Look into your e-mail",
            """
            <p role="status">An e-mail is on its way to <strong>\(Self.escape(address.text))</strong>. \
            Open the link in it to go on.</p>
            <p>Nothing came? Wait a few minutes, look among unwanted mail, and check the address.</p>
            """)
    }
}
