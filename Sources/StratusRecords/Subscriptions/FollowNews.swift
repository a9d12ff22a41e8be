package import StratusCoding
package import StratusModel
package import StratusRows

/// Moves one follower of a database's news: a poll token or a device of one owner of subscriptions.
package struct FollowNews: DatabaseOperation, Equatable {
    package static let number: UInt8 = 11
    /// Most of it is an owner who goes, with a thousand subscriptions to as many types.
    package static let bound = WorkBound.entry(256_000)
    package static let tokenLength = 16
    package static let noToken = Bytes(repeating: 0, count: Self.tokenLength)

    package enum Step: Sendable, Equatable {
        /// The follower begins at the present. One that is there already stays where it is.
        case begin
        /// The follower has taken everything through `to`, if it still stands at `from`.
        /// `spent`: the subscription whose one notification was taken, deleted if it stood before
        /// that event. `told`: of a zone's change, the tag that was told.
        case advance(
            from: NewsPosition, to: NewsPosition, spent: String?, told: ChangeTag? = nil)
        /// A live stream, which moves no follower, is about to tell of a mark with this tag.
        case close(mark: UInt64, told: ChangeTag)
        /// The owner goes: all subscriptions and all followers, whatever their tokens.
        case forget
        /// The device follows no longer.
        case leave
    }

    package var database = DatabaseID()
    /// The record name of the subscriptions' owner.
    package var subscriber = ""
    /// 16 bytes.
    package var token = Self.noToken
    /// Without meaning where the owner goes, and for a live stream. Only a device leaves.
    package var follower = NewsFollower.poll
    package var step = Step.begin

    package init() {}

    package var payer: Payer { .user(self.database.container, self.subscriber) }
    package var need: AccessNeed { .system }
    package var adds: Bool { false }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.subscriber)
        try form.require(!self.subscriber.utf8.contains(0))
        try form.lay(token: &self.token)
        var number = self.stepNumber
        try form.lay(byte: &number)
        if number != self.stepNumber { try form.require(self.take(number)) }
        switch self.step {
        case .begin, .forget, .leave: break
        case .advance(var from, var to, var spent, var told):
            try form.lay(&from)
            try form.lay(&to)
            try form.lay(&spent)
            try form.lay(&told)
            self.step = .advance(from: from, to: to, spent: spent, told: told)
        case .close(var mark, var told):
            try form.lay(&mark)
            try form.lay(&told)
            self.step = .close(mark: mark, told: told)
        }
    }

    /// Of the step, and of who makes it.
    private var stepNumber: UInt8 {
        switch (self.step, self.follower) {
        case (.begin, .poll): 1
        case (.advance, .poll): 2
        case (.forget, _): 3
        case (.begin, .device): 4
        case (.advance, .device): 5
        case (.leave, _): 6
        case (.close, _): 7
        }
    }

    private mutating func take(_ number: UInt8) -> Bool {
        let start = NewsPosition(number: 0)
        switch number {
        case 1, 4: self.step = .begin
        case 2, 5: self.step = .advance(from: start, to: start, spent: nil)
        case 3: self.step = .forget
        case 6: self.step = .leave
        case 7: self.step = .close(mark: 0, told: ChangeTag(0))
        default: return false
        }
        self.follower = (4...6).contains(number) ? .device : .poll
        return true
    }

    package func apply(
        in state: inout RecordState, at entry: borrowing EntryContext, over rows: Rows
    ) throws(StoreError) -> Result<ModifiedSubscriptions, RequestRefusal> {
        if self.subscriber.isEmpty { return .failure(RequestRefusal(.accessDenied)) }
        let result = try self.result(in: &state, at: entry.time.milliseconds, over: rows)
        return .success(ModifiedSubscriptions { $0.results = [result] })
    }

    private func result(
        in state: inout RecordState, at milliseconds: Int64, over rows: Rows
    ) throws(StoreError) -> SubscriptionResult {
        if self.step == .forget {
            try self.forget(in: &state, over: rows)
            return .deleted
        }
        let database = try state.openDatabase(self.database, over: rows)
        let key = Keys.follower(database, of: self.subscriber, self.token, as: self.follower)
        let known = try StoredRows.follower(key, over: rows.view)
        let watch = try state.cache.watch(of: database, over: rows.view)
        let latest = watch.nextEvent - 1
        switch self.step {
        case .begin:
            if known != nil { return .saved }
            try self.makeRoom(in: database, over: rows)
            try rows.put(
                .subscription, key, self.row(at: NewsPosition(number: latest), milliseconds))
            try state.settleNews(through: latest, told: nil, in: database, over: rows)
            return .saved
        case .advance(let from, let to, let spent, let told):
            guard let known else { return .notFound }
            // Somebody else has taken it, or this is a repeat.
            let isThere = known.position == from || state.bugs.contains(.cursorNotCompared)
            guard isThere, from < to, to.number <= latest else { return .saved }
            try rows.put(.subscription, key, self.row(at: to, milliseconds))
            try state.settleNews(through: to.number, told: told, in: database, over: rows)
            if let spent, !state.bugs.contains(.onceKept) {
                var edit = try self.edit(of: database, in: &state, over: rows)
                try edit.spend(spent, firedAt: to.number, over: rows)
                try edit.flush(into: rows, cache: &state.cache, bugs: state.bugs)
            }
            return .saved
        case .close(let mark, let told):
            guard mark <= latest else { return .notFound }
            try state.settleNews(through: mark, told: told, in: database, over: rows)
            return .saved
        case .leave:
            guard known != nil else { return .notFound }
            try rows.remove(.subscription, key)
            return .deleted
        case .forget: return .deleted
        }
    }

    private func row(at position: NewsPosition, _ milliseconds: Int64) -> Bytes {
        FollowerRow(
            position: position, milliseconds: milliseconds,
            deviceIn: self.follower == .device ? self.database : nil
        ).encoded()
    }

    private func edit(
        of database: DatabaseNumber, in state: inout RecordState, over rows: Rows
    ) throws(StoreError) -> SubscriptionEdit {
        SubscriptionEdit(
            database: database, subscriber: self.subscriber,
            watch: try state.cache.watch(of: database, over: rows.view))
    }

    /// As many rows as one owner may have, and no more.
    private func forget(in state: inout RecordState, over rows: Rows) throws(StoreError) {
        guard let known = try state.cache.database(self.database, over: rows.view) else { return }
        var edit = try self.edit(of: known.number, in: &state, over: rows)
        try edit.removeAll(over: rows)
        // Only those of somebody who is being erased are forgotten.
        if edit.hasChanged { state.hasErased = true }
        try edit.flush(into: rows, cache: &state.cache, bugs: state.bugs)
        for follower in [NewsFollower.poll, .device] {
            let start = Keys.followers(known.number, of: self.subscriber, as: follower)
            for key in try rows.view.keys(
                .subscription, from: start, to: Keys.end(of: start),
                limit: RecordState.followerCountMax)
            {
                try rows.remove(.subscription, key)
            }
        }
    }

    /// Pages do not displace devices, nor devices pages.
    private func makeRoom(in database: DatabaseNumber, over rows: Rows) throws(StoreError) {
        let start = Keys.followers(database, of: self.subscriber, as: self.follower)
        let found = try rows.view.rows(
            .subscription, from: start, to: Keys.end(of: start),
            limit: RecordState.followerCountMax)
        guard found.count >= RecordState.followerCountMax else { return }
        var oldest: (key: Bytes, milliseconds: Int64)?
        for (key, row) in found {
            let follower = try StoredRows.follower(decoding: row)
            if follower.milliseconds < oldest?.milliseconds ?? .max {
                oldest = (key, follower.milliseconds)
            }
        }
        if let oldest { try rows.remove(.subscription, oldest.key) }
    }
}

extension RecordState {
    /// Poll tokens that may follow the news of one database for one owner, and devices as many. The
    /// one that moved the longest time ago gives way.
    static let followerCountMax = 100

    /// The database's number; drawn where nothing was ever written.
    mutating func openDatabase(
        _ id: DatabaseID, over rows: Rows
    ) throws(StoreError) -> DatabaseNumber {
        if let known = try self.cache.database(id, over: rows.view) { return known.number }
        var numbers = NumberDraw()
        let database = try numbers.database(over: rows.view)
        try numbers.write(into: rows)
        try rows.put(.database, Keys.database(id), database.encoded())
        self.cache.remember(database, of: id)
        return database.number
    }

    fileprivate mutating func settleNews(
        through number: UInt64, told: ChangeTag?, in database: DatabaseNumber, over rows: Rows
    ) throws(StoreError) {
        let news = try NewsEdit(database, cache: &self.cache, bugs: self.bugs, over: rows.view)
        guard var news else { return }
        try news.settle(through: number, told: told, into: rows)
        try news.flush(into: rows, cache: &self.cache)
    }
}
