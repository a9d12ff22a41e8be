import StratusCoding
import StratusModel
import StratusRows

/// One owner's subscriptions as one command changes them.
struct SubscriptionEdit {
    let database: DatabaseNumber
    let subscriber: String
    /// Whether they are those of the owner's shared database.
    var isShared = false
    /// The most that the owner may have.
    var countMax = 0
    private(set) var watch: WatchRow
    private(set) var hasChanged = false
    /// How many the owner has here, and the bytes of their rows; counted once.
    private var own: (count: Int, size: Int)?
    /// The operands of the owner's filters here; counted once, and only where they may be too many.
    private var ownOperandCount: Int?
    /// What subscriptions want of the types that the changes are about.
    private var interests: [String: InterestRow] = [:]

    init(database: DatabaseNumber, subscriber: String, watch: WatchRow) {
        self.database = database
        self.subscriber = subscriber
        self.watch = watch
    }

    mutating func apply(
        _ operation: ModifySubscriptions.Operation, _ cache: inout RowCache,
        over rows: Rows
    ) throws(StoreError) -> SubscriptionResult {
        let key = self.key(operation.id, isShared: self.isShared)
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
        if size > Subscription.ownSizeMax || (known == nil && own.count >= self.countMax) {
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
        if self.interests[type] == nil {
            self.interests[type] =
                try StoredRows.interest(type, in: self.database, over: rows.view) ?? InterestRow()
        }
        self.interests[type]?.count(subscription, by: step)
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
        for (type, interest) in self.interests.sorted(by: { $0.key < $1.key }) {
            let key = Keys.interest(self.database, type)
            if interest.isEmpty {
                try rows.remove(.subscription, key)
            } else {
                try rows.put(.subscription, key, interest.encoded())
            }
        }
        try rows.put(.subscription, Keys.watch(self.database), self.watch.encoded())
        cache.remember(self.watch, of: self.database)
    }
}
