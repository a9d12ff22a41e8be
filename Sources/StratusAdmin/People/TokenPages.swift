import StratusAdminModel
import StratusContainers
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRuntime

/// API tokens of a container. A token is shown once, in the answer that made it.
enum TokenPages {
    static let routes: [AdminRoute] = [
        AdminRoute(
            "GET", "/v1/containers/{container}/environments/{environment}/tokens",
            answer: "the tokens, without their text"
        ) { try await Self.listTokens($0, in: $0.container()) },
        AdminRoute(
            "POST", "/v1/containers/{container}/environments/{environment}/tokens",
            body: "name, origins, callbackURL, anyOrigin, receivesNames",
            answer: "the token, shown this once, its id, and whether this made the container "
                + "(existing=1: it must be there)"
        ) { try await Self.createToken($0, $0.body(), in: $0.namedContainer()) },
        AdminRoute(
            "DELETE", "/v1/containers/{container}/environments/{environment}/tokens/{token}",
            answer: "nothing"
        ) { try await Self.revoke($0, in: $0.container()) },
    ]

    private static func createToken(
        _ exchange: AdminExchange, _ body: TokenBody, in container: ContainerReference
    ) async throws
        -> HTTPResponse
    {
        let origins = body.origins
        for origin in origins where WebOrigin(origin) == nil {
            throw AdminRefusal.bad("'\(origin)' is not an origin: write it as https://host[:port]")
        }
        let callback = body.callbackURL
        if let callback, !Self.isCallback(callback, container) {
            throw AdminRefusal.bad(
                "'\(callback)' is not a callback URL: use https://… (http:// in development), or an "
                    + "app's own scheme")
        }
        // Anybody who knows an API token can send people a sign-in link. So somebody must have
        // named the receivers of what people sign in with.
        let namesReceivers = !origins.isEmpty || callback != nil
        guard
            container.environment == .development || namesReceivers
                || body.anyOrigin
        else {
            throw AdminRefusal.bad(
                "a production token must say where sign-in may send its result: give "
                    + "'origins' or 'callbackURL', or 'anyOrigin' for any page")
        }
        let name = try AdminExchange.name(body.name)
        let isCreated = try await exchange.admit(container)
        let token = APIToken(
            name: name, callbackURL: callback, origins: origins,
            receivesNames: body.receivesNames,
            createdMilliseconds: try exchange.store.now)
        let text = try await exchange.access.createToken(token, in: container)
        let hash = try exchange.store.keys.hash(ofToken: text)
        let id = Hexadecimal.text(hash.prefix(8))
        await exchange.noteAfterwards("token create", "\(id) '\(token.name)'", container)
        return AdminAnswer.json(
            TokenAnswer {
                $0.token = text
                $0.id = id
                $0.isCreated = isCreated
            }, status: 201)
    }

    private static func listTokens(_ exchange: AdminExchange, in container: ContainerReference)
        async throws -> HTTPResponse
    {
        let tokens = try await exchange.access.tokens(in: container)
        return AdminAnswer.json(
            Listing(
                tokens.map { listed in
                    TokenRow {
                        $0.id = listed.id
                        $0.name = listed.token.name
                        $0.created = WallTime.text(listed.token.createdMilliseconds)
                        $0.callbackURL = listed.token.callbackURL
                        $0.origins = listed.token.origins
                        $0.receivesNames = listed.token.receivesNames
                    }
                }))
    }

    private static func revoke(_ exchange: AdminExchange, in container: ContainerReference)
        async throws -> HTTPResponse
    {
        let id = exchange.parameter("token")
        guard try await exchange.access.revokeToken(id: id, in: container) else {
            throw AdminRefusal.missing("token")
        }
        return await exchange.done("token revoke", id, container)
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
