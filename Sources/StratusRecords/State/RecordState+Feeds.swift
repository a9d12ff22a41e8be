import StratusCoding
import StratusModel
import StratusRows

extension RecordState {
    /// Changes on one page, whatever is asked.
    package static let pageCountMax = 200
    /// Feed rows one page may pass over: filtered pages may come short, with more to come.
    static let pageTouchMax = 2_000

    // MARK: changes/zone

    /// A page of a zone's feed. It reads as many rows as the page is long, wherever in the feed it
    /// is.
    ///
    /// A page also ends where the meter is spent: filtered pages read records that they leave out.
    mutating func zoneChanges(
        _ ask: ZoneChangesAsk, _ meter: ReadMeter, over rows: RowView
    ) throws(StoreError) -> Bytes {
        func refused(_ refusal: ZoneRefusal) -> Bytes {
            RecordAnswer.zoneRefused(refusal).encoded()
        }
        if ask.zone == ZoneID.defaultName { return refused(.noFeed) }
        if let refusal = Self.check(ask.database, holds: ask.zone) {
            return RecordAnswer.refused(refusal).encoded()
        }
        guard let zone = try self.liveZone(ask.zone, of: ask.database, over: rows) else {
            return refused(.notFound)
        }
        if let after = ask.after {
            guard after.incarnation == zone.incarnation, after.tag.raw <= zone.lastTag,
                ask.reverse || zone.honours(after)
            else { return refused(.positionExpired) }
        }
        var page = FeedPage(ask, zone: zone, meter)
        while page.wantsMore {
            let chunk = page.nextChunk
            let found = try rows.rows(
                .feed, from: chunk.from, to: chunk.to, descending: ask.reverse,
                limit: chunk.limit)
            var takenCount = 0
            for (key, row) in found {
                if page.isFull { break }
                takenCount += 1
                let feed = try decodingRow("feed") { () throws(DecodingError) in
                    try FeedRow(decoding: row)
                }
                let tag = ChangeTag(try Keys.number(key, at: 4))
                var body: Bytes?
                if !feed.isDeletion {
                    body = try rows.row(.record, Keys.record(zone.number, feed.name))
                    guard let body, try RecordRow.isLive(body) else {
                        throw StoreError(.corrupt, "a feed row without its record")
                    }
                }
                try page.take(feed, at: tag, body: body)
            }
            if takenCount == found.count, found.count < chunk.limit { page.reachedEnd() }
        }
        return page.encoded()
    }

    // MARK: changes/database

    mutating func databaseChanges(
        _ ask: DatabaseChangesAsk, _ meter: ReadMeter, over rows: RowView
    ) throws(StoreError) -> RecordAnswer {
        guard let database = try self.cache.database(ask.database, over: rows) else {
            if let after = ask.after, after != .start { return .zoneRefused(.positionExpired) }
            return .databaseChanges(
                DatabaseChangesPage(changes: [], position: .start, moreComing: false))
        }
        let after = ask.after ?? .start
        // The holder of a token may have found zones in other ways than by this feed, even if the
        // token is of a database that was empty.
        if after.turn > database.turn
            || (ask.after != nil && max(after.turn, after.floor) < database.oldestTurn)
        {
            return .zoneRefused(.positionExpired)
        }
        // Who begins from nothing has heard of no zone that was deleted by now, nor of any that
        // does not change again while it goes through the pages.
        let floor = ask.after == nil ? database.turn : after.floor
        // Through which turn deletions were told before this walk began, or need not be told.
        let heard = ask.after == nil || after.isMidway ? floor : after.turn
        let limit = min(ask.limit <= 0 ? Self.pageCountMax : ask.limit, Self.pageCountMax)
        // The first row may be of a turn that was seen: two bring the page further.
        let turnCountMax = max(2, min(Self.pageTouchMax, meter.restCount))
        let found = try rows.rows(
            .zone, from: Keys.turn(database.number, max(after.turn, 1)),
            to: Keys.turn(database.number, database.turn + 1), limit: turnCountMax)
        var hasMoved = false
        var page = DatabaseChangesPage(
            changes: [], position: DatabasePosition(turn: after.turn, tag: after.tag),
            moreComing: found.count == turnCountMax)
        if found.isEmpty, after.turn < database.turn {
            // All zones were erased, and positions before that have expired. This one has not.
            page.position = DatabasePosition(turn: database.turn, tag: ChangeTag(0))
        }
        for (key, row) in found {
            if page.changes.count == limit || hasMoved && meter.isSpent {
                page.moreComing = true
                break
            }
            guard let name = String(validating: row, as: UTF8.self),
                let zone = try self.cache.zone(name, in: database.number, over: rows)
            else { throw StoreError(.unreadable, "turn") }
            let turn = try Keys.number(key, at: 5)
            // The zone whose turn it was may have gone on in that turn.
            if turn == after.turn, zone.lastTag <= after.tag.raw { continue }
            page.position = DatabasePosition(turn: turn, tag: ChangeTag(zone.lastTag))
            hasMoved = true
            let isNew = turn <= floor
            if zone.isDeleted {
                if isNew { continue }
                page.changes.append(
                    DatabaseChangesPage.Change(
                        name: name, deletion: zone.reason(after: heard), since: nil, zone: nil))
                continue
            }
            // The last of the turns before the first page may have gone on since.
            let isUnseen = ask.after == nil || turn < floor
            let since = isUnseen ? nil : try self.since(of: zone, at: after, over: rows)
            page.changes.append(
                DatabaseChangesPage.Change(
                    name: name, deletedBefore: zone.reasonBefore(after: heard), since: since,
                    zone: zone.summary(name: name)))
        }
        page.position.isMidway = page.moreComing
        if page.moreComing { page.position.floor = heard }
        return .databaseChanges(page)
    }

    /// From where on whoever holds `position` fetches a zone that it may have heard of; nil: from
    /// the beginning.
    private func since(
        of zone: ZoneRow, at position: DatabasePosition, over rows: RowView
    ) throws(StoreError) -> FeedPosition? {
        if !position.isMidway || self.bugs.contains(.midwayTokenTrusted),
            let since = try self.position(of: zone, at: position, over: rows)
        {
            return since
        }
        if zone.oldestTag == 0 { return nil }
        // It is not known what of this zone was seen. If deletions were forgotten, of this zone or
        // of an earlier one of its name, the client may hold records that no feed mentions any
        // more. Only an expired token sends it back to the start, where it forgets them.
        return FeedPosition(
            incarnation: ZoneIncarnation(~zone.incarnation.raw), tag: ChangeTag(0))
    }

    /// The zone's feed position when the database's feed stood at `position`; nil: at its
    /// beginning.
    ///
    /// Every feed row carries the turn it was written in, and both grow together: a binary search
    /// over tags finds the first row that `position` has not seen.
    private func position(
        of zone: ZoneRow, at position: DatabasePosition, over rows: RowView
    ) throws(StoreError) -> FeedPosition? {
        var seen = zone.baseTag
        var unseen = zone.lastTag + 1
        let end = Keys.end(of: Keys.zoneStart(zone.number))
        while seen + 1 < unseen {
            let middle = seen + (unseen - seen) / 2
            guard
                let (key, row) = try rows.rows(
                    .feed, from: Keys.feed(zone.number, ChangeTag(middle)), to: end, limit: 1
                ).first
            else {
                unseen = middle
                continue
            }
            let feed = try decodingRow("feed") { () throws(DecodingError) in
                try FeedRow(decoding: row)
            }
            let tag = try Keys.number(key, at: 4)
            if (feed.turn, tag) > (position.turn, position.tag.raw) {
                unseen = middle
            } else {
                seen = max(tag, middle)
            }
        }
        if seen <= zone.baseTag || seen < zone.oldestTag { return nil }
        return FeedPosition(incarnation: zone.incarnation, tag: ChangeTag(seen))
    }
}

/// Collects one page of a zone's feed.
private struct FeedPage: FixedLevel {
    static var level: FeatureLevel { .one }

    private let ask: ZoneChangesAsk
    private let zone: ZoneRow
    private let id: ZoneID
    private let limit: Int
    private let types: Set<String>
    private let meter: ReadMeter
    private var changes = AnswerWriter()
    private var changeCount = 0
    private var touchCount = 0
    private var touchSize = 0
    /// The last feed row passed; nil before the first.
    private var lastTag: ChangeTag?
    private var isAtEnd = false

    init(_ ask: ZoneChangesAsk, zone: ZoneRow, _ meter: ReadMeter) {
        self.meter = meter
        self.ask = ask
        self.zone = zone
        self.id = ZoneID(name: ask.zone, owner: ask.database.owner)
        self.limit = min(
            ask.limit <= 0 ? RecordState.pageCountMax : ask.limit, RecordState.pageCountMax)
        self.types = Set(ask.recordTypes ?? [])
    }

    var isFull: Bool {
        self.changeCount >= self.limit || self.touchCount >= RecordState.pageTouchMax
            || self.touchSize >= RecordState.answerSizeMax
            || self.touchCount > 0 && self.meter.isSpent
    }

    var wantsMore: Bool { !self.isFull && !self.isAtEnd }

    mutating func reachedEnd() { self.isAtEnd = true }

    /// The next rows to read, in the direction of the page. One row more than the page holds tells
    /// whether more is to come.
    var nextChunk: (from: Bytes, to: Bytes, limit: Int) {
        let limit = min(self.limit - self.changeCount, self.meter.restCount) + 1
        let start = Keys.zoneStart(self.zone.number)
        let last = self.lastTag ?? self.ask.after?.tag
        if self.ask.reverse {
            return (
                start, last.map { Keys.feed(self.zone.number, $0) } ?? Keys.end(of: start), limit
            )
        }
        let from = last.map { Keys.feed(self.zone.number, ChangeTag($0.raw + 1)) } ?? start
        return (from, Keys.end(of: start), limit)
    }

    mutating func take(_ feed: FeedRow, at tag: ChangeTag, body: Bytes?) throws(StoreError) {
        self.lastTag = tag
        self.touchCount += 1
        self.touchSize += body?.count ?? feed.name.utf8.count
        guard let body else {
            self.changes.bytes.write(2 as UInt8)
            self.changes.bytes.write(text: feed.name)
            self.changes.bytes.write(varint: tag.raw)
            self.changeCount += 1
            return
        }
        if !self.types.isEmpty {
            let type = try decodingRow("record") { () throws(DecodingError) in
                var reader = ByteReader(body)
                return try reader.recordTypeAndCreator().type
            }
            if !self.types.contains(type) { return }
        }
        self.changes.bytes.write(1 as UInt8)
        self.changes.write(row: body, name: feed.name, zone: self.id)
        self.changeCount += 1
    }

    func encoded() -> Bytes {
        var answer = AnswerWriter()
        answer.begin(.zoneChanges)
        answer.bytes.write(flag: false)
        answer.bytes.write(count: self.changeCount)
        answer.bytes.write(raw: self.changes.bytes.bytes)
        answer.bytes.write(self.position)
        answer.bytes.write(flag: !self.isAtEnd)
        return answer.bytes.bytes
    }

    /// Caught up means the zone's last change, so that an idle zone's token stands still.
    private var position: FeedPosition {
        var tag = self.lastTag ?? self.ask.after?.tag ?? ChangeTag(self.zone.lastTag)
        if !self.ask.reverse, self.isAtEnd { tag = ChangeTag(self.zone.lastTag) }
        // Live records may stand behind deletions that are forgotten, or soon will be; a fetch that
        // began with nothing must be able to go on from among them. What was deleted before it
        // began it has never seen.
        let began = self.ask.after.map { $0.tag.raw <= self.zone.baseTag } ?? true
        let hasDeletions =
            self.zone.tombstoneCount > 0 || self.zone.oldestTag > self.zone.baseTag
        var floor = ChangeTag(0)
        if began {
            if hasDeletions { floor = ChangeTag(self.zone.lastTag) }
        } else {
            floor = self.ask.after?.floor ?? floor
        }
        if floor <= tag { floor = ChangeTag(0) }
        return FeedPosition(incarnation: self.zone.incarnation, tag: tag, floor: floor)
    }
}
