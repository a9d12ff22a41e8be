import StratusAdminModel
import StratusContainers
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRuntime

/// People with accounts: the list of them, and what is changed of one.
enum PersonPages {
    private static let pageMax = 200

    static let routes: [AdminRoute] = [
        AdminRoute(
            "POST", "/v1/users/{email}/change", body: "email, givenName, familyName",
            answer: "nothing; a new address is unproven"
        ) { try await Self.change($0, $0.body()) },
        AdminRoute(
            "POST", "/v1/users/{email}/verification", body: "verified", answer: "nothing"
        ) { try await Self.vouch($0, $0.body()) },
        AdminRoute(
            "POST", "/v1/users/{email}/invitation",
            answer: "nothing; an e-mail with a link to choose a password is on its way"
        ) { try await Self.invite($0) },
        AdminRoute(
            "DELETE", "/v1/users/{email}/sessions/{session}", answer: "nothing"
        ) { try await Self.endSession($0) },
    ]

    static func list(_ exchange: AdminExchange) async throws -> HTTPResponse {
        var after: AccountID?
        if let text = exchange.query?["after"] {
            guard let id = AccountID(text) else {
                throw AdminRefusal.bad("'after' must be an account's 32 hexadecimal digits")
            }
            after = id
        }
        var limit = Self.pageMax
        if let text = exchange.query?["limit"] {
            guard let number = Int(text), (1...Self.pageMax).contains(number) else {
                throw AdminRefusal.bad("'limit' must be 1 to \(Self.pageMax)")
            }
            limit = number
        }
        let ids = try await exchange.accounts.page(after: after, limit: limit)
        var answer = UsersAnswer()
        for (id, account) in zip(ids, try await exchange.accounts.accounts(ids)) {
            // One that goes meanwhile is left out.
            guard let account else { continue }
            answer.users.append(
                UserRow {
                    $0.email = account.email
                    $0.id = id.description
                    $0.isDisabled = account.status == .disabled
                    $0.verified = account.verification.name
                    $0.created = WallTime.text(account.createdMilliseconds)
                    $0.lastSignIn = account.lastSignIn
                })
        }
        if ids.count == limit { answer.next = ids.last?.description }
        return AdminAnswer.json(answer)
    }

    private static func change(_ exchange: AdminExchange, _ body: UserChangeBody)
        async throws -> HTTPResponse
    {
        let id = try await UserPages.account(exchange)
        for name in [body.givenName, body.familyName] where (name?.count ?? 0) > 100 {
            throw AdminRefusal.bad("a name has 100 characters at most")
        }
        if let text = body.email {
            guard let address = EmailAddress(text) else {
                throw AdminRefusal.bad("'\(text)' is not an e-mail address")
            }
            try UserPages.requireMailable(address)
            switch try await exchange.accounts.move(id, to: address) {
            case .done: break
            case .noAccount: throw AdminRefusal.missing("user")
            case .taken:
                throw AdminRefusal(
                    409, .exists, "somebody else has an account with the address \(address.text)")
            }
        }
        _ = try await exchange.accounts.change(id) { account in
            if let name = body.givenName { account.givenName = name }
            if let name = body.familyName { account.familyName = name }
        }
        return await exchange.done("user change", "\(id)")
    }

    private static func vouch(_ exchange: AdminExchange, _ body: VerificationBody)
        async throws -> HTTPResponse
    {
        guard let isVerified = body.isVerified else {
            throw AdminRefusal.bad("'verified' must be true or false")
        }
        let id = try await UserPages.account(exchange)
        _ = try await exchange.accounts.change(id) {
            // What the person has proven is more than what an administrator says.
            if !isVerified {
                $0.verification = .unproven
            } else if $0.verification == .unproven {
                $0.verification = .administrator
            }
        }
        return await exchange.done(isVerified ? "user verify" : "user unverify", "\(id)")
    }

    private static func invite(_ exchange: AdminExchange) async throws -> HTTPResponse {
        guard let desk = try exchange.directory.email else {
            throw AdminRefusal(
                409, .refused,
                "this node sends no e-mail: set 'signIn.mail', or send the link of 'stratusctl user "
                    + "reset-link' yourself")
        }
        let id = try await UserPages.account(exchange)
        guard let account = try await exchange.accounts.account(id),
            let address = EmailAddress(account.email)
        else { throw AdminRefusal.missing("user") }
        guard address.isMailable else {
            throw AdminRefusal.bad("no e-mail can be sent to '\(account.email)'")
        }
        guard account.status == .active else {
            throw AdminRefusal(409, .refused, "the account is disabled: enable it first")
        }
        // Before it is made: whoever has the link can sign in as this person.
        try await exchange.note("user invite", "\(id)")
        guard let secret = try await exchange.accounts.makeReset(of: id, mailedTo: address) else {
            throw AdminRefusal.missing("user")
        }
        guard desk.sender.enqueue({ desk.invitation(to: address, secret: secret) }) else {
            throw AdminRefusal(
                503, .tryAgainLater, "too many e-mails wait to be sent: try again in a moment")
        }
        return AdminAnswer.json(EmptyAnswer(), status: 202)
    }

    private static func endSession(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let id = try await UserPages.account(exchange)
        let session = exchange.parameter("session")
        let known = try await exchange.accounts.sessions(of: id).first {
            Hexadecimal.text($0.name) == session
        }
        guard let known else {
            throw AdminRefusal(
                404, .notFound,
                "this person has no session '\(session)': 'stratusctl user show' shows those there are"
            )
        }
        try await exchange.accounts.closeSession(known.name, of: id)
        return await exchange.done("user sign-out", "\(id) session \(session)")
    }
}

extension Account {
    /// Nil: never.
    var lastSignIn: String? {
        self.lastSignInMilliseconds == 0 ? nil : WallTime.text(self.lastSignInMilliseconds)
    }
}
