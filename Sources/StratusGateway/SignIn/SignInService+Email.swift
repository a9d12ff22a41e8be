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
        _ html: PeoplePage
    ) -> HTTPResponse {
        var fields = PeoplePage.SignUpFields()
        if let proof {
            guard let address = self.accounts.provenAddress(proof) else {
                return html.message(400, html.text.problems.oldSignUp)
            }
            fields.email = address.text
            fields.proof = proof
        } else if self.email != nil {
            return html.askForProof(link: text, to: receiver)
        }
        fields.isUnchecked = proof == nil && !self.settings.addressesAreTrusted
        return html.signUp(link: text, to: receiver, fields: fields)
    }

    func verification(of fields: PeoplePage.SignUpFields) -> Account.Verification {
        if fields.proof != nil { return .proof }
        return self.settings.addressesAreTrusted ? .administrator : .unproven
    }

    /// Sends a link by which the account can be made, or the word that there is one.
    func sendProof(
        _ text: String, _ form: URLQuery, _ link: SignInLink, _ receiver: SignInReceiver,
        _ request: HTTPRequest, _ html: PeoplePage
    ) async throws -> HTTPResponse {
        let typed = form["email"] ?? ""
        let app = html.app?.name ?? link.container.container
        func again(_ problem: String, _ status: Int = 200) -> HTTPResponse {
            html.askForProof(
                link: text, to: receiver, email: typed, problem: problem, status: status)
        }
        guard let desk = self.email, let address = EmailAddress(typed), address.isMailable else {
            return again(html.text.problems.notAnAddress)
        }
        if let wait = try await self.accounts.countEmail(
            to: address, from: SocketAddress.site(of: request.peer))
        {
            return again(html.limited(wait), 429)
        }
        let (accounts, words) = (self.accounts, html.text)
        let isTaken = desk.sender.enqueue {
            if (try? await accounts.account(of: address)) != nil {
                return desk.alreadyThere(to: address, app: app, in: words)
            }
            return desk.signUp(
                to: address, app: app, link: text, proof: accounts.proof(of: address), in: words)
        }
        guard isTaken else { return again(html.text.problems.busy, 503) }
        return html.isOnItsWay(to: address)
    }

    /// Sends a link to choose a new password, where somebody has the address.
    func sendReset(_ form: URLQuery, _ request: HTTPRequest, _ html: PeoplePage)
        async throws -> HTTPResponse
    {
        let typed = form["email"] ?? ""
        guard let desk = self.email else { return html.forgot(canSend: false) }
        guard let address = EmailAddress(typed), address.isMailable else {
            return html.forgot(
                canSend: true, email: typed, problem: html.text.problems.notAnAddress)
        }
        if let wait = try await self.accounts.countEmail(
            to: address, from: SocketAddress.site(of: request.peer))
        {
            return html.forgot(
                canSend: true, email: typed, problem: html.limited(wait), status: 429)
        }
        let (accounts, words) = (self.accounts, html.text)
        let isTaken = desk.sender.enqueue {
            guard let id = try? await accounts.account(of: address),
                let account = try? await accounts.account(id), account.status == .active,
                let secret = try? await accounts.makeReset(of: id, mailedTo: address)
            else { return nil }
            return desk.reset(to: address, secret: secret, in: words)
        }
        guard isTaken else {
            return html.forgot(
                canSend: true, email: typed, problem: html.text.problems.busy, status: 503)
        }
        return html.isOnItsWay(to: address)
    }
}

extension PeoplePage {
    func askForProof(
        link: String, to receiver: SignInReceiver, email: String = "", problem: String? = nil,
        status: Int = 200
    ) -> HTTPResponse {
        let words = self.text.account
        return self.page(
            status, title: words.title,
            """
            \(self.purpose(receiver))
            \(self.problem(problem))
            \(self.form("/signup"))
            \(Self.hidden("t", link))
            \(self.emailField(email, isWrong: problem != nil && status == 200))
            \(self.button(words.sendLink))
            </form>
            <p>\(Self.escape(words.linkFollows))</p>
            <p>\(self.haveOne(link))</p>
            """)
    }

    func forgot(
        canSend: Bool, email: String = "", problem: String? = nil, status: Int = 200
    ) -> HTTPResponse {
        let words = self.text.password
        guard canSend else {
            return self.page(
                status, title: words.forgotTitle, "<p>\(Self.escape(words.noEmail))</p>")
        }
        return self.page(
            status, title: words.forgotTitle,
            """
            \(self.problem(problem))
            \(self.form("/forgot"))
            \(self.emailField(email, isWrong: problem != nil && status == 200))
            \(self.button(self.text.account.sendLink))
            </form>
            <p>\(Self.escape(words.linkFollows))</p>
            """)
    }

    /// The same for everybody.
    func isOnItsWay(to address: EmailAddress) -> HTTPResponse {
        let words = self.text.account
        return self.page(
            200, title: words.look,
            """
            <p role="status">\(self.fill(words.onItsWay, [address.text]))</p>
            <p>\(Self.escape(words.nothingCame))</p>
            """)
    }
}
