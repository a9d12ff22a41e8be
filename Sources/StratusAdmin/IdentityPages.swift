import StratusCluster
import StratusGateway
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRuntime

/// Tokens, keys, users and roles, as administrators see and change them.
///
/// A secret is shown once, in the answer that made it. Every change is an entry of the audit trail,
/// written before the change is answered.
struct IdentityPages {
    let people: SignInService
    let log: Log
    let request: HTTPRequest

    var accounts: Accounts { self.people.accounts }
    var access: ContainerAccess { self.people.access }

    /// An error that ends a page early, in words.
    struct Refusal: Error {
        var status: Int
        var code: StaticString
        var reason: String

        static func bad(_ reason: String) -> Refusal {
            Refusal(status: 400, code: "BAD_REQUEST", reason: reason)
        }
        static func missing(_ what: String) -> Refusal {
            Refusal(status: 404, code: "NOT_FOUND", reason: "there is no such \(what)")
        }
    }

    func answer(_ route: IdentityRoute) async -> HTTPResponse {
        do {
            let body = self.request.head.method == "POST" ? try await self.input() : nil
            let response = try await self.dispatch(route, body)
            if self.request.head.method != "GET" { self.people.authenticator.forget() }
            return response
        } catch let refusal as Refusal {
            return AdminAnswer.error(refusal.status, refusal.code, refusal.reason)
        } catch RouteError.outcomeUnknown {
            return AdminAnswer.error(
                500, "OUTCOME_UNKNOWN", "it may have happened: look before asking again")
        } catch RouteError.notExecuted {
            return AdminAnswer.error(
                503, "TRY_AGAIN_LATER", "the node cannot do it now; nothing happened")
        } catch {
            return AdminAnswer.error(500, "INTERNAL_ERROR", "\(error)")
        }
    }

    private func dispatch(_ route: IdentityRoute, _ body: JSONValue?) async throws -> HTTPResponse {
        let method = self.request.head.method
        try await self.admit(route)
        switch route {
        case .containers: return try await self.listContainers()
        case .container(let container):
            switch method {
            case "POST": return try await self.createContainer(container, body)
            case "DELETE": return try await self.deleteContainer(container)
            default: return try await self.showContainer(container)
            }
        case .erasure(let container): return try await self.eraseContainer(container)
        case .usage(let container): return try await self.showUsage(of: container)
        case .linkAudit(let container): return try await self.auditLinks(in: container)
        case .reset(let container): return try await self.resetEnvironment(container)
        case .resetPiece(let container): return try await self.continueReset(container)
        case .tokens(let container):
            if let body { return try await self.createToken(body, in: container) }
            return try await self.listTokens(in: container)
        case .token(let container, let id):
            guard try await self.access.revokeToken(id: id, in: container) else {
                throw Refusal.missing("token")
            }
            return try await self.done("token revoke", id, container)
        case .keys(let container):
            if let body { return try await self.addKey(body, in: container) }
            return try await self.listKeys(in: container)
        case .key(let container, let id):
            guard try await self.access.revokeKey(id: id, in: container) else {
                throw Refusal.missing("key")
            }
            return try await self.done("key revoke", id, container)
        case .members(let container):
            if let body { return try await self.setRole(body, in: container) }
            return try await self.listMembers(in: container)
        case .access(let container):
            return try await self.explain(body, in: container)
        case .users:
            if let body { return try await self.addUser(body) }
            return try await self.listUsers()
        case .user(let email):
            return method == "DELETE"
                ? try await self.deleteUser(email) : try await self.showUser(email)
        case .userAction(let email, let action): return try await self.act(action, email, body)
        case .audit: return try await self.audit()
        case .sealingKeys:
            return body == nil
                ? try await self.listSealingKeys() : try await self.rotateSealingKey()
        case .sealingKeyRevocation: return try await self.revokeSealingKeys(body)
        }
    }

    // MARK: Tokens and keys

    private func createToken(_ body: JSONValue, in container: ContainerReference) async throws
        -> HTTPResponse
    {
        let origins = body["origins"]?.array.map { $0.compactMap(\.string) } ?? []
        for origin in origins where WebOrigin(origin) == nil {
            throw Refusal.bad("'\(origin)' is not an origin: write it as https://host[:port]")
        }
        let callback = body["callbackURL"]?.string
        if let callback, !Self.isCallback(callback, container) {
            throw Refusal.bad(
                "'\(callback)' is not a callback URL: use https://… (http:// in development), or an "
                    + "app's own scheme")
        }
        // Anybody who knows an API token can send people a sign-in link. So somebody must have
        // named the receivers of what people sign in with.
        let namesReceivers = !origins.isEmpty || callback != nil
        guard
            container.environment == .development || namesReceivers
                || body["anyOrigin"]?.bool == true
        else {
            throw Refusal.bad(
                "a production token says where sign-in may lead: give 'origins' or 'callbackURL', or "
                    + "'anyOrigin' for any page")
        }
        let token = APIToken(
            name: try self.name(body), callbackURL: callback, origins: origins,
            receivesNames: body["receivesNames"]?.bool ?? false,
            createdMilliseconds: self.accounts.store.now)
        let text = try await self.access.createToken(token, in: container)
        let hash = self.accounts.store.keys.hash(ofToken: text)
        let id = Hexadecimal.text(hash.prefix(8))
        try await self.note("token create", "\(id) '\(token.name)'", container)
        var json = JSONWriter()
        json.object {
            $0.member("token", text)
            $0.member("id", id)
        }
        return AdminAnswer.json(json.finish(), status: 201)
    }

    private func listTokens(in container: ContainerReference) async throws -> HTTPResponse {
        let tokens = try await self.access.tokens(in: container)
        var json = JSONWriter()
        json.object {
            $0.key("tokens")
            $0.array { array in
                for listed in tokens {
                    array.object {
                        $0.member("id", listed.id)
                        $0.member("name", listed.token.name)
                        $0.member("created", WallTime.text(listed.token.createdMilliseconds))
                        if let callback = listed.token.callbackURL {
                            $0.member("callbackURL", callback)
                        }
                        $0.key("origins")
                        $0.array { for origin in listed.token.origins { $0.write(origin) } }
                        $0.member("receivesNames", listed.token.receivesNames)
                    }
                }
            }
        }
        return AdminAnswer.json(json.finish())
    }

    private func addKey(_ body: JSONValue, in container: ContainerReference) async throws
        -> HTTPResponse
    {
        guard let pem = body["publicKey"]?.utf8 else { throw Refusal.bad("'publicKey' is missing") }
        let name = try self.name(body)
        switch try await self.access.addKey(name: name, pem: pem, in: container) {
        case .noKey:
            throw Refusal.bad(
                "the public key must be an EC P-256 key in PEM form ('openssl ec -pubout')")
        case .nameIsFull:
            throw Refusal(
                status: 409, code: "NAME_IS_FULL",
                reason: "two live keys are called '\(name)' already: revoke the older one")
        case .known(let id):
            throw Refusal(
                status: 409, code: "EXISTS", reason: "this key is there already, as \(id)")
        case .added(let id):
            try await self.note("key add", "\(id) '\(name)'", container)
            var json = JSONWriter()
            json.object { $0.member("id", id) }
            return AdminAnswer.json(json.finish(), status: 201)
        }
    }

    private func listKeys(in container: ContainerReference) async throws -> HTTPResponse {
        let keys = try await self.access.keys(in: container)
        var json = JSONWriter()
        json.object {
            $0.key("keys")
            $0.array { array in
                for listed in keys {
                    array.object {
                        $0.member("id", listed.id)
                        $0.member("name", listed.key.name)
                        $0.member("created", WallTime.text(listed.key.createdMilliseconds))
                        $0.member("userRecordName", self.recordName(ofKey: listed, in: container))
                    }
                }
            }
        }
        return AdminAnswer.json(json.finish())
    }

    private func recordName(ofKey key: ContainerAccess.ListedKey, in container: ContainerReference)
        -> String
    {
        self.accounts.store.keys.userRecordName(
            ofServerKey: Hexadecimal.bytes(key.id) ?? [], in: container)
    }

    // MARK: Roles

    private func listMembers(in container: ContainerReference) async throws -> HTTPResponse {
        let users = try await self.access.users(in: container)
        var json = JSONWriter()
        json.object {
            $0.key("members")
            $0.array { array in
                for (name, user) in users {
                    array.object {
                        $0.member("userRecordName", name)
                        $0.key("roles")
                        $0.array { for role in user.roles { $0.write(role) } }
                        $0.member("isRestricted", user.isRestricted)
                        $0.member("firstSeen", WallTime.text(user.firstSeenMilliseconds))
                    }
                }
            }
        }
        return AdminAnswer.json(json.finish())
    }

    private func setRole(_ body: JSONValue, in container: ContainerReference) async throws
        -> HTTPResponse
    {
        guard let role = body["role"]?.string, let isMember = body["member"]?.bool else {
            throw Refusal.bad("'role' and 'member' are missing")
        }
        if isMember {
            let schema = try await self.schema(of: container)
            guard schema.roles.contains(role) else {
                throw Refusal.bad(
                    "the schema has no role '\(role)': CREATE ROLE \(role); first")
            }
        }
        let (name, account) = try await self.member(body, in: container)
        try await self.access.changeUser(name, account: account, in: container) { user in
            user.roles.removeAll { $0 == role }
            if isMember { user.roles = (user.roles + [role]).sorted() }
        }
        return try await self.done(
            isMember ? "role grant" : "role revoke", "\(role) \(name)", container)
    }

    /// By e-mail address, by record name, or by a key's identity.
    private func member(_ body: JSONValue, in container: ContainerReference) async throws -> (
        String, AccountID?
    ) {
        guard let text = body["user"]?.string else { throw Refusal.bad("'user' is missing") }
        if text.hasPrefix("_") {
            let known = try await self.access.user(text, in: container)
            if let known { return (text, known.account) }
            throw Refusal.missing("user in this container")
        }
        if text.utf8.count == 64, let bytes = Hexadecimal.bytes(text) {
            return (self.accounts.store.keys.userRecordName(ofServerKey: bytes, in: container), nil)
        }
        let id = try await self.account(text)
        let epoch = try await self.accounts.account(id)?.epoch ?? 1
        return (self.accounts.store.keys.userRecordName(of: id, epoch: epoch, in: container), id)
    }

    func schema(of container: ContainerReference) async throws -> Schema {
        let query = RecordQuery(principal: Principal(kind: .administrator), .schema(container))
        let answer = try await self.accounts.store.router.read(
            query.enveloped(), at: .container(container),
            deadline: self.accounts.store.world.now + .seconds(10))
        guard case .schema(let schema) = try RecordAnswer(decoding: answer.body) else {
            throw RouteError.refused("no schema where one was asked for")
        }
        return schema ?? Schema()
    }

    /// Why somebody may or may not: every grant of the type, and whether it counts.
    private func explain(_ body: JSONValue?, in container: ContainerReference) async throws
        -> HTTPResponse
    {
        guard let body, let typeName = body["recordType"]?.string else {
            throw Refusal.bad("'recordType' is missing")
        }
        let creator = body["creator"]?.string
        var principal = Principal(kind: .anonymous)
        if body["user"]?.string != nil {
            let (name, account) = try await self.member(body, in: container)
            let user = try await self.access.user(name, in: container)
            principal = Principal(
                kind: account == nil ? .serverKey : .user, userRecordName: name,
                roles: user?.roles ?? [])
        }
        let schema = try await self.schema(of: container)
        let type = schema.type(named: typeName)
        let database = DatabaseID(container: container, scope: .public, owner: "")
        var json = JSONWriter()
        json.object { object in
            object.member("recordType", typeName)
            object.member("isInSchema", type != nil)
            if !principal.userRecordName.isEmpty {
                object.member("userRecordName", principal.userRecordName)
            }
            object.key("roles")
            object.array { array in
                array.write("_world")
                if principal.kind != .anonymous { array.write("_icloud") }
                if principal.kind != .anonymous, creator == principal.userRecordName {
                    array.write("_creator")
                }
                for role in principal.roles { array.write(role) }
            }
            for permission in Grant.Permission.allCases {
                let isAllowed = AccessRules.allows(
                    permission, type, creator: permission == .create ? nil : creator, in: database,
                    principal)
                object.key("\(permission)")
                object.object {
                    $0.member("allowed", isAllowed)
                    $0.key("grantedTo")
                    $0.array { array in
                        for grant in type?.grants ?? Grant.defaults
                        where grant.permissions.contains(permission)
                            || (permission == .read && grant.permissions.contains(.write))
                        { array.write(grant.role) }
                    }
                }
            }
        }
        return AdminAnswer.json(json.finish())
    }

    // MARK: Users

    private func addUser(_ body: JSONValue) async throws -> HTTPResponse {
        guard let email = body["email"]?.string.flatMap({ EmailAddress($0) }) else {
            throw Refusal.bad("'email' is missing, or no e-mail address")
        }
        let password = body["password"]?.string
        if let password, !SignInService.passwordLength.contains(password.utf8.count) {
            throw Refusal.bad(
                "a password has \(SignInService.passwordLength.lowerBound) to "
                    + "\(SignInService.passwordLength.upperBound) characters")
        }
        var registration = Accounts.Registration(
            email: email, password: password.map { Secret($0) })
        registration.givenName = body["givenName"]?.string ?? ""
        registration.familyName = body["familyName"]?.string ?? ""
        registration.isDiscoverable = body["isDiscoverable"]?.bool ?? false
        switch try await self.accounts.register(registration) {
        case .made(let id):
            try await self.note("user add", "\(id)", nil)
            var json = JSONWriter()
            json.object { $0.member("id", id.description) }
            return AdminAnswer.json(json.finish(), status: 201)
        case .taken:
            throw Refusal(status: 409, code: "EXISTS", reason: "the address has an account")
        case .busy:
            throw Refusal(
                status: 503, code: "TRY_AGAIN_LATER", reason: "too many passwords are being hashed")
        }
    }

    private func listUsers() async throws -> HTTPResponse {
        let all = try await self.accounts.all()
        var json = JSONWriter()
        json.object {
            $0.key("users")
            $0.array { array in
                for (id, email) in all {
                    array.object {
                        $0.member("email", email)
                        $0.member("id", id.description)
                    }
                }
            }
        }
        return AdminAnswer.json(json.finish())
    }

    private func account(_ text: String) async throws -> AccountID {
        guard let email = EmailAddress(text), let id = try await self.accounts.account(of: email)
        else { throw Refusal.missing("user") }
        return id
    }

    private func showUser(_ text: String) async throws -> HTTPResponse {
        let id = try await self.account(text)
        guard let account = try await self.accounts.account(id) else {
            throw Refusal.missing("user")
        }
        let sessions = try await self.accounts.sessions(of: id)
        let containers = try await self.accounts.containers(of: id)
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
            $0.key("containers")
            $0.array { array in
                for container in containers {
                    array.object {
                        $0.member("container", container.container)
                        $0.member("environment", container.environment.name)
                        $0.member(
                            "userRecordName",
                            self.accounts.store.keys.userRecordName(
                                of: id, epoch: account.epoch, in: container))
                    }
                }
            }
            $0.key("sessions")
            $0.array { array in
                for (_, session) in sessions {
                    array.object {
                        $0.member("container", session.container.container)
                        $0.member("environment", session.container.environment.name)
                        $0.member("opened", WallTime.text(session.openedMilliseconds))
                        $0.member(
                            "isOpen",
                            session.openedMilliseconds >= account.sessionsValidFromMilliseconds)
                        $0.member("agent", session.agent)
                    }
                }
            }
        }
        return AdminAnswer.json(json.finish())
    }

    private func act(_ action: IdentityRoute.Action, _ text: String, _ body: JSONValue?)
        async throws -> HTTPResponse
    {
        let id = try await self.account(text)
        switch action {
        case .disable:
            _ = try await self.accounts.disable(id)
            return try await self.done("user disable", "\(id)", nil)
        case .enable:
            _ = try await self.accounts.change(id) { $0.status = .active }
            return try await self.done("user enable", "\(id)", nil)
        case .signOut:
            _ = try await self.accounts.closeAllSessions(of: id)
            return try await self.done("user sign-out", "\(id)", nil)
        case .resetLink:
            guard let secret = try await self.accounts.makeReset(of: id) else {
                throw Refusal.missing("user")
            }
            try await self.note("user reset-link", "\(id)", nil)
            var json = JSONWriter()
            json.object { $0.member("path", "/reset?s=\(secret)") }
            return AdminAnswer.json(json.finish(), status: 201)
        case .export:
            guard let container = Self.container(body) else {
                throw Refusal.bad("'container' and 'environment' are missing")
            }
            guard let archive = try await UserArchive(self.people).export(id, in: container) else {
                throw Refusal.missing("user")
            }
            try await self.note("user export", "\(id)", container)
            return HTTPResponse(
                status: 200,
                headers: ["Content-Type": "application/jsonl", "Cache-Control": "no-store"],
                body: .stream(archive, length: nil))
        case .signIn:
            guard let container = Self.container(body) else {
                throw Refusal.bad("'container' and 'environment' are missing")
            }
            try await self.admit(container)
            guard
                let token = try await self.people.open(
                    id, in: container, stays: body?["stays"]?.bool ?? false, agent: "stratusctl")
            else { throw Refusal.bad("the account is disabled: enable it first") }
            try await self.note("user sign-in", "\(id)", container)
            var json = JSONWriter()
            json.object { $0.member("webAuthToken", token) }
            return AdminAnswer.json(json.finish(), status: 201)
        }
    }

    private func deleteUser(_ text: String) async throws -> HTTPResponse {
        let id = try await self.account(text)
        guard let receipt = try await UserArchive(self.people).erase(id) else {
            throw Refusal.missing("user")
        }
        try await self.note("user delete", "\(id)", nil)
        var json = JSONWriter()
        json.object {
            $0.member("id", id.description)
            $0.member("erased", WallTime.text(self.accounts.store.now))
            $0.member("containers", receipt.containerCount)
            $0.member("zones", receipt.zoneCount)
            $0.member("records", receipt.recordCount)
            $0.key("outstanding")
            $0.array {
                $0.write("rows without an owner, until jobs have removed them")
                $0.write("the names of the person's own records in public databases, as deleted")
                $0.write("pages freed in database files, until they are used again")
                $0.write("copies of the data directory made before")
            }
        }
        return AdminAnswer.json(json.finish())
    }

    // MARK: Audit

    private func audit() async throws -> HTTPResponse {
        let trail = AuditTrail(store: self.accounts.store)
        let query = URLQuery(self.request.head.query)
        var json = JSONWriter()
        if ["1", "true"].contains(query?["verify"]) {
            let (count, broken) = try await trail.verify()
            json.object {
                $0.member("entries", count)
                $0.member("whole", broken == nil)
                if let broken { $0.member("brokenAt", Int64(clamping: broken)) }
            }
            return AdminAnswer.json(json.finish())
        }
        let limit = query?["limit"].flatMap { Int($0) } ?? 100
        let entries = try await trail.entries(limit: max(1, min(1_000, limit)))
        json.object {
            $0.key("entries")
            $0.array { array in
                for entry in entries {
                    array.object {
                        $0.member("number", Int64(clamping: entry.number))
                        $0.member("at", WallTime.text(entry.milliseconds))
                        $0.member("actor", entry.actor)
                        $0.member("action", entry.action)
                        $0.member("subject", entry.subject)
                    }
                }
            }
        }
        return AdminAnswer.json(json.finish())
    }

    func note(_ action: String, _ subject: String, _ container: ContainerReference?)
        async throws
    {
        let place = container.map { "\($0.container) \($0.environment.name)" } ?? ""
        let subject = [subject, place].filter { !$0.isEmpty }.joined(separator: " ")
        self.log.warning(
            "changed by an administrator",
            [
                "request": .text(self.request.identity.uuid), "peer": .text(self.request.peer),
                "action": .text(action), "subject": .text(subject),
            ])
        try await AuditTrail(store: self.accounts.store).note(
            actor: self.request.certificate == nil ? self.request.peer : "certificate",
            action: action, subject: subject)
    }

    private func done(_ action: String, _ subject: String, _ container: ContainerReference?)
        async throws -> HTTPResponse
    {
        try await self.note(action, subject, container)
        return AdminAnswer.json(Bytes("{}".utf8))
    }

    // MARK: Input

    private func input() async throws -> JSONValue {
        let body: Bytes
        do { body = try await self.request.body.collect() } catch {
            throw Refusal.bad("the body could not be read")
        }
        guard let document = try? JSONDocument(parsing: body.isEmpty ? Bytes("{}".utf8) : body),
            document.root.object != nil
        else { throw Refusal.bad("the body is no JSON object") }
        return document.root
    }

    private func name(_ body: JSONValue) throws -> String {
        guard let name = body["name"]?.string, (1...100).contains(name.utf8.count) else {
            throw Refusal.bad("'name' is missing, or longer than 100 bytes")
        }
        return name
    }

    private static func container(_ body: JSONValue?) -> ContainerReference? {
        guard let name = body?["container"]?.string, !name.isEmpty,
            let environment = body?["environment"]?.string.flatMap({ Environment(name: $0) })
        else { return nil }
        return ContainerReference(container: name, environment: environment)
    }

    /// Whether a browser may be sent to this address with a token: outside development never to a
    /// page that can be eavesdropped.
    private static func isCallback(_ text: String, _ container: ContainerReference) -> Bool {
        guard text.utf8.count <= 1_000, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
            let colon = text.utf8.firstIndex(of: UInt8(ascii: ":"))
        else { return false }
        let scheme = text[..<colon].lowercased()
        switch scheme {
        case "https": return true
        case "http": return container.environment == .development
        case "", "javascript", "data", "vbscript", "file", "blob": return false
        default:
            return scheme.utf8.allSatisfy {
                ($0 >= 0x61 && $0 <= 0x7A) || ($0 >= 0x30 && $0 <= 0x39)
                    || Bytes("+-.".utf8).contains($0)
            }
        }
    }
}
