import StratusAdminModel
import StratusContainers
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRuntime

/// People with accounts.
enum UserPages {
    static let routes: [AdminRoute] = [
        AdminRoute(
            "GET", "/v1/users",
            answer: "the accounts, a page at a time (after=ID, limit=N)"
        ) { try await PersonPages.list($0) },
        AdminRoute(
            "POST", "/v1/users",
            body: "email, password, givenName, familyName, isDiscoverable, unverified",
            answer: "the id of the account"
        ) { try await Self.addUser($0, $0.body()) },
        AdminRoute(
            "GET", "/v1/users/{email}",
            answer: "the account, its containers and its sessions"
        ) { try await Self.showUser($0) },
        AdminRoute(
            "DELETE", "/v1/users/{email}",
            answer: "what was erased, and what is outstanding"
        ) { try await Self.deleteUser($0) },
        AdminRoute(
            "POST", "/v1/users/{email}/disable",
            answer: "nothing"
        ) { try await Self.disable($0) },
        AdminRoute(
            "POST", "/v1/users/{email}/enable",
            answer: "nothing"
        ) { try await Self.enable($0) },
        AdminRoute(
            "POST", "/v1/users/{email}/sign-out",
            answer: "nothing"
        ) { try await Self.signOut($0) },
        AdminRoute(
            "POST", "/v1/users/{email}/reset-link",
            answer:
                "the path, and perhaps the address, of a page where the person chooses a password"
        ) { try await Self.makeResetLink($0) },
        AdminRoute(
            "POST", "/v1/users/{email}/export", isLong: true,
            body: "container, environment, files",
            answer:
                "what the container holds about the person, as JSON lines; with `files` also a line "
                + "with `fetch` for each file"
        ) { try await Self.export($0, $0.body()) },
        AdminRoute(
            "POST", "/v1/users/{email}/sign-in", body: "container, environment, stays",
            answer: "a web-auth token of a new session"
        ) { try await Self.signIn($0, $0.body()) },
    ]

    private static func addUser(_ exchange: AdminExchange, _ body: UserBody) async throws
        -> HTTPResponse
    {
        guard let email = body.email.flatMap({ EmailAddress($0) }) else {
            throw AdminRefusal.bad("'email' is missing or is not an e-mail address")
        }
        try Self.requireMailable(email)
        let password = body.password
        if let password, !Directory.passwordLength.contains(password.utf8.count) {
            throw AdminRefusal.bad(
                "a password has \(Directory.passwordLength.lowerBound) to "
                    + "\(Directory.passwordLength.upperBound) characters")
        }
        var registration = Accounts.Registration(
            email: email, password: password.map { Secret($0) })
        registration.givenName = body.givenName ?? ""
        registration.familyName = body.familyName ?? ""
        registration.isDiscoverable = body.isDiscoverable
        registration.verification = body.isUnverified ? .unproven : .administrator
        switch try await exchange.accounts.register(registration) {
        case .made(let id):
            await exchange.noteAfterwards("user add", "\(id)")
            return AdminAnswer.json(IDAnswer { $0.id = id.description }, status: 201)
        case .taken:
            throw AdminRefusal(
                409, .exists,
                "there is already an account with the address \(email.text): 'stratusctl user show' "
                    + "shows it")
        case .busy:
            throw AdminRefusal(
                503, .tryAgainLater, "too many passwords are being hashed: try again in a moment"
            )
        }
    }

    /// Refuses an address that no invitation and no new password could be sent to.
    static func requireMailable(_ address: EmailAddress) throws(AdminRefusal) {
        guard address.isMailable else {
            throw .bad(
                "no e-mail can be sent to '\(address.text)': an address has ASCII characters "
                    + "without spaces, quotes and any of < > ( ) [ ] \\ , ; :")
        }
    }

    /// The account whose address the path names.
    static func account(_ exchange: AdminExchange) async throws -> AccountID {
        try await Self.account(exchange, exchange.parameter("email"))
    }

    static func account(_ exchange: AdminExchange, _ text: String) async throws -> AccountID {
        guard let email = EmailAddress(text),
            let id = try await exchange.accounts.account(of: email)
        else {
            throw AdminRefusal(
                404, .notFound,
                "nobody has an account with the address '\(text)': 'stratusctl user list' shows all"
            )
        }
        return id
    }

    private static func showUser(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let id = try await Self.account(exchange)
        guard let account = try await exchange.accounts.account(id) else {
            throw AdminRefusal.missing("user")
        }
        let sessions = try await exchange.accounts.sessions(of: id)
        let containers = try await exchange.accounts.containers(of: id)
        let keys = try exchange.store.keys
        return AdminAnswer.json(
            UserAnswer {
                $0.id = id.description
                $0.email = account.email
                $0.givenName = account.givenName
                $0.familyName = account.familyName
                $0.isDisabled = account.status == .disabled
                $0.isDiscoverable = account.isDiscoverable
                $0.hasPassword = account.password != nil
                $0.verified = account.verification.name
                $0.created = WallTime.text(account.createdMilliseconds)
                $0.lastSignIn = account.lastSignIn
                $0.containers = containers.map { container in
                    UserAnswer.Container {
                        $0.container = container.container
                        $0.environment = container.environment.name
                        $0.userRecordName = keys.userRecordName(
                            of: id, epoch: account.epoch, in: container)
                    }
                }
                $0.sessions = sessions.map { name, session in
                    UserAnswer.Session {
                        $0.id = Hexadecimal.text(name)
                        $0.container = session.container.container
                        $0.environment = session.container.environment.name
                        $0.opened = WallTime.text(session.openedMilliseconds)
                        $0.isOpen =
                            session.openedMilliseconds >= account.sessionsValidFromMilliseconds
                        $0.agent = session.agent
                    }
                }
            })
    }

    private static func disable(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let id = try await Self.account(exchange)
        _ = try await exchange.accounts.disable(id)
        return await exchange.done("user disable", "\(id)")
    }

    private static func enable(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let id = try await Self.account(exchange)
        _ = try await exchange.accounts.change(id) { $0.status = .active }
        return await exchange.done("user enable", "\(id)")
    }

    private static func signOut(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let id = try await Self.account(exchange)
        _ = try await exchange.accounts.closeAllSessions(of: id)
        return await exchange.done("user sign-out", "\(id)")
    }

    private static func makeResetLink(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let id = try await Self.account(exchange)
        // Before it is made: whoever has the link can sign in as this person.
        try await exchange.note("user reset-link", "\(id)")
        guard let secret = try await exchange.accounts.makeReset(of: id) else {
            throw AdminRefusal.missing("user")
        }
        let base = try exchange.directory.authenticator.signInBase
        return AdminAnswer.json(
            PathAnswer {
                $0.path = "/reset?s=\(secret)"
                $0.url = base.map { "\($0)/reset?s=\(secret)" }
            }, status: 201)
    }

    private static func export(_ exchange: AdminExchange, _ body: PlaceBody) async throws
        -> HTTPResponse
    {
        let id = try await Self.account(exchange)
        let container = try await exchange.container(of: body)
        let files = try Self.files(exchange, body)
        guard
            let archive = try await UserArchive(exchange.directory).export(
                id, in: container, files: files)
        else { throw AdminRefusal.missing("user") }
        try await exchange.note(
            "user export", files == nil ? "\(id)" : "\(id) with files", container)
        return AdminAnswer.lines(archive)
    }

    /// Nil: they are not asked for.
    private static func files(_ exchange: AdminExchange, _ body: PlaceBody) throws(AdminRefusal)
        -> (any ExportedFiles)?
    {
        guard body.files else { return nil }
        guard let files = exchange.services.files else {
            throw AdminRefusal(404, .notFound, "this node has no files")
        }
        return files
    }

    private static func signIn(_ exchange: AdminExchange, _ body: PlaceBody) async throws
        -> HTTPResponse
    {
        let id = try await Self.account(exchange)
        let container = try await exchange.container(of: body)
        try await exchange.requireOpen(container)
        // Before it is made: whoever has the token is this person.
        try await exchange.note("user sign-in", "\(id)", container)
        guard
            let token = try await exchange.directory.open(
                id, in: container, stays: body.stays ?? false, agent: "stratusctl")
        else { throw AdminRefusal.bad("the account is disabled: enable it first") }
        return AdminAnswer.json(SignInAnswer { $0.webAuthToken = token }, status: 201)
    }

    private static func deleteUser(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let id = try await Self.account(exchange)
        guard let receipt = try await UserArchive(exchange.directory).erase(id) else {
            throw AdminRefusal.missing("user")
        }
        await exchange.noteAfterwards("user delete", "\(id)")
        let now = try exchange.store.now
        return AdminAnswer.json(
            ErasureAnswer {
                $0.id = id.description
                $0.erased = WallTime.text(now)
                $0.containers = Int64(receipt.containerCount)
                $0.zones = Int64(receipt.zoneCount)
                $0.records = Int64(receipt.recordCount)
                $0.leaving =
                    "rows without an owner, wrapped keys, and what they leave in database files "
                    + "and in the log: within the hour, see 'stratusctl user erasures'"
                $0.outstanding = [
                    "sealed bytes of files and encrypted fields, until jobs remove them: no node "
                        + "opens them, since their keys went with the database's rows",
                    "the names of the person's own records in public databases, as deleted",
                    "copies of the data directory made before",
                ]
            })
    }
}
