import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess

/// `stratusctl token|key|user|role|explain-access|audit`: who may use the node and what they may
/// do.
struct IdentityCommands: AdminConversation {
    private typealias Failure = AdminClient.Failure

    let invocation: Invocation
    let client: AdminClient
    let isJSON: Bool

    func run() async throws(AdminClient.Failure) -> ExitCode {
        switch self.invocation.path {
        case ["token", "create"]: return try await self.createToken()
        case ["token", "list"]:
            return try await self.table(
                "GET", self.place("tokens"), "tokens",
                [
                    ("ID", "id"), ("NAME", "name"), ("CREATED", "created"), ("ORIGINS", "origins"),
                    ("CALLBACK", "callbackURL"),
                ])
        case ["token", "revoke"]:
            return try await self.change(
                "DELETE", self.place("tokens/" + self.encoded("ID")), said: "revoked")
        case ["key", "add"]: return try await self.addKey()
        case ["key", "list"]:
            return try await self.table(
                "GET", self.place("keys"), "keys",
                [
                    ("ID", "id"), ("NAME", "name"), ("CREATED", "created"),
                    ("ACTS AS", "userRecordName"),
                ])
        case ["key", "revoke"]:
            return try await self.change(
                "DELETE", self.place("keys/" + self.encoded("ID")), said: "revoked")
        case ["user", "add"]: return try await self.addUser()
        case ["user", "list"]:
            return try await self.table(
                "GET", "/v1/users", "users", [("E-MAIL", "email"), ("ID", "id")])
        case ["user", "show"]:
            return try await self.told("GET", UserFacts.account)
        case ["user", "delete"]:
            return try await self.deleteUser()
        case ["user", "erasures"]:
            return try await RemainsLoop(conversation: self).run(
                waits: self.invocation.flag("wait"), receipt: nil)
        case ["user", "export"]:
            return try await ExportCommand(
                invocation: self.invocation, client: self.client, isJSON: self.isJSON
            ).run()
        case ["user", "disable"]:
            return try await self.change("POST", self.user("disable"), said: "disabled")
        case ["user", "enable"]:
            return try await self.change("POST", self.user("enable"), said: "enabled")
        case ["user", "sign-out"]:
            return try await self.change(
                "POST", self.user("sign-out"), said: "signed out everywhere")
        case ["user", "reset-link"]:
            return try await self.value("POST", self.user("reset-link"), "path")
        case ["user", "sign-in"]:
            var json = JSONWriter()
            json.object {
                $0.member("container", self.invocation.value("container"))
                $0.member("environment", self.invocation.value("environment"))
                $0.member("stays", self.invocation.flag("stay"))
            }
            return try await self.value(
                "POST", self.user("sign-in"), "webAuthToken", body: json.finish())
        case ["user", "app-password", "add"]: return try await self.addAppPassword()
        case ["user", "app-password", "list"]:
            return try await self.table(
                "GET", self.appPasswords(), "appPasswords",
                [
                    ("ID", "id"), ("LABEL", "label"), ("MADE", "made"), ("ACCESS", "access"),
                    ("SHOWS", "shows"),
                ])
        case ["user", "app-password", "revoke"]:
            return try await self.change(
                "DELETE", self.appPasswords() + "/" + self.encoded("ID"), said: "revoked")
        case ["role", "list"]:
            return try await self.table(
                "GET", self.place("members"), "members",
                [("USER", "userRecordName"), ("ROLES", "roles"), ("FIRST SEEN", "firstSeen")])
        case ["role", "grant"]: return try await self.setRole(true)
        case ["role", "revoke"]: return try await self.setRole(false)
        case ["explain-access"]: return try await self.explain()
        case ["audit"]: return try await self.audit()
        case ["sealing-key", "list"]:
            return try await self.table(
                "GET", "/v1/sealing-keys", "keys",
                [("NUMBER", "number"), ("STATE", "state"), ("MADE", "made")])
        case ["sealing-key", "rotate"]:
            return try await self.change(
                "POST", "/v1/sealing-keys",
                said: "made; it seals in ten seconds, and older keys still open the tokens that "
                    + "they sealed")
        case ["sealing-key", "revoke"]: return try await self.revokeSealingKeys()
        default:
            preconditionFailure("'\(self.invocation.path)' is declared and goes nowhere")
        }
    }

    // MARK: Tokens and keys

    private func createToken() async throws(AdminClient.Failure) -> ExitCode {
        let isOpen = self.invocation.flag("any-origin")
        let namesReceivers =
            self.invocation["origins"] != nil || self.invocation["callback"] != nil
        if isOpen, self.invocation["origins"] != nil {
            throw AdminClient.Failure(.usage, "'--any-origin' and '--origins' exclude each other")
        }
        if self.invocation["environment"] == "production", !isOpen, !namesReceivers {
            throw AdminClient.Failure(
                .usage,
                "a production token says where sign-in may lead: give '--origins' or '--callback', or "
                    + "'--any-origin' for any page")
        }
        var json = JSONWriter()
        json.object {
            $0.member("name", self.invocation.value("name"))
            if let callback = self.invocation["callback"] { $0.member("callbackURL", callback) }
            $0.key("origins")
            $0.array {
                for origin in (self.invocation["origins"] ?? "").split(separator: ",") {
                    $0.write(String(origin))
                }
            }
            $0.member("anyOrigin", isOpen)
            $0.member("receivesNames", self.invocation.flag("names"))
        }
        return try await self.value(
            "POST", self.placeOfAddition("tokens"), "token", body: json.finish())
    }

    /// A place where an addition makes the container, unless the caller forbids it.
    private func placeOfAddition(_ rest: String) -> String {
        self.place(rest) + (self.invocation.flag("existing") ? "?existing=1" : "")
    }

    private func addKey() async throws(AdminClient.Failure) -> ExitCode {
        let pem: Bytes
        do throws(SmallFile.Failure) {
            pem = try SmallFile.read(
                self.invocation.value("public-key"), limit: .kibibytes(64))
        } catch { throw AdminClient.Failure(.missingInput, error.description) }
        let text = String(decoding: pem, as: UTF8.self)
        guard !text.contains("PRIVATE KEY") else {
            throw AdminClient.Failure(
                .usage,
                "this is a private key: keep it secret, and give the output of 'openssl ec "
                    + "-pubout'")
        }
        var json = JSONWriter()
        json.object {
            $0.member("name", self.invocation.value("name"))
            $0.member("publicKey", text)
        }
        return try await self.value("POST", self.placeOfAddition("keys"), "id", body: json.finish())
    }

    // MARK: Users and roles

    private func addUser() async throws(AdminClient.Failure) -> ExitCode {
        var password: String?
        if self.invocation.flag("password-stdin") {
            let bytes: Bytes
            do throws(SmallFile.Failure) {
                bytes = try SmallFile.read("/dev/stdin", limit: .kibibytes(4))
            } catch { throw AdminClient.Failure(.missingInput, "the password: \(error)") }
            // The line end is the shell's, not the password's.
            password = String(
                decoding: bytes.prefix { $0 != 0x0A && $0 != 0x0D }, as: UTF8.self)
        }
        var json = JSONWriter()
        json.object {
            $0.member("email", self.invocation.value("email"))
            if let password { $0.member("password", password) }
            if let given = self.invocation["given-name"] { $0.member("givenName", given) }
            if let family = self.invocation["family-name"] { $0.member("familyName", family) }
            $0.member("isDiscoverable", self.invocation.flag("discoverable"))
        }
        return try await self.value("POST", "/v1/users", "id", body: json.finish())
    }

    private func setRole(_ isMember: Bool) async throws(AdminClient.Failure) -> ExitCode {
        var json = JSONWriter()
        json.object {
            $0.member("user", self.invocation.value("user"))
            $0.member("role", self.invocation.value("ROLE"))
            $0.member("member", isMember)
        }
        return try await self.change(
            "POST", self.place("members"), body: json.finish(),
            said: isMember ? "granted" : "revoked")
    }

    private func explain() async throws(AdminClient.Failure) -> ExitCode {
        var json = JSONWriter()
        json.object {
            $0.member("recordType", self.invocation.value("type"))
            if let user = self.invocation["user"] { $0.member("user", user) }
            if let creator = self.invocation["creator"] { $0.member("creator", creator) }
        }
        let answer = try await self.ask("POST", self.place("access"), body: json.finish())
        if self.isJSON { return self.show(answer.text + "\n") }
        let document = try self.document(answer)
        func words(_ value: JSONValue?) -> String {
            (value?.array.map { $0.compactMap(\.string) } ?? []).joined(separator: ", ")
        }
        var text = "roles: \(words(document["roles"]))\n"
        if document["isInSchema"]?.bool != true {
            text += "the schema has no such type: the default grants apply\n"
        }
        for permission in ["read", "create", "write"] {
            let entry = document[permission]
            let granted = words(entry?["grantedTo"])
            text +=
                permission + ": " + (entry?["allowed"]?.bool == true ? "yes" : "no")
                + ", granted to \(granted.isEmpty ? "nobody" : granted)\n"
        }
        return self.show(text)
    }

    private func audit() async throws(AdminClient.Failure) -> ExitCode {
        if self.invocation.flag("verify") {
            let answer = try await self.ask("GET", "/v1/audit?verify=1")
            let document = try self.document(answer)
            let isWhole = document["whole"]?.bool == true
            if self.isJSON {
                _ = self.show(answer.text + "\n")
            } else {
                let count = document["entries"]?.numberText ?? "0"
                _ = self.show(
                    isWhole
                        ? "\(count) entries, whole\n"
                        : "entry \(document["brokenAt"]?.numberText ?? "?") was changed\n")
            }
            return isWhole ? .success : .refused
        }
        let limit = self.invocation["limit"].map { "?limit=\(PercentCoding.encode($0))" } ?? ""
        return try await self.table(
            "GET", "/v1/audit" + limit, "entries",
            [
                ("#", "number"), ("AT", "at"), ("WHO", "actor"), ("DID", "action"),
                ("TO", "subject"),
            ])
    }

    private func revokeSealingKeys() async throws(AdminClient.Failure) -> ExitCode {
        let all = self.invocation.flag("all")
        guard all != (self.invocation["before"] != nil) else {
            throw AdminClient.Failure(.usage, "give either '--before NUMBER' or '--all'")
        }
        var json = JSONWriter()
        json.object {
            if all {
                $0.member("all", true)
            } else {
                $0.member("before", Int64(self.invocation.value("before")) ?? 0)
            }
        }
        return try await self.change(
            "POST", "/v1/sealing-keys/revocation", body: json.finish(),
            said: "revoked: their tokens are refused everywhere within two seconds")
    }

    // MARK: Asking and showing

    private func place(_ rest: String) -> String {
        "/v1/containers/" + PercentCoding.encode(self.invocation.value("container"))
            + "/environments/\(self.invocation.value("environment"))/\(rest)"
    }

    private func user(_ action: String? = nil) -> String {
        "/v1/users/" + PercentCoding.encode(self.invocation.value("email"))
            + (action.map { "/" + $0 } ?? "")
    }

    private func appPasswords() -> String {
        self.place("users/" + PercentCoding.encode(self.invocation.value("email")))
            + "/app-passwords"
    }

    private func addAppPassword() async throws(AdminClient.Failure) -> ExitCode {
        var json = JSONWriter()
        json.object {
            $0.member("label", self.invocation.value("label"))
            $0.member("readOnly", self.invocation.flag("read-only"))
            $0.member("everything", self.invocation.flag("everything"))
        }
        return try await self.value("POST", self.appPasswords(), "password", body: json.finish())
    }

    private func encoded(_ positional: String) -> String {
        PercentCoding.encode(self.invocation.value(positional))
    }

    /// Prints an answer about one person, in words.
    private func told(_ method: String, _ words: (JSONValue) -> String)
        async throws(AdminClient.Failure) -> ExitCode
    {
        let answer = try await self.ask(method, self.user())
        return self.show(self.isJSON ? answer.text + "\n" : words(try self.document(answer)))
    }

    private func deleteUser() async throws(AdminClient.Failure) -> ExitCode {
        guard self.invocation.flag("wait") else {
            return try await self.told("DELETE") { UserFacts.receipt($0) }
        }
        let answer = try await self.ask("DELETE", self.user())
        return try await RemainsLoop(conversation: self).run(waits: true, receipt: answer)
    }

    /// Prints one value of the answer and nothing else, for `$(…)`.
    private func value(_ method: String, _ path: String, _ key: String, body: Bytes = [])
        async throws(AdminClient.Failure) -> ExitCode
    {
        let answer = try await self.ask(method, path, body: body)
        if self.isJSON { return self.show(answer.text + "\n") }
        let document = try self.document(answer)
        self.tellCreation(document, of: self.invocation.value("container"))
        return self.show((document[key]?.string ?? "") + "\n")
    }

    private func change(_ method: String, _ path: String, body: Bytes = [], said: String)
        async throws(AdminClient.Failure) -> ExitCode
    {
        let answer = try await self.ask(method, path, body: body)
        return self.show(self.isJSON ? answer.text + "\n" : said + "\n")
    }

    private func table(
        _ method: String, _ path: String, _ key: String, _ columns: [(title: String, key: String)]
    ) async throws(AdminClient.Failure) -> ExitCode {
        let answer = try await self.ask(method, path)
        if self.isJSON { return self.show(answer.text + "\n") }
        var table = TextTable(columns.map { .init($0.title) })
        for row in try self.document(answer)[key]?.array.map(Array.init) ?? [] {
            table.append(
                columns.map { column in
                    let value = row[column.key]
                    if let words = value?.array {
                        return words.compactMap(\.string).joined(separator: ", ")
                    }
                    return value?.string ?? value?.numberText ?? ""
                })
        }
        return self.show(table.write())
    }
}
