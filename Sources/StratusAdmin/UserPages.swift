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
            answer: "every account"
        ) { try await Self.listUsers($0) },
        AdminRoute(
            "POST", "/v1/users", body: "email, password, givenName, familyName, isDiscoverable",
            answer: "the id of the account"
        ) { try await Self.addUser($0, $0.json()) },
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
            answer: "the path of a page where the person chooses a password"
        ) { try await Self.makeResetLink($0) },
        AdminRoute(
            "POST", "/v1/users/{email}/export", isLong: true,
            body: "container, environment, files",
            answer:
                "what the container holds about the person, as JSON lines; with `files` also a line "
                + "with `fetch` for each file"
        ) { try await Self.export($0, $0.json()) },
        AdminRoute(
            "POST", "/v1/users/{email}/sign-in", body: "container, environment, stays",
            answer: "a web-auth token of a new session"
        ) { try await Self.signIn($0, $0.json()) },
    ]

    private static func addUser(_ exchange: AdminExchange, _ body: JSONValue) async throws
        -> HTTPResponse
    {
        guard let email = body["email"]?.string.flatMap({ EmailAddress($0) }) else {
            throw AdminRefusal.bad("'email' is missing or is not an e-mail address")
        }
        let password = body["password"]?.string
        if let password, !Directory.passwordLength.contains(password.utf8.count) {
            throw AdminRefusal.bad(
                "a password has \(Directory.passwordLength.lowerBound) to "
                    + "\(Directory.passwordLength.upperBound) characters")
        }
        var registration = Accounts.Registration(
            email: email, password: password.map { Secret($0) })
        registration.givenName = body["givenName"]?.string ?? ""
        registration.familyName = body["familyName"]?.string ?? ""
        registration.isDiscoverable = body["isDiscoverable"]?.bool ?? false
        switch try await exchange.accounts.register(registration) {
        case .made(let id):
            await exchange.noteAfterwards("user add", "\(id)")
            var json = JSONWriter()
            json.object { $0.member("id", id.description) }
            return AdminAnswer.json(json.finish(), status: 201)
        case .taken:
            throw AdminRefusal(409, "EXISTS", "there is already an account with this address")
        case .busy:
            throw AdminRefusal(
                503, "TRY_AGAIN_LATER", "too many passwords are being hashed: try again in a moment"
            )
        }
    }

    private static func listUsers(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let all = try await exchange.accounts.all()
        var json = JSONWriter()
        json.object {
            $0.member("users", objects: all) { json, element in
                let (id, email) = element
                json.member("email", email)
                json.member("id", id.description)
            }
        }
        return AdminAnswer.json(json.finish())
    }

    /// The account whose address the path names.
    private static func account(_ exchange: AdminExchange) async throws -> AccountID {
        try await Self.account(exchange, exchange.parameter("email"))
    }

    static func account(_ exchange: AdminExchange, _ text: String) async throws -> AccountID {
        guard let email = EmailAddress(text),
            let id = try await exchange.accounts.account(of: email)
        else { throw AdminRefusal.missing("user") }
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
        var json = JSONWriter()
        json.object {
            $0.member("id", id.description)
            $0.member("email", account.email)
            $0.member("givenName", account.givenName)
            $0.member("familyName", account.familyName)
            $0.member("isDisabled", account.status == .disabled)
            $0.member("isDiscoverable", account.isDiscoverable)
            $0.member("hasPassword", account.password != nil)
            $0.member("created", WallTime.text(account.createdMilliseconds))
            $0.member("containers", objects: containers) { json, container in
                json.member("container", container.container)
                json.member("environment", container.environment.name)
                json.member(
                    "userRecordName",
                    keys.userRecordName(
                        of: id, epoch: account.epoch, in: container))
            }
            $0.member("sessions", objects: sessions) { json, element in
                let (_, session) = element
                json.member("container", session.container.container)
                json.member("environment", session.container.environment.name)
                json.member("opened", WallTime.text(session.openedMilliseconds))
                json.member(
                    "isOpen",
                    session.openedMilliseconds >= account.sessionsValidFromMilliseconds)
                json.member("agent", session.agent)
            }
        }
        return AdminAnswer.json(json.finish())
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
        var json = JSONWriter()
        json.object { $0.member("path", "/reset?s=\(secret)") }
        return AdminAnswer.json(json.finish(), status: 201)
    }

    private static func export(_ exchange: AdminExchange, _ body: JSONValue) async throws
        -> HTTPResponse
    {
        let id = try await Self.account(exchange)
        let container = try Self.container(body)
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
    private static func files(_ exchange: AdminExchange, _ body: JSONValue) throws(AdminRefusal)
        -> (any ExportedFiles)?
    {
        guard body["files"]?.bool ?? false else { return nil }
        guard let files = exchange.services.files else {
            throw AdminRefusal(404, "NOT_FOUND", "this node has no files")
        }
        return files
    }

    private static func signIn(_ exchange: AdminExchange, _ body: JSONValue) async throws
        -> HTTPResponse
    {
        let id = try await Self.account(exchange)
        let container = try Self.container(body)
        try await exchange.admit(container)
        // Before it is made: whoever has the token is this person.
        try await exchange.note("user sign-in", "\(id)", container)
        guard
            let token = try await exchange.directory.open(
                id, in: container, stays: body["stays"]?.bool ?? false, agent: "stratusctl")
        else { throw AdminRefusal.bad("the account is disabled: enable it first") }
        var json = JSONWriter()
        json.object { $0.member("webAuthToken", token) }
        return AdminAnswer.json(json.finish(), status: 201)
    }

    private static func deleteUser(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let id = try await Self.account(exchange)
        guard let receipt = try await UserArchive(exchange.directory).erase(id) else {
            throw AdminRefusal.missing("user")
        }
        await exchange.noteAfterwards("user delete", "\(id)")
        let now = try exchange.store.now
        var json = JSONWriter()
        json.object {
            $0.member("id", id.description)
            $0.member("erased", WallTime.text(now))
            $0.member("containers", receipt.containerCount)
            $0.member("zones", receipt.zoneCount)
            $0.member("records", receipt.recordCount)
            $0.member(
                "leaving",
                "rows without an owner, wrapped keys, and what they leave in database files and in "
                    + "the log: within the hour, see 'stratusctl user erasures'")
            $0.key("outstanding")
            $0.array {
                $0.write(
                    "sealed bytes of files and encrypted fields, until jobs remove them: no node opens "
                        + "them, since their keys went with the database's rows")
                $0.write("the names of the person's own records in public databases, as deleted")
                $0.write("copies of the data directory made before")
            }
        }
        return AdminAnswer.json(json.finish())
    }

    private static func container(_ body: JSONValue) throws(AdminRefusal) -> ContainerReference {
        guard let name = body["container"]?.string, !name.isEmpty,
            let environment = body["environment"]?.string.flatMap({ Environment(name: $0) })
        else { throw .bad("'container' and 'environment' are missing") }
        return ContainerReference(container: name, environment: environment)
    }
}
