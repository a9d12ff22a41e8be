import StratusAdminModel
import StratusContainers
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime

/// The app passwords that WebDAV clients show for people.
enum AppPasswordPages {
    static let routes: [AdminRoute] = [
        AdminRoute(
            "GET", DocumentPages.user + "/app-passwords",
            answer: "the app passwords, without their texts"
        ) { try await Self.passwords($0) },
        AdminRoute(
            "POST", DocumentPages.user + "/app-passwords", body: "label, readOnly, everything",
            answer: "the id, and the password, which is told only now"
        ) { try await Self.makePassword($0, $0.body()) },
        AdminRoute(
            "DELETE", DocumentPages.user + "/app-passwords/{id}", answer: "nothing"
        ) { try await Self.revokePassword($0) },
    ]

    private static func passwords(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let id = try await UserPages.account(exchange, exchange.parameter("email"))
        let container = try await exchange.container()
        let passwords = try await exchange.accounts.appPasswords(of: id).filter {
            $0.container == container
        }
        return AdminAnswer.json(
            Listing(
                passwords.map { password in
                    AppPasswordRow {
                        $0.id = password.id
                        $0.label = password.kind.label
                        $0.made = WallTime.text(password.madeMilliseconds)
                        $0.access = password.kind.isReadOnly ? "read" : "write"
                        $0.shows = password.kind.showsAll ? "everything" : "Documents"
                    }
                }))
    }

    private static func makePassword(
        _ exchange: AdminExchange, _ body: AppPasswordBody
    ) async throws -> HTTPResponse {
        let id = try await UserPages.account(exchange, exchange.parameter("email"))
        let container = try await exchange.container()
        guard let label = body.label, Session.AppPassword.isLabel(label) else {
            throw AdminRefusal.bad(
                "'label' is missing, or has not 1 to \(Session.AppPassword.labelSizeMax) bytes")
        }
        let kind = Session.AppPassword(
            label: label, isReadOnly: body.isReadOnly,
            showsAll: body.showsAll)
        let made = try await exchange.directory.makeAppPassword(kind, of: id, in: container)
        switch made {
        case .noAccount:
            throw AdminRefusal(409, .conflict, "the account is disabled")
        case .tooMany:
            throw AdminRefusal(
                409, .conflict,
                "the account has \(Accounts.appPasswordCountMax) app passwords: revoke one first")
        case .made(let password, let number):
            await exchange.noteAfterwards("user app-password add", "\(id) \(number)", container)
            return AdminAnswer.json(
                AppPasswordAnswer {
                    $0.id = number
                    $0.password = password
                }, status: 201)
        }
    }

    private static func revokePassword(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let id = try await UserPages.account(exchange, exchange.parameter("email"))
        let container = try await exchange.container()
        let number = exchange.parameter("id")
        guard try await exchange.accounts.revokeAppPassword(number, of: id, in: container) else {
            throw AdminRefusal.missing("app password")
        }
        try exchange.directory.authenticator.forget()
        return await exchange.done("user app-password revoke", "\(id) \(number)", container)
    }
}
