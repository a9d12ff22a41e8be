import StratusCoding
import StratusModel
import StratusRows

extension RecordState {
    static let waitingDeviceCountMax = 1_000

    /// The devices that stand before the last event of their database, by database and owner.
    ///
    /// It matches nothing: whether something fires for a device is asked of each by ``NewsAsk``,
    /// with the rights that its owner has then.
    mutating func waitingDevices(
        _ ask: WaitingDevicesAsk, _ principal: Principal, over rows: RowView
    ) throws(StoreError) -> RecordAnswer {
        guard principal.kind == .system else { return .refused(RequestRefusal(.accessDenied)) }
        let limit = min(max(1, ask.limit), Self.waitingDeviceCountMax)
        let kind = Keys.SubscriptionKind.deviceFollower.rawValue
        let found = try rows.rows(
            .subscription, from: ask.after.map { $0 + [0] } ?? [kind], to: [kind + 1],
            limit: limit)
        var waiting = WaitingDevices(followers: [])
        for (key, row) in found {
            let follower = try StoredRows.follower(decoding: row)
            guard let database = follower.database,
                let number = try self.cache.database(database, over: rows)?.number
            else { continue }
            let watch = try self.cache.watch(of: number, over: rows)
            let last = NewsPosition(number: watch.nextEvent - 1)
            guard follower.position < last else { continue }
            let (subscriber, token) = try Keys.followerParts(key)
            waiting.followers.append(
                WaitingDevices.Follower(
                    database: database, subscriber: subscriber, token: token,
                    through: last.number))
        }
        if found.count == limit { waiting.next = found.last?.key }
        return .waitingDevices(waiting)
    }
}
