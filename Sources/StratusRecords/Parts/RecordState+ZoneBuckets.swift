import StratusModel
import StratusRows

/// A private database whose custom zones lie in buckets, as its home knows it.
extension RecordState {
    /// Sets the bits of buckets that zones are about to be made in.
    mutating func apply(
        _ note: NoteBuckets, of command: Command, over rows: Rows
    ) throws(StoreError) -> RecordOutcome {
        var numbers = NumberDraw()
        var database: DatabaseRow
        if let known = try self.cache.database(note.database, over: rows.view) {
            database = known
        } else {
            database = try numbers.database(over: rows.view)
        }
        var buckets = database.buckets ?? note.buckets
        guard buckets.note(note.buckets) else {
            return .refused(RequestRefusal(.zoneElsewhere))
        }
        if buckets == database.buckets { return .bucketsNoted(buckets.mask) }
        database.buckets = buckets
        try numbers.write(into: rows)
        try rows.put(.database, Keys.database(note.database), database.encoded())
        self.cache.remember(database, of: note.database)
        return .bucketsNoted(buckets.mask)
    }

    /// Which buckets are in use. A partition that was ever recovered may have lost a note: there
    /// all of them are.
    mutating func buckets(
        _ ask: BucketsAsk, over rows: RowView
    ) throws(StoreError) -> RecordAnswer {
        let database = try self.cache.database(ask.database, over: rows)
        var mask = BucketMask()
        if let known = database?.buckets,
            known.count == ask.count || self.bugs.contains(.oldCountsMask)
        {
            mask = known.mask
        }
        if !self.bugs.contains(.recoveredMaskKept),
            try StoredRows.counters(over: rows).tagFloor != 0
        {
            mask = BucketMask(of: 0..<ask.count)
        }
        let zone = try self.liveZone(ZoneID.defaultName, of: ask.database, over: rows)
        return .buckets(
            BucketsAnswer(mask: mask, zone: zone?.summary(name: ZoneID.defaultName)))
    }
}
