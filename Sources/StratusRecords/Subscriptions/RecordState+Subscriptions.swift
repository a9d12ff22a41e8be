import StratusCoding
import StratusModel
import StratusRows

extension RecordState {
    /// Poll tokens that may follow the news of one database for one owner, and devices as many. The
    /// one that moved the longest time ago gives way.
    static let followerCountMax = 100

    // MARK: subscriptions/modify

    /// In order, each on its own.
    mutating func apply(
        _ modify: ModifySubscriptions, of command: Command, over rows: Rows
    ) throws(StoreError) -> RecordOutcome {
        if let refusal = Self.check(modify, by: command.principal) { return .refused(refusal) }
        let (database, _) = try self.openDatabase(modify.database, over: rows)
        var edit = SubscriptionEdit(
            database: database, subscriber: command.principal.userRecordName, modify: modify,
            watch: try self.cache.watch(of: database, over: rows.view))
        var results: [SubscriptionResult] = []
        for operation in modify.operations {
            results.append(try edit.apply(operation, &self.cache, over: rows))
        }
        try edit.flush(into: rows, cache: &self.cache, bugs: self.bugs)
        return .subscriptions(results)
    }

    private static func check(
        _ modify: ModifySubscriptions, by principal: Principal
    ) -> RequestRefusal? {
        // Subscriptions belong to somebody.
        guard !principal.userRecordName.isEmpty,
            !principal.userRecordName.utf8.contains(0),
            !(modify.isShared && modify.database.scope == .public)
        else { return RequestRefusal(.accessDenied) }
        if modify.operations.isEmpty { return RequestRefusal(.empty) }
        if modify.operations.count > Self.operationCountMax {
            return RequestRefusal(.tooManyItems, String(Self.operationCountMax))
        }
        return nil
    }

    /// The database's number; drawn where nothing was ever written.
    private mutating func openDatabase(
        _ id: DatabaseID, over rows: Rows
    ) throws(StoreError) -> (DatabaseNumber, isNew: Bool) {
        if let known = try self.cache.database(id, over: rows.view) { return (known.number, false) }
        var numbers = NumberDraw()
        let database = try numbers.database(over: rows.view)
        try numbers.write(into: rows)
        try rows.put(.database, Keys.database(id), database.encoded())
        self.cache.remember(database, of: id)
        return (database.number, true)
    }

    // MARK: Followers

    mutating func apply(
        _ follow: FollowNews, of command: Command, at time: HybridTime,
        over rows: Rows
    ) throws(StoreError) -> RecordOutcome {
        guard command.principal.kind == .system, !follow.subscriber.isEmpty
        else { return .refused(RequestRefusal(.accessDenied)) }
        if follow.step == .forget {
            try self.forget(follow.subscriber, in: follow.database, over: rows)
            return .subscriptions([.deleted])
        }
        let (database, _) = try self.openDatabase(follow.database, over: rows)
        let key = Keys.follower(
            database, of: follow.subscriber, follow.token, as: follow.follower)
        let known = try StoredRows.follower(key, over: rows.view)
        let place = follow.follower == .device ? follow.database : nil
        let watch = try self.cache.watch(of: database, over: rows.view)
        switch follow.step {
        case .begin:
            if known != nil { return .subscriptions([.saved]) }
            try Self.makeRoom(for: follow, in: database, over: rows)
            let row = FollowerRow(
                position: NewsPosition(number: watch.nextEvent - 1),
                milliseconds: time.milliseconds, deviceIn: place)
            try rows.put(.subscription, key, row.encoded())
            try self.settle(through: watch.nextEvent - 1, told: nil, in: database, over: rows)
            return .subscriptions([.saved])
        case .advance(let from, let to, let spent, let told):
            guard let known else { return .subscriptions([.notFound]) }
            // Somebody else has taken it, or this is a repeat.
            let isThere = known.position == from || self.bugs.contains(.cursorNotCompared)
            guard isThere, from < to, to.number < watch.nextEvent else {
                return .subscriptions([.saved])
            }
            let row = FollowerRow(
                position: to, milliseconds: time.milliseconds, deviceIn: place)
            try rows.put(.subscription, key, row.encoded())
            try self.settle(through: to.number, told: told, in: database, over: rows)
            if let spent, !self.bugs.contains(.onceKept) {
                var edit = SubscriptionEdit(
                    database: database, subscriber: follow.subscriber,
                    modify: ModifySubscriptions(database: follow.database, operations: []),
                    watch: try self.cache.watch(of: database, over: rows.view))
                try edit.spend(spent, firedAt: to.number, over: rows)
                try edit.flush(into: rows, cache: &self.cache, bugs: self.bugs)
            }
            return .subscriptions([.saved])
        case .close(let mark, let told):
            guard mark < watch.nextEvent else { return .subscriptions([.notFound]) }
            try self.settle(through: mark, told: told, in: database, over: rows)
            return .subscriptions([.saved])
        case .leave:
            guard known != nil else { return .subscriptions([.notFound]) }
            try rows.remove(.subscription, key)
            return .subscriptions([.deleted])
        case .forget: return .subscriptions([.deleted])
        }
    }

    private mutating func settle(
        through number: UInt64, told: ChangeTag?, in database: DatabaseNumber, over rows: Rows
    ) throws(StoreError) {
        let news = try NewsEdit(database, cache: &self.cache, bugs: self.bugs, over: rows.view)
        guard var news else { return }
        try news.settle(through: number, told: told, into: rows)
        try news.flush(into: rows, cache: &self.cache)
    }

    /// As many rows as one owner may have, and no more.
    private mutating func forget(
        _ subscriber: String, in id: DatabaseID, over rows: Rows
    ) throws(StoreError) {
        guard let database = try self.cache.database(id, over: rows.view)?.number else { return }
        var edit = SubscriptionEdit(
            database: database, subscriber: subscriber,
            modify: ModifySubscriptions(database: id, operations: []),
            watch: try self.cache.watch(of: database, over: rows.view))
        try edit.removeAll(over: rows)
        // Only those of somebody who is being erased are forgotten.
        if edit.hasChanged { self.hasErased = true }
        try edit.flush(into: rows, cache: &self.cache, bugs: self.bugs)
        for follower in [NewsFollower.poll, .device] {
            let start = Keys.followers(database, of: subscriber, as: follower)
            for key in try rows.view.keys(
                .subscription, from: start, to: Keys.end(of: start), limit: Self.followerCountMax)
            {
                try rows.remove(.subscription, key)
            }
        }
    }

    /// Pages do not displace devices, nor devices pages.
    private static func makeRoom(
        for follow: FollowNews, in database: DatabaseNumber, over rows: Rows
    ) throws(StoreError) {
        let start = Keys.followers(database, of: follow.subscriber, as: follow.follower)
        let found = try rows.view.rows(
            .subscription, from: start, to: Keys.end(of: start), limit: Self.followerCountMax)
        guard found.count >= Self.followerCountMax else { return }
        var oldest: (key: Bytes, milliseconds: Int64)?
        for (key, row) in found {
            let follower = try StoredRows.follower(decoding: row)
            if follower.milliseconds < oldest?.milliseconds ?? .max {
                oldest = (key, follower.milliseconds)
            }
        }
        if let oldest { try rows.remove(.subscription, oldest.key) }
    }

    // MARK: Listing
}

/// One owner's subscriptions as one command changes them.
struct SubscriptionEdit {
    let database: DatabaseNumber
    let subscriber: String
    let modify: ModifySubscriptions
    private(set) var watch: WatchRow
    private(set) var hasChanged = false
    /// How many the owner has here, and the bytes of their rows; counted once.
    private var own: (count: Int, size: Int)?
    /// The operands of the owner's filters here; counted once, and only where they may be too many.
    private var ownOperandCount: Int?

    init(
        database: DatabaseNumber, subscriber: String, modify: ModifySubscriptions, watch: WatchRow
    ) {
        self.database = database
        self.subscriber = subscriber
        self.modify = modify
        self.watch = watch
    }

    mutating func apply(
        _ operation: ModifySubscriptions.Operation, _ cache: inout RowCache,
        over rows: Rows
    ) throws(StoreError) -> SubscriptionResult {
        let key = self.key(operation.id, isShared: self.modify.isShared)
        let known = try StoredRows.subscription(key, over: rows.view)
        switch operation {
        case .delete:
            guard let known else { return .notFound }
            try self.remove(known, at: key, over: rows)
            return .deleted
        case .update(let subscription):
            guard let known else { return .notFound }
            return try self.save(subscription, at: key, over: known, &cache, in: rows)
        case .create(let subscription):
            return try self.save(subscription, at: key, over: known, &cache, in: rows)
        }
    }

    private mutating func save(
        _ subscription: Subscription, at key: Bytes, over known: SubscriptionRow?,
        _ cache: inout RowCache, in rows: Rows
    ) throws(StoreError) -> SubscriptionResult {
        if known?.subscription == subscription { return .saved }
        if subscription.kind == .zone {
            let zone = try cache.zone(subscription.zone ?? "", in: self.database, over: rows.view)
            guard let zone, !zone.isDeleted, !ZoneID.isReserved(subscription.zone ?? "") else {
                return .zoneNotFound
            }
        }
        // It fires from here on.
        let row = SubscriptionRow(since: self.watch.nextEvent, subscription).encoded()
        let own = try self.countOwn(over: rows.view)
        let size = own.size + row.count - (known?.encoded().count ?? 0)
        if size > Subscription.ownSizeMax || (known == nil && own.count >= self.modify.countMax) {
            return .tooMany
        }
        // Each operand takes at least a byte of a row.
        if size > Subscription.ownOperandCountMax {
            let others =
                try self.countOperands(over: rows.view) - (known?.subscription.operandCount ?? 0)
            if others + subscription.operandCount > Subscription.ownOperandCountMax {
                return .tooMany
            }
        }
        if let known { try self.remove(known, at: key, over: rows) }
        try rows.put(.subscription, key, row)
        try self.count(subscription, by: 1, over: rows)
        self.own = (own.count + (known == nil ? 1 : 0), size)
        if let count = self.ownOperandCount {
            self.ownOperandCount = count + subscription.operandCount
        }
        return .saved
    }

    /// Deletes a subscription that fires once, if it is the one that fired.
    mutating func spend(
        _ id: String, firedAt number: UInt64, over rows: Rows
    ) throws(StoreError) {
        for isShared in [false, true] {
            let key = self.key(id, isShared: isShared)
            guard let known = try StoredRows.subscription(key, over: rows.view),
                known.subscription.firesOnce, known.since <= number
            else { continue }
            try self.remove(known, at: key, over: rows)
            return
        }
    }

    mutating func removeAll(over rows: Rows) throws(StoreError) {
        for isShared in [false, true] {
            for row in try StoredRows.subscriptions(
                self.database, isShared: isShared, of: self.subscriber, over: rows.view)
            {
                let key = self.key(row.subscription.id, isShared: isShared)
                try self.remove(row, at: key, over: rows)
            }
        }
    }

    private mutating func remove(
        _ row: SubscriptionRow, at key: Bytes, over rows: Rows
    ) throws(StoreError) {
        if let own = self.own {
            self.own = (own.count - 1, own.size - row.encoded().count)
        }
        if let count = self.ownOperandCount {
            self.ownOperandCount = count - row.subscription.operandCount
        }
        try rows.remove(.subscription, key)
        try self.count(row.subscription, by: -1, over: rows)
    }

    private mutating func count(
        _ subscription: Subscription, by step: Int64, over rows: Rows
    ) throws(StoreError) {
        self.hasChanged = true
        func moved(_ count: UInt64) -> UInt64 {
            UInt64(clamping: Int64(clamping: count) + step)
        }
        self.watch.subscriptionCount = moved(self.watch.subscriptionCount)
        if subscription.watchesZones {
            self.watch.zoneWatcherCount = moved(self.watch.zoneWatcherCount)
            // It does not fire for the marks that are there, so they may not be renewed for it.
            if step > 0 { self.watch.front = self.watch.nextEvent - 1 }
            return
        }
        guard let type = subscription.predicate?.recordType else { return }
        var interest =
            try StoredRows.interest(type, in: self.database, over: rows.view) ?? InterestRow()
        interest.count(subscription, by: step)
        let key = Keys.interest(self.database, type)
        if interest.isEmpty {
            try rows.remove(.subscription, key)
        } else {
            try rows.put(.subscription, key, interest.encoded())
        }
    }

    private mutating func countOwn(
        over rows: RowView
    ) throws(StoreError) -> (count: Int, size: Int) {
        if let own = self.own { return own }
        var own = (count: 0, size: 0)
        for isShared in [false, true] {
            let start = Keys.subscriptions(
                self.database, isShared: isShared, of: self.subscriber)
            let found = try rows.keys(
                .subscription, from: start, to: Keys.end(of: start), limit: 10_000, sizeMax: .max)
            own = (own.count + found.keys.count, own.size + found.size)
        }
        self.own = own
        return own
    }

    private mutating func countOperands(
        over rows: RowView
    ) throws(StoreError) -> Int {
        if let count = self.ownOperandCount { return count }
        var count = 0
        for isShared in [false, true] {
            for row in try StoredRows.subscriptions(
                self.database, isShared: isShared, of: self.subscriber, over: rows)
            {
                count += row.subscription.operandCount
            }
        }
        self.ownOperandCount = count
        return count
    }

    private func key(_ id: String, isShared: Bool) -> Bytes {
        Keys.subscription(self.database, isShared: isShared, of: self.subscriber, id)
    }

    func flush(
        into rows: Rows, cache: inout RowCache, bugs: PlantedBugs
    ) throws(StoreError) {
        guard self.hasChanged else { return }
        if !bugs.contains(.boardKeptOverChange) {
            cache.board.forget(
                NewsBoard.Owner(database: self.database, subscriber: self.subscriber))
        }
        try rows.put(.subscription, Keys.watch(self.database), self.watch.encoded())
        cache.remember(self.watch, of: self.database)
    }
}

extension StoredRows {
    static func watch(_ database: DatabaseNumber, over rows: RowView)
        throws(StoreError) -> WatchRow
    {
        guard let row = try rows.row(.subscription, Keys.watch(database)) else {
            return WatchRow(above: try Self.counters(over: rows).eventFloor)
        }
        return try decodingRow("watch") { () throws(DecodingError) in
            try WatchRow(decoding: row)
        }
    }

    static func marks(
        of zone: String, in database: DatabaseNumber, over rows: RowView
    ) throws(StoreError) -> ZoneMarksRow {
        guard let row = try rows.row(.subscription, Keys.mark(database, zone)) else {
            return ZoneMarksRow()
        }
        return try decodingRow("marks") { () throws(DecodingError) in
            try ZoneMarksRow(decoding: row)
        }
    }

    static func event(decoding row: Bytes, owner: String = "") throws(StoreError) -> NewsEvent {
        try decodingRow("event") { () throws(DecodingError) in
            try NewsEvent(decoding: row, owner: owner)
        }
    }

    static func interest(
        _ type: String, in database: DatabaseNumber, over rows: RowView
    ) throws(StoreError) -> InterestRow? {
        guard let row = try rows.row(.subscription, Keys.interest(database, type)) else {
            return nil
        }
        return try decodingRow("interest") { () throws(DecodingError) in
            try InterestRow(decoding: row)
        }
    }

    static func subscription(_ key: Bytes, over rows: RowView)
        throws(StoreError) -> SubscriptionRow?
    {
        guard let row = try rows.row(.subscription, key) else { return nil }
        return try Self.subscription(decoding: row)
    }

    private static func subscription(decoding row: Bytes) throws(StoreError) -> SubscriptionRow {
        try decodingRow("subscription") { () throws(DecodingError) in
            try SubscriptionRow(decoding: row)
        }
    }

    /// Bounded by how many one owner may have.
    static func subscriptions(
        _ database: DatabaseNumber, isShared: Bool, of subscriber: String,
        over rows: RowView
    ) throws(StoreError) -> [SubscriptionRow] {
        let start = Keys.subscriptions(database, isShared: isShared, of: subscriber)
        var found: [SubscriptionRow] = []
        for (_, row) in try rows.rows(
            .subscription, from: start, to: Keys.end(of: start), limit: 10_000)
        {
            found.append(try Self.subscription(decoding: row))
        }
        return found
    }

    static func follower(_ key: Bytes, over rows: RowView) throws(StoreError)
        -> FollowerRow?
    {
        guard let row = try rows.row(.subscription, key) else { return nil }
        return try Self.follower(decoding: row)
    }

    static func follower(decoding row: Bytes) throws(StoreError) -> FollowerRow {
        try decodingRow("follower") { () throws(DecodingError) in
            try FollowerRow(decoding: row)
        }
    }
}
