package import StratusCoding
package import StratusModel
package import StratusRows

/// The gateway's: writes into a participant's own list what the owner's partition has decided. The
/// command goes to the home of the participant's private database. What is older than the list's
/// row changes nothing.
package struct NoteSharedZone: DatabaseOperation, Equatable {
    package static let number: UInt8 = 27
    package static let bound = WorkBound.entry(1_000)
    /// Zones of others that one person may have accepted.
    package static let zoneCountMax: UInt64 = 5_000

    /// The participant's.
    package var database = DatabaseID()
    /// The record name of the zone's owner.
    package var owner = ""
    package var note = SharedZoneNote()

    package init() {}

    package var payer: Payer { .owner(of: self.database) }
    package var need: AccessNeed { .system }
    package var adds: Bool { self.note.state == .accepted }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.owner)
        try form.lay(&self.note)
        // A zero byte ends a name in a key.
        try form.require(!self.owner.utf8.contains(0) && !self.note.zone.utf8.contains(0))
    }

    package func apply(
        in state: inout RecordState, at entry: borrowing EntryContext, over rows: Rows
    ) throws(StoreError) -> Result<NotedSharedZone, RequestRefusal> {
        guard self.database.scope == .private, self.database.bucket == nil else {
            return .failure(RequestRefusal(.accessDenied))
        }
        var numbers = NumberDraw()
        var database: DatabaseRow
        if let known = try state.cache.database(self.database, over: rows.view) {
            database = known
        } else {
            database = try numbers.database(over: rows.view)
        }
        let feedKey = ShareKeys.sharedFeed(database.number)
        var feed =
            try SharedFeedRow.stored(.zone, feedKey, over: rows.view) ?? SharedFeedRow()
        let name = SharedZoneName {
            $0.owner = self.owner
            $0.zone = self.note.zone
        }
        let key = ShareKeys.sharedZone(database.number, name)
        let known = try SharedZoneRow.stored(.zone, key, over: rows.view)
        if let known, known.isNotOlder(than: self.note) { return .success(NotedSharedZone()) }
        let isAccepted = self.note.state == .accepted
        // Of a zone that nobody has heard of there is nothing to take out.
        if known == nil, !isAccepted { return .success(NotedSharedZone()) }
        if isAccepted, known?.state != .accepted, feed.acceptedCount >= Self.zoneCountMax {
            return .failure(RequestRefusal(.tooManySharedZones, String(Self.zoneCountMax)))
        }
        feed.count(known, by: -1)
        feed.turn += 1
        let row = SharedZoneRow {
            $0.incarnation = self.note.incarnation
            $0.state = self.note.state
            $0.version = self.note.version
            $0.turn = feed.turn
        }
        feed.count(row, by: 1)
        if let known {
            try rows.remove(.zone, ShareKeys.sharedTurn(database.number, known.turn))
        }
        try rows.put(.zone, key, row.encoded())
        try rows.put(
            .zone, ShareKeys.sharedTurn(database.number, feed.turn),
            SharedTurnRow { $0.name = name }.encoded())
        if feed.goneCount > Self.goneCountMax {
            try Self.forgetOldest(of: database.number, &feed, over: rows)
        }
        try rows.put(.zone, feedKey, feed.encoded())
        if numbers.isDrawn {
            try numbers.write(into: rows)
            try rows.put(.database, Keys.database(self.database), database.encoded())
            state.cache.remember(database, of: self.database)
        }
        return .success(NotedSharedZone { $0.isNews = true })
    }

    /// Zones that are gone, and of which the list still knows how new the news is.
    private static let goneCountMax: UInt64 = 10_000

    /// Drops the row of the zone that has been gone for longest. A bound on how many rows are
    /// passed keeps the cost bounded; a later note finds what this one does not.
    private static func forgetOldest(
        of database: DatabaseNumber, _ feed: inout SharedFeedRow, over rows: Rows
    ) throws(StoreError) {
        let start = ShareKeys.sharedTurn(database, 0)
        for (turn, row) in try rows.view.rows(
            .zone, from: start, to: ShareKeys.sharedFeed(database), limit: 100)
        {
            let name = try decodingRow("shared turn") { () throws(DecodingError) in
                try SharedTurnRow(decoding: row).name
            }
            let key = ShareKeys.sharedZone(database, name)
            guard let zone = try SharedZoneRow.stored(.zone, key, over: rows.view),
                zone.state != .accepted
            else { continue }
            feed.count(zone, by: -1)
            try rows.remove(.zone, turn)
            try rows.remove(.zone, key)
            return
        }
    }
}

extension SharedZoneRow {
    /// Whether a note tells nothing new. Of the same version the one that takes away is later.
    fileprivate func isNotOlder(than note: SharedZoneNote) -> Bool {
        if self.version != note.version { return self.version > note.version }
        return self.state != .accepted || note.state == .accepted
    }
}

extension SharedFeedRow {
    fileprivate mutating func count(_ row: SharedZoneRow?, by step: Int64) {
        guard let row else { return }
        if row.state == .accepted {
            self.acceptedCount = self.acceptedCount &+ UInt64(bitPattern: step)
        } else {
            self.goneCount = self.goneCount &+ UInt64(bitPattern: step)
        }
    }
}

/// The outcome of a ``NoteSharedZone``.
package struct NotedSharedZone: FormValue, Sendable, Equatable {
    /// Whether the note changed the list.
    package var isNews = false

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.isNews)
    }
}
