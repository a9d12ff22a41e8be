import StratusCluster
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRows
import StratusRuntime
import StratusSealing

/// Whether the caller has an account whose storage an app may use, and whose it is.
struct AccountService: Sendable {
    let exchange: Exchange

    static let operations = [
        GatewayOperation(
            "account", of: .ubiquity, methods: [.get, .post], in: .public, needs: .reader
        ) { exchange, _ in try await AccountService(exchange: exchange).account() }
    ]

    /// `GET account`: never an error for want of a user, as an app asks this to find out.
    func account() async throws -> Bytes {
        let exchange = self.exchange
        var json = JSONWriter()
        guard exchange.sender.principal.kind == .user, try await self.mayUsePrivateData() else {
            json.object { $0.member("available", false) }
            return json.finish()
        }
        let database = exchange.holder.home
        let key = ShardKey.database(database)
        let page = try await exchange.ask(KeyValuesAsk(database) { $0.limit = 1 }, at: key)
        guard
            case .use(let use, _, let assets) = try await exchange.ask(.use(database), at: key)
        else { throw RouteError.otherKind }
        json.object { object in
            object.member("available", true)
            object.member("identityToken", exchange.identityToken)
            object.key("keyValue")
            object.write(page.use, exchange.kernel.limits)
            object.key("storage")
            object.object {
                $0.member("bytes", Int64(clamping: use.size))
                $0.member("assetBytes", Int64(clamping: assets.size))
                let quota = exchange.kernel.limits.privateDatabaseSizeMax
                if quota.raw != 0 { $0.member("bytesMax", quota.raw) }
            }
        }
        return json.finish()
    }

    /// Whether the caller has not closed the private database to this app.
    private func mayUsePrivateData() async throws -> Bool {
        let exchange = self.exchange
        do {
            _ = try await exchange.kernel.authenticator.authenticate(
                PresentedRequest(
                    head: exchange.head, container: exchange.route.container, scope: .private,
                    isSecure: exchange.isSecure))
            return true
        } catch AuthenticationRefusal.denied {
            return false
        }
    }
}

extension Exchange {
    /// Tells accounts apart, and nothing else: equal for one user in one container, for as long as
    /// the user is called the same there.
    var identityToken: String {
        let place = FeedPlace(
            container: self.route.container, scope: .private, owner: self.sender.name, zone: nil)
        return self.kernel.tokens.identity(of: place.circumstances(0x21)).uuid
    }
}
