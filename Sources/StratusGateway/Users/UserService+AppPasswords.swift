import StratusHTTP
import StratusIdentity
import StratusModel

extension UserService {
    /// `users/appPasswords`: lists the caller's app passwords for this container, makes one or
    /// revokes one.
    func appPasswords(_ input: Input) async throws -> Bytes {
        guard let people,
            let account = self.exchange.sender.account
        else {
            throw ClientError(
                .badRequest,
                "only people with accounts have app passwords; a development user's "
                    + "web-auth token is its password")
        }
        let container = self.exchange.route.container
        var made: (id: String, password: String)?
        switch try input.string("operation") ?? "list" {
        case "list": break
        case "create":
            let label = try input.requiredString("label")
            guard Session.AppPassword.isLabel(label) else {
                throw InputRefusal.unexpectedInput(key: "label")
            }
            let kind = Session.AppPassword(
                label: label, isReadOnly: try input.flag("readOnly") ?? false,
                showsAll: try input.flag("everything") ?? false)
            switch try await people.accounts.makeAppPassword(
                kind, of: account, provenBy: nil, in: container)
            {
            case .made(let password, let id): made = (id, password)
            case .noAccount: throw AuthenticationRefusal.wrong
            case .tooMany:
                throw ClientError(
                    .quotaExceeded,
                    "an account has at most \(Accounts.appPasswordCountMax) app passwords")
            }
        case "revoke":
            let id = try input.requiredString("id")
            guard
                try await people.accounts.revokeAppPassword(id, of: account, in: container)
            else { throw ClientError(.notFound, "no such app password") }
            people.authenticator.forget()
        default: throw InputRefusal.unexpectedInput(key: "operation")
        }
        let all = try await people.accounts.appPasswords(of: account)
        var json = JSONWriter()
        json.object { object in
            if let made {
                object.member("id", made.id)
                object.member("password", made.password)
            }
            object.key("appPasswords")
            object.array { array in
                for password in all where password.container == container {
                    array.object {
                        $0.member("id", password.id)
                        $0.member("label", password.kind.label)
                        $0.member("madeAt", password.madeMilliseconds)
                        $0.member("readOnly", password.kind.isReadOnly)
                        $0.member("everything", password.kind.showsAll)
                    }
                }
            }
        }
        return json.finish()
    }
}
