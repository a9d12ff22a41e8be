import StratusCoding
import StratusModel
import StratusRows

/// Applies identity commands to rows and answers identity queries from them: accounts, tokens and
/// the like.
///
/// The rows are in a table of their own beside a partition's records, and obey the same rules. The
/// entry's time is the only clock, and equal commands over equal rows give equal rows.
enum IdentityState {
    /// One row: an account with its names, a token with its origins.
    static let bodySizeMax = 64 << 10
    static let listCountMax = 1_000
    /// Bytes of rows after which a list's page ends; fewer rows than asked for, then, are not all.
    static let listSizeMax = IdentityQuery.listSizeMax
    /// Expired rows that one command removes: more than one can add, so that they never pile up.
    static let expiredCountMax = 8

    /// Tells which builds know the rows that a command names.
    static func reading(ofRowsIn body: Bytes) -> CommandReading {
        do throws(DecodingError) {
            return .readable(since: try IdentityCommand(decoding: body).level)
        } catch {
            if case .unknownNumber(let family, let number) = error.kind {
                return .newer("\(family) \(number)")
            }
            return .malformed
        }
    }

    // MARK: Applying

    /// - Parameter hasErased: set where a row about a person was removed.
    static func apply(
        _ command: Command, at time: HybridTime, hasErased: inout Bool,
        over rows: Rows
    ) throws(StoreError) -> Outcome {
        guard let body = try? IdentityCommand(decoding: command.body) else {
            return Outcome(.unreadable)
        }
        // Gateways decide who may; nothing of a client's own making comes here.
        guard command.principal.kind == .system || command.principal.kind == .administrator else {
            return Outcome(.decided, body: IdentityOutcome.refused.encoded())
        }
        let outcome = try Self.apply(body, at: time.milliseconds, over: rows)
        if case .done = outcome, body.edits.contains(where: \.removesPerson) { hasErased = true }
        return Outcome(.decided, body: outcome.encoded())
    }

    private static func apply(
        _ command: IdentityCommand, at now: Int64, over rows: Rows
    ) throws(StoreError) -> IdentityOutcome {
        guard command.edits.count <= IdentityCommand.editCountMax,
            Set(command.edits.map(\.key)).count == command.edits.count
        else { return .refused }
        var plans: [Plan] = []
        for (place, edit) in command.edits.enumerated() {
            let stored = try Self.row(edit.key.encoded, over: rows.view)
            let live = stored.flatMap { $0.isLive(at: now) ? $0 : nil }
            guard Self.holds(edit.condition, live) else { return .conflict(place) }
            switch try Self.plan(edit, stored: stored, live: live, at: now, over: rows.view) {
            case .plan(let plan): plans.append(plan)
            case .refused(let outcome): return outcome
            }
        }
        for plan in plans { try Self.write(plan, into: rows) }
        try Self.removeExpired(at: now, in: rows)
        return .done(plans.map(\.answer))
    }

    /// The changes that one edit will make.
    private struct Plan {
        var key: Bytes
        var before: IdentityRow?
        /// Nil: no row afterwards.
        var after: IdentityRow?
        var answer: UInt64
        var isChange = true
    }

    private enum Planned {
        case plan(Plan)
        case refused(IdentityOutcome)
    }

    private static func plan(
        _ edit: IdentityCommand.Edit, stored: IdentityRow?, live: IdentityRow?, at now: Int64,
        over rows: RowView
    ) throws(StoreError) -> Planned {
        let key = edit.key.encoded
        let revision = (stored?.revision ?? 0) + 1
        switch edit.change {
        case .put(let body, let expiry):
            guard body.count <= Self.bodySizeMax, expiry >= 0 else { return .refused(.refused) }
            let row = IdentityRow(revision: revision, expiresAtMilliseconds: expiry, body: body)
            return .plan(Plan(key: key, before: stored, after: row, answer: revision))
        case .remove:
            return .plan(Plan(key: key, before: stored, after: nil, answer: 0))
        case .require:
            return .plan(
                Plan(
                    key: key, before: stored, after: stored, answer: live?.revision ?? 0,
                    isChange: false))
        case .count(let limit, let span):
            let counter = try live.map { row throws(StoreError) in
                try decodingRow("counter") { () throws(DecodingError) in
                    try Counter(decoding: row.body)
                }
            }
            var next = counter ?? Counter(count: 0, firstMilliseconds: now)
            let (end, overflows) = next.firstMilliseconds.addingReportingOverflow(max(1, span))
            guard !overflows else { return .refused(.refused) }
            if next.count >= limit {
                return .refused(.limited(retryAfterMilliseconds: max(1, end - now)))
            }
            next.count += 1
            let row = IdentityRow(
                revision: revision, expiresAtMilliseconds: end, body: next.encoded())
            return .plan(Plan(key: key, before: stored, after: row, answer: next.count))
        }
    }

    private static func holds(_ condition: IdentityCommand.Condition, _ live: IdentityRow?) -> Bool
    {
        switch condition {
        case .any: true
        case .absent: live == nil
        case .present: live != nil
        case .revision(let revision): live?.revision == revision
        }
    }

    private static func write(_ plan: Plan, into rows: Rows) throws(StoreError) {
        guard plan.isChange else { return }
        if let before = plan.before, before.expiresAtMilliseconds > 0,
            before.expiresAtMilliseconds != plan.after?.expiresAtMilliseconds
        {
            try rows.remove(
                .identity, IdentityKey.expiry(before.expiresAtMilliseconds, of: plan.key))
        }
        guard let after = plan.after else {
            if plan.before != nil { try rows.remove(.identity, plan.key) }
            return
        }
        try rows.put(.identity, plan.key, after.encoded())
        if after.expiresAtMilliseconds > 0,
            plan.before?.expiresAtMilliseconds != after.expiresAtMilliseconds
        {
            try rows.put(
                .identity, IdentityKey.expiry(after.expiresAtMilliseconds, of: plan.key), [1])
        }
    }

    private static func removeExpired(at now: Int64, in rows: Rows)
        throws(StoreError)
    {
        // A row is gone at its expiry, not after it.
        let end = IdentityKey.expiryStart(max(0, now) + 1)
        let expired = try rows.view.keys(
            .identity, from: [0], to: end, limit: Self.expiredCountMax)
        for key in expired {
            try rows.remove(.identity, key)
            try rows.remove(.identity, Bytes(key[9...]))
        }
    }

    // MARK: Reading

    static func answer(_ query: Query, over rows: RowView) throws(StoreError)
        -> QueryAnswer
    {
        guard let query = try? IdentityQuery(decoding: query.body) else {
            return QueryAnswer(body: IdentityAnswer.refused.encoded())
        }
        switch query {
        case .rows(let keys):
            guard keys.count <= IdentityCommand.editCountMax else {
                return QueryAnswer(body: IdentityAnswer.refused.encoded())
            }
            var found: [IdentityRow?] = []
            for key in keys { found.append(try Self.row(key.encoded, over: rows)) }
            return QueryAnswer(body: IdentityAnswer.rows(found).encoded())
        case .list(let kind, let home, let after, let limit, let descending):
            let prefix = IdentityKey(kind, of: home).encoded
            // The key after `after` is `after` with a zero byte behind it.
            let start = after.map { prefix + $0 + [0] } ?? prefix
            var listed: [IdentityAnswer.Listed] = []
            for (key, row) in try rows.rows(
                .identity, from: start, to: Keys.end(of: prefix), descending: descending,
                limit: min(limit, Self.listCountMax), sizeMax: Self.listSizeMax)
            {
                listed.append(
                    IdentityAnswer.Listed(
                        name: Bytes(key[prefix.count...]), row: try Self.decode(row)))
            }
            return QueryAnswer(body: IdentityAnswer.list(listed).encoded())
        }
    }

    private static func row(_ key: Bytes, over rows: RowView) throws(StoreError)
        -> IdentityRow?
    {
        guard let row = try rows.row(.identity, key) else { return nil }
        return try Self.decode(row)
    }

    private static func decode(_ row: Bytes) throws(StoreError) -> IdentityRow {
        try decodingRow("identity") { () throws(DecodingError) in try IdentityRow(decoding: row) }
    }
}

/// Tries within a span.
struct Counter: Equatable {
    var count: UInt64
    var firstMilliseconds: Int64

    init(count: UInt64, firstMilliseconds: Int64) {
        self.count = count
        self.firstMilliseconds = firstMilliseconds
    }

    func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 16)
        writer.write(varint: self.count)
        writer.write(signed: self.firstMilliseconds)
        return writer.bytes
    }

    init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        self.count = try reader.varint()
        self.firstMilliseconds = try reader.signed()
        try reader.finish()
    }
}

extension IdentityCommand.Edit {
    /// Accounts, their addresses and their listing, and the users of containers go only with the person.
    fileprivate var removesPerson: Bool {
        guard case .remove = self.change else { return false }
        return [.account, .address, .listing, .user].contains(self.key.kind)
    }
}
