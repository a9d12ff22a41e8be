import StratusAdminModel
import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess
import StratusRuntime

/// `stratusctl token|key|user|role|explain-access|audit|sealing-key`: who may use the node and what
/// they may do.
struct IdentityCommands: AdminConversation {
    let context: ControlContext

    init(_ context: ControlContext) { self.context = context }

    // MARK: Tokens and keys

    func createToken() async throws(AdminClient.Failure) -> ExitCode {
        let isOpen = self.invocation.flag("any-origin")
        let namesReceivers =
            self.invocation["origins"] != nil || self.invocation["callback"] != nil
        if isOpen, self.invocation["origins"] != nil {
            throw Failure(.usage, "'--any-origin' and '--origins' exclude each other")
        }
        if self.invocation["environment"] == "production", !isOpen, !namesReceivers {
            throw Failure(
                .usage,
                "a production token says where sign-in may lead: give '--origins' or '--callback', or "
                    + "'--any-origin' for any page")
        }
        let answer = try await self.ask(
            "POST", self.placeOfAddition("/tokens"),
            TokenBody {
                $0.name = self.invocation.value("name")
                $0.callbackURL = self.invocation["callback"]
                $0.origins = (self.invocation["origins"] ?? "").split(separator: ",")
                    .map(String.init)
                $0.anyOrigin = isOpen
                $0.receivesNames = self.invocation.flag("names")
            })
        return try self.tell(answer) { (made: TokenAnswer) in
            self.tellCreation(made.isCreated)
            return made.token + "\n"
        }
    }

    func listTokens() async throws(AdminClient.Failure) -> ExitCode {
        try await self.table(of: TokenRow.self, self.place("/tokens"))
    }

    func revokeToken() async throws(AdminClient.Failure) -> ExitCode {
        try await self.change(
            "DELETE", self.place("/tokens/" + self.encoded("ID")), said: "revoked")
    }

    /// A place where an addition makes the container, unless the caller forbids it.
    private func placeOfAddition(_ rest: String) -> String {
        self.place(rest) + (self.invocation.flag("existing") ? "?existing=1" : "")
    }

    func addKey() async throws(AdminClient.Failure) -> ExitCode {
        let pem: Bytes
        do throws(SmallFile.Failure) {
            pem = try SmallFile.read(
                self.invocation.value("public-key"), limit: .kibibytes(64))
        } catch { throw Failure(.missingInput, error.description) }
        let text = String(decoding: pem, as: UTF8.self)
        guard !text.contains("PRIVATE KEY") else {
            throw Failure(
                .usage,
                "this is a private key: keep it secret, and give the output of 'openssl ec "
                    + "-pubout'")
        }
        let answer = try await self.ask(
            "POST", self.placeOfAddition("/keys"),
            ServerKeyBody {
                $0.name = self.invocation.value("name")
                $0.publicKey = text
            })
        return try self.tell(answer) { (made: ServerKeyAnswer) in
            self.tellCreation(made.isCreated)
            return made.id + "\n"
        }
    }

    func listKeys() async throws(AdminClient.Failure) -> ExitCode {
        try await self.table(of: ServerKeyRow.self, self.place("/keys"))
    }

    func revokeKey() async throws(AdminClient.Failure) -> ExitCode {
        try await self.change("DELETE", self.place("/keys/" + self.encoded("ID")), said: "revoked")
    }

    // MARK: Users

    func addUser() async throws(AdminClient.Failure) -> ExitCode {
        var password: String?
        if self.invocation.flag("password-stdin") {
            let bytes: Bytes
            do throws(SmallFile.Failure) {
                bytes = try SmallFile.read("/dev/stdin", limit: .kibibytes(4))
            } catch { throw Failure(.missingInput, "the password: \(error)") }
            // The line end is the shell's, not the password's.
            password = String(
                decoding: bytes.prefix { $0 != 0x0A && $0 != 0x0D }, as: UTF8.self)
        }
        let answer = try await self.ask(
            "POST", "/v1/users",
            UserBody {
                $0.email = self.invocation.value("email")
                $0.password = password
                $0.givenName = self.invocation["given-name"]
                $0.familyName = self.invocation["family-name"]
                $0.isDiscoverable = self.invocation.flag("discoverable")
                $0.isUnverified = self.invocation.flag("unverified")
            })
        return try self.tell(answer) { (made: IDAnswer) in made.id + "\n" }
    }

    func listUsers() async throws(AdminClient.Failure) -> ExitCode {
        var all = UsersAnswer()
        var next: String?
        repeat {
            let after = next.map { "?after=" + PercentCoding.encode($0) } ?? ""
            let page: UsersAnswer = try await self.ask("GET", "/v1/users" + after).read()
            all.users += page.users
            next = page.next
        } while next != nil
        all.users.sort { $0.email < $1.email }
        return self.show(all, TextTable.text(all.users))
    }

    func showUser() async throws(AdminClient.Failure) -> ExitCode {
        try self.tell(try await self.ask("GET", self.user())) { (user: UserAnswer) in
            func table<Row: TabularRow>(_ rows: [Row]) -> String? {
                rows.isEmpty ? nil : TextTable.text(rows)
            }
            return [
                TextTable.text(of: user, UserAnswer.columns), table(user.containers),
                table(user.sessions.filter(\.isOpen)),
            ].compactMap(\.self).joined(separator: "\n")
        }
    }

    func disableUser() async throws(AdminClient.Failure) -> ExitCode {
        try await self.change("POST", self.user("/disable"), said: "disabled")
    }

    func enableUser() async throws(AdminClient.Failure) -> ExitCode {
        try await self.change("POST", self.user("/enable"), said: "enabled")
    }

    func signOut() async throws(AdminClient.Failure) -> ExitCode {
        guard let session = self.invocation["session"] else {
            return try await self.change(
                "POST", self.user("/sign-out"), said: "signed out everywhere")
        }
        return try await self.change(
            "DELETE", self.user("/sessions/" + PercentCoding.encode(session)),
            said: "the session has ended")
    }

    func makeResetLink() async throws(AdminClient.Failure) -> ExitCode {
        let answer = try await self.ask("POST", self.user("/reset-link"))
        return try self.tell(answer) { (made: PathAnswer) in
            (made.url ?? made.path) + "\n"
        }
    }

    func signIn() async throws(AdminClient.Failure) -> ExitCode {
        let answer = try await self.ask(
            "POST", self.user("/sign-in"),
            PlaceBody {
                $0.container = self.invocation.value("container")
                $0.environment = self.invocation.value("environment")
                $0.stays = self.invocation.flag("stay")
            })
        return try self.tell(answer) { (made: SignInAnswer) in made.webAuthToken + "\n" }
    }

    func deleteUser() async throws(AdminClient.Failure) -> ExitCode {
        let answer = try await self.ask("DELETE", self.user())
        guard self.invocation.flag("wait") else {
            return try self.tell(answer) { (erased: ErasureAnswer) in erased.text() }
        }
        return try await RemainsLoop(self.context).run(waits: true, receipt: answer)
    }

    func erasures() async throws(AdminClient.Failure) -> ExitCode {
        try await RemainsLoop(self.context).run(waits: self.invocation.flag("wait"), receipt: nil)
    }

    // MARK: App passwords

    private func appPasswords(_ rest: String = "") -> String {
        self.place("/users/" + self.encoded("email") + "/app-passwords" + rest)
    }

    func addAppPassword() async throws(AdminClient.Failure) -> ExitCode {
        let answer = try await self.ask(
            "POST", self.appPasswords(),
            AppPasswordBody {
                $0.label = self.invocation.value("label")
                $0.isReadOnly = self.invocation.flag("read-only")
                $0.showsAll = self.invocation.flag("everything")
            })
        return try self.tell(answer) { (made: AppPasswordAnswer) in made.password + "\n" }
    }

    func listAppPasswords() async throws(AdminClient.Failure) -> ExitCode {
        try await self.table(of: AppPasswordRow.self, self.appPasswords())
    }

    func revokeAppPassword() async throws(AdminClient.Failure) -> ExitCode {
        try await self.change(
            "DELETE", self.appPasswords("/" + self.encoded("ID")), said: "revoked")
    }

    // MARK: Roles and the audit trail

    func listMembers() async throws(AdminClient.Failure) -> ExitCode {
        try await self.table(of: MemberRow.self, self.place("/members"))
    }

    func grantRole() async throws(AdminClient.Failure) -> ExitCode { try await self.setRole(true) }
    func revokeRole() async throws(AdminClient.Failure) -> ExitCode {
        try await self.setRole(false)
    }

    private func setRole(_ isMember: Bool) async throws(AdminClient.Failure) -> ExitCode {
        let answer = try await self.ask(
            "POST", self.place("/members"),
            MemberBody {
                $0.user = self.invocation.value("user")
                $0.role = self.invocation.value("ROLE")
                $0.isMember = isMember
            })
        return self.tell(answer, said: isMember ? "granted" : "revoked")
    }

    func explain() async throws(AdminClient.Failure) -> ExitCode {
        let answer = try await self.ask(
            "POST", self.place("/access"),
            AccessBody {
                $0.recordType = self.invocation.value("type")
                $0.user = self.invocation["user"]
                $0.creator = self.invocation["creator"]
            })
        return try self.tell(answer) { (access: AccessAnswer) in access.text }
    }

    func audit() async throws(AdminClient.Failure) -> ExitCode {
        if self.invocation.flag("verify") {
            let answer = try await self.ask("GET", "/v1/audit?verify=1")
            let check: AuditCheck = try answer.read()
            _ = try self.tell(answer) { (check: AuditCheck) in
                check.isWhole
                    ? "\(check.entries) entries, whole\n"
                    : "entry \(check.brokenAt.map { "\($0)" } ?? "?") was changed\n"
            }
            return check.isWhole ? .success : .refused
        }
        let limit = self.invocation["limit"].map { "?limit=\(PercentCoding.encode($0))" } ?? ""
        return try await self.table(of: AuditRow.self, "/v1/audit" + limit)
    }

    // MARK: Keys that seal tokens

    func listSealingKeys() async throws(AdminClient.Failure) -> ExitCode {
        try await self.table(of: SealingKeyRow.self, "/v1/sealing-keys")
    }

    func rotateSealingKey() async throws(AdminClient.Failure) -> ExitCode {
        try await self.change(
            "POST", "/v1/sealing-keys",
            said: "made; it seals in ten seconds, and older keys still open the tokens that "
                + "they sealed")
    }

    func revokeSealingKeys() async throws(AdminClient.Failure) -> ExitCode {
        let all = self.invocation.flag("all")
        guard all != (self.invocation["before"] != nil) else {
            throw Failure(.usage, "give either '--before NUMBER' or '--all'")
        }
        let answer = try await self.ask(
            "POST", "/v1/sealing-keys/revocation",
            SealingKeyBody {
                $0.all = all
                $0.before = all ? nil : Int64(self.invocation.value("before")) ?? 0
            })
        return self.tell(
            answer, said: "revoked: their tokens are refused everywhere within two seconds")
    }

    // MARK: Asking

    private func user(_ action: String = "") -> String {
        "/v1/users/" + self.encoded("email") + action
    }

    private func change(_ method: String, _ path: String, said: String)
        async throws(AdminClient.Failure) -> ExitCode
    {
        self.tell(try await self.ask(method, path), said: said)
    }
}
