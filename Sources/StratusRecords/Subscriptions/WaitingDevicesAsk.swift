package import StratusCoding
package import StratusModel
package import StratusRows

/// Asks which devices of one partition stand before the last event of their database, by database
/// and owner. For Stratus itself.
///
/// It matches nothing: whether something fires for a device is asked of each by ``NewsAsk``, with
/// the rights that its owner has then.
package struct WaitingDevicesAsk: SingleQuestion, Equatable {
    package static let number: UInt8 = 14
    package static let bound = WorkBound.single(1_000)
    /// Followers that one answer looks at. Each may be of another database, with two rows.
    static let countMax = 300

    /// Where an earlier answer stopped; nil: at the beginning.
    package var after: Bytes?
    package var limit = UInt32(Self.countMax)

    package init() {}

    package var payer: Payer { .stratus }
    package var need: AccessNeed { .system }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.after)
        try form.lay(&self.limit)
    }

    package func answer(
        in state: inout RecordState, to asker: Principal, _ cost: ReadCost, over view: RowView
    ) throws(StoreError) -> Result<WaitingDevices, RequestRefusal> {
        let limit = min(max(1, Int(self.limit)), Self.countMax)
        let kind = Keys.SubscriptionKind.deviceFollower.rawValue
        let found = try view.rows(
            .subscription, from: self.after.map { $0 + [0] } ?? [kind], to: [kind + 1],
            limit: limit)
        var waiting = WaitingDevices()
        for (key, row) in found {
            let follower = try StoredRows.follower(decoding: row)
            guard let database = follower.database,
                let number = try state.cache.database(database, over: view)?.number
            else { continue }
            let watch = try state.cache.watch(of: number, over: view)
            let last = NewsPosition(number: watch.nextEvent - 1)
            guard follower.position < last else { continue }
            let (subscriber, token) = try Keys.followerParts(key)
            waiting.followers.append(
                WaitingDevices.Follower {
                    $0.database = database
                    $0.subscriber = subscriber
                    $0.token = token
                    $0.through = last.number
                })
        }
        if found.count == limit { waiting.next = found.last?.key }
        return .success(waiting)
    }
}

/// An answer to a ``WaitingDevicesAsk``.
package struct WaitingDevices: FormValue, Sendable, Equatable {
    /// A device that stands before the end of a database's events.
    package struct Follower: FormValue, Sendable, Hashable {
        package var database = DatabaseID()
        package var subscriber = ""
        package var token = FollowNews.noToken
        /// The number of the database's last event.
        package var through: UInt64 = 0

        package init() {}

        package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
            try form.lay(&self.database)
            try form.lay(&self.subscriber)
            try form.lay(token: &self.token)
            try form.lay(&self.through)
        }
    }

    package var followers: [Follower] = []
    /// Where to go on; nil: all were looked at.
    package var next: Bytes?

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.followers, atMost: WaitingDevicesAsk.countMax)
        try form.lay(&self.next)
    }
}
