import StratusCoding
import StratusModel
import StratusQuery
import StratusRows

/// One zone as one command changes it: rows are read when first needed, changes stay in memory, and
/// ``flush(into:cache:schema:)`` writes them all. An edit that is dropped has changed nothing.
struct ZoneEdit {
    /// A record the command touched: as the rows have it, and as it will be.
    struct Touched {
        let original: RecordRow?
        var current: RecordRow?
        /// The row bytes of `current` while it is live and differs from `original`.
        var encoded: Bytes = []
        /// Bytes of `current`'s row, if it is live.
        var size: Int
        /// The tag of its deletion, where the edit deleted what was there before. The edit may have
        /// made another record of that name since.
        var deletedAt: ChangeTag?
    }

    let id: ZoneID
    let databaseID: DatabaseID
    private(set) var database: DatabaseRow
    /// The zone; `lastTag` and `lastMilliseconds` move with every change.
    var zone: ZoneRow
    var references: ReferenceEdits
    var tree: TreeEdits
    var assets: AssetEdits
    /// The zone's share, where the command changes it.
    var share: ShareEdit?
    private var touched: [String: Touched] = [:]
    private var jobs: [Job] = []
    /// Whether cascades were under way in this zone before this edit; nil: nobody has looked.
    private var hasStoredCascades: Bool?
    /// References that leave the bucket: under which reservation; nil: no more.
    var outbound: [Outbound: RequestIdentity?] = [:]
    /// The mails to other buckets, in order. The code that flushes the edit posts them.
    var mails: [BucketMail] = []
    /// The words of texts that a gateway has cut, by record and field.
    var words: [String: [String: TextWords]] = [:]
    /// Stored bytes of the records read and written so far.
    private(set) var touchedSize = 0
    /// The storage that the zone will use after this edit.
    private(set) var held: StorageUse
    /// The zone's last tag before this edit.
    private let firstTag: UInt64
    /// The `modified` time of everything this command changes.
    let milliseconds: Int64
    /// The entry's own time.
    private let entryMilliseconds: Int64
    /// Whether the zone keeps which record is the parent of which. In default zones and public
    /// databases a parent must be there when it is stated, and nothing more.
    let hasTree: Bool
    let bugs: PlantedBugs

    init(
        _ name: String, of databaseID: DatabaseID, database: DatabaseRow, zone: ZoneRow,
        at time: HybridTime, bugs: PlantedBugs
    ) {
        self.bugs = bugs
        self.id = ZoneID(name: name, owner: databaseID.owner)
        self.databaseID = databaseID
        self.hasTree = databaseID.scope == .private && !self.id.isDefault && !self.id.isReserved
        self.database = database
        self.zone = zone
        self.firstTag = zone.lastTag
        self.held = zone.held
        self.references = ReferenceEdits(zone: zone.number)
        self.tree = TreeEdits(zone: zone.number)
        self.assets = AssetEdits(zone: zone.number, bugs: bugs)
        self.entryMilliseconds = time.milliseconds
        // Time may step back between leaders by what their clocks differ; in a zone it never does.
        self.milliseconds = max(time.milliseconds, zone.lastMilliseconds)
    }

    // MARK: Reading

    mutating func record(_ name: String, over rows: RowView) throws(StoreError)
        -> Record?
    {
        if let known = self.touched[name] { return known.current?.live }
        let (row, size) = try StoredRows.record(
            name, of: self.zone.number, in: self.id, over: rows)
        self.touchedSize += size
        self.touched[name] = Touched(
            original: row, current: row, size: row?.live == nil ? 0 : size)
        return row?.live
    }

    /// The tag of a record's deletion, if this edit has deleted it and made none of its name since.
    func tombstone(of name: String) -> ChangeTag? {
        guard let touched = self.touched[name], touched.original?.live != nil,
            case .tombstone(let tag)? = touched.current
        else { return nil }
        return tag
    }

    mutating func referrerCounts(of name: String, over rows: RowView)
        throws(StoreError) -> ReferrerCounts
    {
        try self.references.counts(of: name, over: rows)
    }

    mutating func referrers(
        of name: String, _ action: Reference.Action, after cursor: String = "", limit: Int,
        over rows: RowView
    ) throws(StoreError) -> [(name: String, tag: ChangeTag)] {
        try self.references.referrers(
            of: name, ReferenceKind(action), after: cursor, limit: limit, over: rows)
    }

    /// Bytes the zone has grown by; negative when it shrank.
    var grownSize: Int64 { Int64(clamping: self.held.size) - Int64(clamping: self.zone.size) }

    /// Bytes that a row of `size` bytes adds to what the zone holds, taking the place of the
    /// record's row.
    func growth(of name: String, to size: Int) -> Int { size - (self.touched[name]?.size ?? 0) }

    /// The row bytes of a record this command saved.
    func encodedRow(of name: String) -> Bytes? { self.touched[name]?.encoded }

    // MARK: Changing

    /// Whether records change.
    var hasChanges: Bool { self.zone.lastTag != self.firstTag }
    /// Whether anything does: who joins and leaves a share may change no record.
    var hasEffect: Bool { self.hasChanges || self.share != nil }

    /// The tag the next change will have.
    var nextTag: ChangeTag { ChangeTag(self.zone.lastTag + 1) }

    /// Stores `record`, which was read before and carries ``nextTag``.
    mutating func save(
        _ record: Record, encoded: Bytes, addedReferences: [ActingReference],
        removedReferences: [ActingReference], restatedReferences: [ActingReference],
        reservations: [ActingReference: RequestIdentity],
        over rows: RowView
    ) throws(StoreError) {
        precondition(record.tag == self.nextTag, "a save takes the next tag")
        for reference in removedReferences {
            try self.remove(reference, from: record.name, over: rows)
        }
        for reference in addedReferences {
            if self.leaves(reference.target) {
                self.link(reference, from: record.name, reservations[reference])
            } else {
                try self.references.add(
                    reference, from: record.name, at: record.tag, over: rows)
            }
        }
        for reference in restatedReferences {
            try self.restate(
                reference, from: record.name, at: record.tag, reservations[reference], over: rows)
        }
        try self.moveInTree(
            record.name, from: self.touched[record.name]?.current?.live, to: record,
            at: record.tag, over: rows)
        self.change(record.name, to: .live(record), encoded: encoded)
    }

    /// Deletes a live record and its references. What refers to it is the caller's business.
    @discardableResult
    mutating func delete(_ record: Record, over rows: RowView)
        throws(StoreError) -> ChangeTag
    {
        let tag = self.nextTag
        for reference in record.actingReferences {
            try self.remove(reference, from: record.name, over: rows)
        }
        try self.moveInTree(record.name, from: record, to: nil, at: tag, over: rows)
        self.change(record.name, to: .tombstone(tag), encoded: [])
        if record.type == ShareNames.type { try self.endShare(over: rows) }
        try self.recallReferrers(of: record.name, before: tag, over: rows)
        return tag
    }

    mutating func enqueue(_ job: Job) {
        if case .cascade = job, self.hasTree { self.zone.hasCascades = true }
        self.jobs.append(job)
    }

    /// Whether cascades are under way in a zone that keeps a tree.
    var hasCascades: Bool { self.zone.hasCascades }

    /// Notes that no cascade is under way any more, if that is so. To be asked once the jobs that
    /// this edit carries out are gone.
    ///
    /// - Returns: whether the zone's row is another now.
    mutating func noteCascades(over rows: RowView) throws(StoreError) -> Bool {
        guard self.zone.hasCascades, self.jobs.isEmpty else { return false }
        let start = Job.cascadeKey(self.zone.number, target: "")
        self.zone.hasCascades = try !rows.keys(
            .job, from: start, to: Keys.end(of: start), limit: 1
        ).isEmpty
        return !self.zone.hasCascades
    }

    /// Whether a job is still to delete what refers to an earlier record of this name.
    mutating func isCascading(
        from target: String, over rows: RowView
    ) throws(StoreError) -> Bool {
        for case .cascade(_, _, target, _, _) in self.jobs { return true }
        if self.hasStoredCascades == nil {
            let start = Job.cascadeKey(self.zone.number, target: "")
            self.hasStoredCascades = try !rows.keys(
                .job, from: start, to: Keys.end(of: start), limit: 1
            ).isEmpty
        }
        guard self.hasStoredCascades == true else { return false }
        return try rows.row(.job, Job.cascadeKey(self.zone.number, target: target)) != nil
    }

    private mutating func change(_ name: String, to row: RecordRow, encoded: Bytes) {
        guard var touched = self.touched[name] else {
            preconditionFailure("a record is read before it is changed")
        }
        self.zone.lastTag += 1
        let before = StorageUse(touched)
        let assetsBefore = touched.current?.live?.assets ?? []
        let assetsAfter = row.live?.assets ?? []
        self.assets.change(name, from: assetsBefore, to: assetsAfter)
        if !assetsBefore.isEmpty { self.zone.assetRecordCount -= 1 }
        if !assetsAfter.isEmpty { self.zone.assetRecordCount += 1 }
        if case .tombstone(let tag) = row, touched.current?.tag == touched.original?.tag {
            touched.deletedAt = tag
        }
        touched.current = row
        touched.encoded = encoded
        touched.size = encoded.count
        self.held = self.held + StorageUse(touched) - before
        self.touchedSize += encoded.count
        self.touched[name] = touched
    }

    // MARK: Writing

    /// Writes everything: records, feed, references, indexes, zone, database feed, jobs.
    mutating func flush(
        into rows: Rows, cache: inout RowCache, schema: IndexedSchema?,
        tombstoneCountMin: Int
    ) throws(StoreError) {
        if self.hasChanges {
            try self.writeChanges(into: rows, cache: &cache, schema: schema)
        }
        try self.share?.flush(
            self.id.name, in: self.database.number, bugs: self.bugs, into: rows)
        if self.zone.tombstoneCount > max(UInt64(tombstoneCountMin), self.zone.recordCount / 2) {
            let most = max(UInt64(tombstoneCountMin), self.zone.recordCount / 2)
            // An eighth less than the most, so that the next trim is not the next delete's.
            self.enqueue(
                .trim(
                    self.zone.number, self.place, keep: most - most / 8,
                    cursor: ChangeTag(self.zone.oldestTag)))
        }
        for job in self.jobs {
            // A trim that waits already has come further than a new one would start.
            if case .trim = job, try rows.row(.job, job.key) != nil { continue }
            try rows.put(.job, job.key, job.encoded())
        }
    }

    private mutating func writeChanges(
        into rows: Rows, cache: inout RowCache, schema: IndexedSchema?
    ) throws(StoreError) {
        let scope = ZoneScope(id: self.id, prefix: Keys.zoneStart(self.zone.number))
        let turn = try self.takeTurn(in: rows, cache: &cache)
        for name in self.touched.keys.sorted() {
            guard let touched = self.touched[name], touched.original?.tag != touched.current?.tag
            else { continue }
            try self.write(name, touched, turn: turn, into: rows)
            guard let schema else { continue }
            let changes = IndexMaintenance.changes(
                in: schema, zone: scope, from: touched.original?.live, to: touched.current?.live,
                words: self.words[name] ?? [:])
            if self.bugs.contains(.indexRowLeftBehind), touched.current?.live == nil { continue }
            for key in changes.removed { try rows.remove(.index, key) }
            for row in changes.put { try rows.putNew(.index, row.key, row.row) }
        }
        if self.id.name == ZoneID.documentsName { try self.writeDocumentNames(into: rows) }
        try self.references.flush(into: rows)
        try self.tree.flush(into: rows)
        try self.assets.flush(at: self.entryMilliseconds, into: rows)
        try self.flushLinks(into: rows)
        try self.writeNews(into: rows, cache: &cache)
        self.zone.held = self.held
        self.zone.lastMilliseconds = self.milliseconds
        try rows.put(
            .zone, Keys.zone(self.database.number, self.id.name), self.zone.encoded())
        cache.remember(self.zone, self.id.name, in: self.database.number)
    }

    /// Keeps the names of documents, which may change hands in one edit.
    private func writeDocumentNames(into rows: Rows) throws(StoreError) {
        let names = self.touched.keys.sorted()
        for name in names {
            guard let touched = self.touched[name], let record = touched.original?.live,
                touched.original?.tag != touched.current?.tag,
                let row = DocumentNames.row(of: record, in: self.zone.number)
            else { continue }
            try rows.remove(.reference, row.key)
        }
        for name in names {
            guard let touched = self.touched[name], let record = touched.current?.live,
                touched.original?.tag != touched.current?.tag,
                let row = DocumentNames.row(of: record, in: self.zone.number)
            else { continue }
            try rows.put(.reference, row.key, row.row)
        }
    }

    /// Tells subscriptions what has changed.
    private func writeNews(
        into rows: Rows, cache: inout RowCache
    ) throws(StoreError) {
        // Nobody can subscribe to a zone that records do not see.
        if self.id.isReserved { return }
        let number = self.database.number
        guard var news = try NewsEdit(number, cache: &cache, bugs: self.bugs, over: rows.view)
        else {
            return
        }
        let changed = self.touched.values.filter { $0.original?.tag != $0.current?.tag }.sorted {
            ($0.current?.tag.raw ?? 0) < ($1.current?.tag.raw ?? 0)
        }
        var changes: [(before: Record?, after: Record?, tag: ChangeTag)] = []
        for touched in changed {
            var before = touched.original?.live
            let after = touched.current?.live
            if let deletedAt = touched.deletedAt, before != nil, after != nil {
                // A cascade took it away, and the batch made another one: that is no update.
                changes.append((before, nil, deletedAt))
                before = nil
            }
            changes.append((before, after, touched.current?.tag ?? ChangeTag(0)))
        }
        try news.write(changes.sorted { $0.tag < $1.tag }, into: rows)
        try news.mark(self.id.name, self.zone.lastTag, into: rows)
        try news.flush(into: rows, cache: &cache)
    }

    var place: JobPlace { JobPlace(database: self.databaseID, zone: self.id.name) }

    private mutating func write(
        _ name: String, _ touched: Touched, turn: UInt64, into rows: Rows
    ) throws(StoreError) {
        if let original = touched.original {
            try rows.remove(.feed, Keys.feed(self.zone.number, original.tag))
            if original.live == nil { self.zone.tombstoneCount -= 1 }
        }
        let key = Keys.record(self.zone.number, name)
        let feed: FeedRow
        switch touched.current {
        case .live:
            if touched.original == nil {
                try rows.putNew(.record, key, touched.encoded)
            } else {
                try rows.put(.record, key, touched.encoded)
            }
            feed = FeedRow(isDeletion: false, turn: turn, name: name)
        case .tombstone(let tag):
            try rows.put(.record, key, RecordRow.encodedTombstone(tag))
            self.zone.tombstoneCount += 1
            feed = FeedRow(isDeletion: true, turn: turn, name: name)
        case nil: preconditionFailure("a change leaves a record or a tombstone")
        }
        if self.bugs.contains(.tombstoneNotInFeed), feed.isDeletion { return }
        guard let tag = touched.current?.tag else { return }
        try rows.putNew(.feed, Keys.feed(self.zone.number, tag), feed.encoded())
    }

    /// Makes this zone the last one changed in its database's feed.
    private mutating func takeTurn(in rows: Rows, cache: inout RowCache)
        throws(StoreError) -> UInt64
    {
        if self.id.isDefault || self.id.isReserved { return 0 }
        if self.database.turnZone == self.id.name { return self.zone.turn }
        try self.database.advance(to: self.id.name, &self.zone, in: rows)
        try rows.put(.database, Keys.database(self.databaseID), self.database.encoded())
        cache.remember(self.database, of: self.databaseID)
        return self.zone.turn
    }
}

extension StorageUse {
    fileprivate init(_ touched: ZoneEdit.Touched) {
        let isLive = touched.current?.live != nil
        self.init(recordCount: isLive ? 1 : 0, size: UInt64(touched.size))
    }
}

extension RecordRow {
    var live: Record? {
        if case .live(let record) = self { record } else { nil }
    }

    var tag: ChangeTag {
        switch self {
        case .live(let record): record.tag
        case .tombstone(let tag): tag
        }
    }
}

extension DatabaseRow {
    /// Begins a new turn, of `name`. The caller writes the database and the zone.
    mutating func advance(
        to name: String, _ zone: inout ZoneRow, in rows: Rows
    ) throws(StoreError) {
        if zone.turn != 0 { try rows.remove(.zone, Keys.turn(self.number, zone.turn)) }
        if self.turnZone != name {
            try self.settle(over: rows.view)
            self.heldElsewhere = self.heldElsewhere - zone.held
        }
        self.turn += 1
        self.turnZone = name
        zone.turn = self.turn
        try rows.put(.zone, Keys.turn(self.number, self.turn), Bytes(name.utf8))
    }

    /// Counts the zone whose turn it was with the others: its turn is over.
    mutating func settle(over rows: RowView) throws(StoreError) {
        if let last = try StoredRows.zone(self.turnZone, in: self.number, over: rows) {
            self.heldElsewhere = self.heldElsewhere + last.held
        }
        self.turnZone = ""
    }
}
