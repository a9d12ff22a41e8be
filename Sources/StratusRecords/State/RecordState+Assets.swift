import StratusCoding
import StratusModel
import StratusRows

/// Commands and questions about assets and keys.
extension RecordState {
    // MARK: Pins

    mutating func apply(
        _ pin: PinAsset, of command: Command, at position: EntryPosition,
        over rows: Rows
    ) throws(StoreError) -> RecordOutcome {
        let now = position.time.milliseconds
        if now > pin.orphanAfterMilliseconds, !self.bugs.contains(.latePinTaken) {
            return .refused(RequestRefusal(.pinTooLate))
        }
        // What a rotation has passed stays sealed under the newest key.
        guard let database = try self.cache.database(pin.database, over: rows.view),
            let newest = try AssetRows.newestKey(of: database.number, over: rows.view),
            newest.version == pin.keyVersion, newest.key != nil
        else { return .refused(RequestRefusal(.keyMissing)) }
        let namesake = try AssetRows.asset(pin.asset, over: rows.view)
        let body = try rows.row(.body, BodyCoding.key(of: pin.body))
        guard namesake == nil, body == nil else {
            return .refused(RequestRefusal(.assetTaken))
        }
        let known = try AssetRows.upload(pin.upload, in: database.number, over: rows.view)
        if known?.isAttached == true { return .refused(RequestRefusal(.uploadAttached)) }
        let until = now + pin.rules.pinMilliseconds
        let end = max(until, pin.orphanAfterMilliseconds)

        let equal = try self.equalAsset(to: pin, in: database.number, over: rows.view)
        // A second file under one ticket takes the first one's place, if nobody else has it.
        var replaced: (asset: AssetID, row: AssetRow)?
        if let first = known?.asset, first != equal?.asset,
            let row = try AssetRows.asset(first, over: rows.view),
            row.isKept(onlyBy: pin.upload, at: now)
        {
            replaced = (first, row)
        }
        if equal == nil,
            let refusal = try self.checkRoom(
                for: pin, in: database, without: replaced?.row, over: rows.view)
        {
            return .refused(refusal)
        }
        if let replaced {
            _ = try AssetRows.end(
                replaced.asset, replaced.row, at: position.index, changes: &self.bodyChanges,
                in: rows)
        }
        let asset = equal?.asset ?? pin.asset
        try AssetRows.change(
            pin.upload, in: database.number, from: known, to: UploadRow(asset: asset, end: end),
            in: rows)
        if let equal {
            var row = equal.row
            if !self.bugs.contains(.shareNotTakenBack) {
                row.pin(pin.upload, until: until, at: now)
            }
            try AssetRows.change(asset, from: equal.row, to: row, in: rows)
            return .pinned(
                PinnedAsset(asset: asset, fileChecksum: row.fileChecksum, isShared: true))
        }
        let row = AssetRow(pin, in: database.number, until: until)
        let named = pin.manifest(of: database.number.raw, namedAt: position.index)
        try AssetRows.change(asset, from: nil, to: row, in: rows)
        try AssetRows.write(named, into: rows)
        if let digest = pin.digest {
            try AssetRows.share(asset, by: digest, in: database.number, into: rows)
        }
        self.bodyChanges.append(.named(named))
        return .pinned(
            PinnedAsset(asset: asset, fileChecksum: pin.fileChecksum, isShared: false))
    }

    /// An asset of the same database with the same content, that can be read.
    private func equalAsset(
        to pin: PinAsset, in database: DatabaseNumber, over rows: RowView
    ) throws(StoreError) -> (asset: AssetID, row: AssetRow)? {
        guard let digest = pin.digest,
            let asset = try AssetRows.shared(by: digest, in: database, over: rows),
            let row = try AssetRows.asset(asset, over: rows), row.size == pin.size,
            try AssetRows.opens(row.keyVersion, of: database, over: rows),
            let body = try AssetRows.body(row.body, over: rows), !body.isLost
        else { return nil }
        return (asset, row)
    }

    private mutating func checkRoom(
        for pin: PinAsset, in database: DatabaseRow, without replaced: AssetRow?,
        over rows: RowView
    ) throws(StoreError) -> RequestRefusal? {
        let use = try AssetRows.use(of: database.number, over: rows) - (replaced?.use ?? .none)
        let rules = pin.rules
        if use.unattachedSize + pin.size > rules.unattachedSizeMax
            || use.unattachedCount >= rules.unattachedCountMax
        {
            return RequestRefusal(.tooMuchUnattached, String(rules.unattachedSizeMax))
        }
        if rules.databaseSizeMax == 0 { return nil }
        let held = try self.held(by: database, over: rows)
        return held.size + use.size + pin.size > rules.databaseSizeMax
            ? RequestRefusal(.databaseFull, String(rules.databaseSizeMax)) : nil
    }

    mutating func apply(
        _ hold: HoldAssets, of command: Command, at position: EntryPosition,
        over rows: Rows
    ) throws(StoreError) -> RecordOutcome {
        if hold.assets.isEmpty { return .refused(RequestRefusal(.empty)) }
        if hold.assets.count > HoldAssets.countMax {
            return .refused(RequestRefusal(.tooManyItems, String(HoldAssets.countMax)))
        }
        guard let database = try self.cache.database(hold.database, over: rows.view) else {
            return .held(hold.assets.map { _ in nil })
        }
        let now = position.time.milliseconds
        let until = now + hold.rules.pinMilliseconds
        var held: [HeldAsset?] = []
        for (position, asset) in hold.assets.enumerated() {
            guard let old = try AssetRows.asset(asset, over: rows.view),
                old.database == database.number,
                try AssetRows.opens(old.keyVersion, of: database.number, over: rows.view)
            else {
                held.append(nil)
                continue
            }
            var new = old
            let receipt = hold.pins.isEmpty ? nil : hold.pins[position]
            if !self.bugs.contains(.rereferenceNotPinned) {
                new.pin(receipt, until: until, at: now)
            }
            try AssetRows.change(asset, from: old, to: new, in: rows)
            held.append(HeldAsset(fileChecksum: new.fileChecksum, size: new.size))
        }
        return .held(held)
    }

    mutating func apply(
        _ lose: LoseBody, of command: Command, at position: EntryPosition,
        over rows: Rows
    ) throws(StoreError) -> RecordOutcome {
        guard command.principal.isStratus else { return .refused(RequestRefusal(.accessDenied)) }
        guard var body = try AssetRows.body(lose.body, over: rows.view) else {
            return .bodyLost(false)
        }
        if body.isLost { return .bodyLost(true) }
        body.isLost = true
        try AssetRows.write(body, into: rows)
        self.bodyChanges.append(
            .lost(body.body, chunkCount: UInt32(body.chunks.count), at: position.index))
        return .bodyLost(true)
    }

    // MARK: Keys

    /// Destroys the keys of a database that is being erased: what was sealed under them cannot be
    /// opened any more. The newest leaves its number, so that no later key has it.
    func destroyKeys(
        of database: DatabaseNumber, _ id: DatabaseID, over rows: Rows
    ) throws(StoreError) {
        let newest = try AssetRows.newestKey(of: database, over: rows.view)
        let start = AssetKeys.databaseKeys(database)
        for key in try rows.view.keys(.key, from: start, to: Keys.end(of: start), limit: .max) {
            try rows.remove(.key, key)
        }
        guard let newest else { return }
        try rows.put(
            .key, AssetKeys.databaseKey(database, newest.version),
            KeyRow(database: id, key: nil).encoded())
    }

    // MARK: Reading

    /// Holders that are looked at to find one that is not being purged.
    private static let holderCountMax = 1_000

    func asset(
        _ asset: AssetID, _ principal: Principal, over rows: RowView
    ) throws(StoreError) -> RecordAnswer {
        guard principal.isStratus else { return .refused(RequestRefusal(.accessDenied)) }
        guard let row = try AssetRows.asset(asset, over: rows),
            let key = try AssetRows.key(row.keyVersion, of: row.database, over: rows),
            let wrapped = key.key, let body = try AssetRows.body(row.body, over: rows),
            try self.isReadable(asset, row, over: rows)
        else { return .asset(nil) }
        return .asset(
            StoredAsset(
                asset: asset, database: key.database, fileChecksum: row.fileChecksum, body: body,
                key: wrapped))
    }

    /// Whether somebody else holds it than records of zones that are being purged: their links are
    /// dead at once.
    private func isReadable(
        _ asset: AssetID, _ row: AssetRow, over rows: RowView
    ) throws(StoreError) -> Bool {
        if row.end != nil || !row.isHeld { return true }
        let prefix = AssetKeys.holders(of: asset)
        let end = Keys.end(of: prefix)
        var start = prefix
        for _ in 0..<Self.holderCountMax {
            guard let key = try rows.keys(.asset, from: start, to: end, limit: 1).first else {
                return false
            }
            let zone = try AssetKeys.zone(ofHolder: key)
            if try rows.row(.job, Job.purge(zone, hasAssets: true).key) == nil { return true }
            // On to the next zone.
            start = Keys.end(of: prefix + Keys.zoneStart(zone))
        }
        return false
    }
}

extension Principal {
    /// Stratus itself, or an administrator of the cluster.
    var isStratus: Bool { self.kind == .system || self.kind == .administrator }
}
