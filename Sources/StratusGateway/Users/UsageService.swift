import StratusCluster
import StratusHTTP
import StratusModel
import StratusRecords

/// Ours: what the caller's private database holds, and what it may hold.
struct UsageService: Sendable {
    let exchange: Exchange

    static let operations = [
        GatewayOperation("usage", methods: [.get, .post], in: .private, needs: .user) {
            exchange, _ in try await UsageService(exchange: exchange).usage()
        }
    ]

    /// `usage`: what the caller's private database holds, and its quota if it has one.
    func usage() async throws -> Bytes {
        var (use, zoneCount, assets) = try await self.held(by: self.exchange.holder.database)
        if let database = self.exchange.holder.spread {
            let (parts, _) = try await self.exchange.askBuckets(of: database) {
                try await self.held(by: database.part($0))
            }
            for (_, held) in parts {
                use = use + held.use
                zoneCount += held.zoneCount
                assets = assets + held.assets
            }
        }
        var json = JSONWriter()
        json.object {
            $0.member("zones", Int64(clamping: zoneCount))
            $0.member("records", Int64(clamping: use.recordCount))
            $0.member("bytes", Int64(clamping: use.size))
            $0.member("assets", Int64(clamping: assets.count))
            $0.member("assetBytes", Int64(clamping: assets.size))
            let quota = self.exchange.rules.databaseSizeMax
            if quota != 0 { $0.member("bytesMax", Int64(clamping: quota)) }
        }
        return json.finish()
    }

    private func held(
        by database: DatabaseID
    ) async throws -> (use: StorageUse, zoneCount: UInt64, assets: AssetUse) {
        let answer = try await self.exchange.ask(.use(database), at: .database(database))
        guard case .use(let use, let zoneCount, let assets) = answer else {
            throw RouteError.otherKind
        }
        return (use, zoneCount, assets)
    }
}
