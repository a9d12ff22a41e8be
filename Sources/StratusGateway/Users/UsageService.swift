import StratusCluster
import StratusHTTP
import StratusModel
import StratusRecords

extension Exchange {
    /// `usage`: what the caller's private database holds, and its quota if it has one.
    func usage() async throws -> Bytes {
        try await self.requireUser()
        let answer = try await self.read(.use(self.ownDatabase), at: .database(self.ownDatabase))
        guard case .use(let use, let zoneCount) = answer else {
            throw RouteError.refused("no usage where it was asked for")
        }
        var json = JSONWriter()
        json.object {
            $0.member("zones", Int64(clamping: zoneCount))
            $0.member("records", Int64(clamping: use.recordCount))
            $0.member("bytes", Int64(clamping: use.size))
            let quota = self.rules.databaseSizeMax
            if quota != 0 { $0.member("bytesMax", Int64(clamping: quota)) }
        }
        return json.finish()
    }
}
