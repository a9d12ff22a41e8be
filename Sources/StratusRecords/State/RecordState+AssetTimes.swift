import StratusCoding
import StratusModel
import StratusRows

/// Pins and graces that are over, and the holders in zones that are gone.
extension RecordState {
    /// The time at which something ends next; nil: nothing will.
    static func nextEnd(over rows: RowView) throws(StoreError) -> Int64? {
        let start = AssetKeys.ends
        guard
            let key = try rows.keys(.asset, from: start, to: Keys.end(of: start), limit: 1).first
        else { return nil }
        return try AssetKeys.ending(key).at
    }

    /// Sees to what is over by the entry's time.
    ///
    /// - Returns: the rows that it touched, about.
    mutating func endAssets(
        at position: EntryPosition, budget: Int, over rows: Rows
    ) throws(StoreError) -> Int {
        let now = position.time.milliseconds
        let start = AssetKeys.ends
        // Each end touches some five rows.
        let due = try rows.view.keys(
            .asset, from: start,
            to: now < .max ? AssetKeys.ends(from: now + 1) : Keys.end(of: start),
            limit: max(1, budget / 5))
        var rowCount = 0
        for key in due {
            if rowCount >= budget { break }
            let (time, ending) = try AssetKeys.ending(key)
            switch ending {
            case .asset(let asset):
                rowCount += try self.end(asset, key, at: time, position.index, over: rows)
            case .upload(let upload, let database):
                let row = try AssetRows.upload(upload, in: database, over: rows.view)
                try AssetRows.change(upload, in: database, from: row, to: nil, in: rows)
                rowCount += 2
            }
        }
        return rowCount
    }

    private mutating func end(
        _ asset: AssetID, _ key: Bytes, at time: Int64, _ index: LogIndex,
        over rows: Rows
    ) throws(StoreError) -> Int {
        guard let row = try AssetRows.asset(asset, over: rows.view), row.end == time else {
            throw StoreError(.unreadable, "an end without its asset")
        }
        if row.isHeld, !self.bugs.contains(.expiredPinTakesHeld) {
            var freed = row
            freed.pins = []
            freed.commonEnd = nil
            try AssetRows.change(asset, from: row, to: freed, in: rows)
            return 2
        }
        return try AssetRows.end(
            asset, row, at: index, changes: &self.bodyChanges, in: rows)
    }

    /// Removes records of a zone that is gone, and says of each that it holds nothing any more.
    /// Assets that nobody else holds end with the next slice: nobody can reach the zone to take
    /// them back.
    ///
    /// - Returns: nil when there was no record left.
    mutating func purgeHolders(
        _ number: ZoneNumber, budget: Int, at time: HybridTime, over rows: Rows
    ) throws(StoreError) -> JobWork? {
        let start = Keys.zoneStart(number)
        let zone = ZoneID(name: ZoneID.defaultName, owner: "")
        var edits = AssetEdits(zone: number, bugs: self.bugs)
        var work = JobWork()
        let found = try rows.view.rows(
            .record, from: start, to: Keys.end(of: start), limit: budget,
            sizeMax: self.bounds.jobSizeMax)
        if found.isEmpty { return nil }
        for (key, row) in found {
            if work.rowCount >= budget || edits.isFull { break }
            guard let name = String(validating: key.dropFirst(start.count), as: UTF8.self) else {
                throw StoreError(.unreadable, "record key")
            }
            let record = try decodingRow("record") { () throws(DecodingError) in
                try RecordRow(decoding: row, name: name, zone: zone).live
            }
            let assets = record?.assets ?? []
            edits.change(name, from: assets, to: [])
            try rows.remove(.record, key)
            work.rowCount += 1 + assets.count
            work.size += row.count
        }
        try edits.flush(at: time.milliseconds, withGrace: false, into: rows)
        return work
    }
}
