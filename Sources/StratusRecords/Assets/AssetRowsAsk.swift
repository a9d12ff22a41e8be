package import StratusCoding
package import StratusModel
package import StratusRows

/// Asks a partition whether what its rows say of files agrees, whatever their database: an audit.
/// For Stratus itself.
///
/// It goes through three ranges of rows, one after the other: of assets, of their holders, and of
/// records. All that one row is compared with is read with it, so changes between two pages make no
/// difference.
package struct AssetRowsAsk: SingleQuestion, Equatable {
    package static let number: UInt8 = 26
    package static let bound = WorkBound.single(1_000)
    /// Rows that one question looks at, and bytes of rows after which it ends.
    static let rowCountMax = 60
    private static let sizeMax = 128 << 10
    /// Assets of records that one question looks for.
    private static let assetCountMax = 60

    /// Where the last answer ended; nil: from the beginning.
    package var after: AssetRowsPlace?

    package init() {}

    package var payer: Payer { .stratus }
    package var need: AccessNeed { .system }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.after)
    }

    package func answer(
        in state: inout RecordState, to asker: Principal, _ cost: ReadCost, over view: RowView
    )
        throws(StoreError) -> Result<AssetRowFaults, RequestRefusal>
    {
        var place = self.after ?? AssetRowsPlace()
        if place.search?.isOver == false {
            try place.search?.step(over: view)
            return .success(AssetRowFaults { $0.next = place })
        }
        var audit = AssetRowAudit(from: place, over: view)
        try audit.run()
        return .success(
            AssetRowFaults {
                $0.faults = audit.faults
                $0.next = audit.isOver ? nil : audit.place
            })
    }

    /// One page of the audit.
    private struct AssetRowAudit {
        var place: AssetRowsPlace
        let view: RowView
        var faults: [AssetRowFault] = []
        /// Whether everything has been looked at.
        var isOver = false
        private var size = 0
        private var assetCount = 0

        init(from place: AssetRowsPlace, over view: RowView) {
            self.place = place
            self.view = view
        }

        mutating func run() throws(StoreError) {
            let (table, start, end) = self.place.range.rows
            let found = try self.view.rows(
                table, from: self.place.last.isEmpty ? start : self.place.last + [0], to: end,
                limit: AssetRowsAsk.rowCountMax, sizeMax: AssetRowsAsk.sizeMax)
            for (key, row) in found {
                let isDone =
                    switch self.place.range {
                    case .assets: try self.asset(key, row)
                    case .holders: try self.holder(key)
                    case .records: try self.record(key, row)
                    }
                // Its zone is to be found first, or the page is full.
                if !isDone { return }
                self.place.last = key
                self.place.doneCount = 0
                // What the row was compared with may be large.
                if self.size >= AssetRowsAsk.sizeMax { return }
            }
            guard found.isEmpty else { return }
            guard let next = AssetRowsPlace.Range(rawValue: self.place.range.rawValue + 1) else {
                return self.isOver = true
            }
            self.place.range = next
            self.place.last = []
        }

        private mutating func asset(_ key: Bytes, _ row: Bytes) throws(StoreError) -> Bool {
            let asset = try AssetKeys.asset(decoding: key)
            let known = try decodingRow("asset") { () throws(DecodingError) in
                try AssetRow(decoding: row)
            }
            var kinds: [AssetRowFault.Kind] = []
            let body = try AssetRows.bodyHead(known.body, over: self.view)
            if body?.size != known.size || body?.database != known.database.raw
                || body?.keyVersion != known.keyVersion
            {
                kinds.append(.noBody)
            }
            let holders = AssetKeys.holders(of: asset)
            let isHeld = try !self.view.keys(
                .asset, from: holders, to: Keys.end(of: holders), limit: 1
            ).isEmpty
            if isHeld != known.isHeld { kinds.append(.heldWrongly) }
            if let end = known.end {
                if try self.view.row(.asset, AssetKeys.end(end, of: asset)) == nil {
                    kinds.append(.noEnd)
                }
            } else if !isHeld {
                kinds.append(.neverEnds)
            }
            if kinds.isEmpty { return true }
            let database = try AssetRows.database(of: known.database, over: self.view)
            for kind in kinds {
                self.faults.append(
                    AssetRowFault(kind, of: asset) { $0.database = database })
            }
            return true
        }

        private mutating func holder(_ key: Bytes) throws(StoreError) -> Bool {
            let zone = try AssetKeys.zone(ofHolder: key)
            let asset = AssetKeys.asset(ofHolder: key)
            let name = String(decoding: key.dropFirst(21), as: UTF8.self)
            var kinds: [AssetRowFault.Kind] = []
            if try self.view.row(.asset, AssetKeys.asset(asset)) == nil { kinds.append(.noAsset) }
            let (record, size) = try StoredRows.record(
                name, of: zone, in: Self.unnamedZone, over: self.view)
            self.size += size
            if record?.live?.assets.contains(asset) != true { kinds.append(.notInRecord) }
            return self.note(kinds, of: asset, in: name, zone)
        }

        private mutating func record(_ key: Bytes, _ row: Bytes) throws(StoreError) -> Bool {
            guard try RecordRow.isLive(row) else { return true }
            let zone = ZoneNumber(key[0..<4].reduce(0) { $0 << 8 | UInt32($1) })
            let name = String(decoding: key.dropFirst(4), as: UTF8.self)
            let record = try decodingRow("record") { () throws(DecodingError) in
                try RecordRow(decoding: row, name: name, zone: Self.unnamedZone)
            }
            let assets = (record.live?.assets ?? []).dropFirst(Int(self.place.doneCount))
            for asset in assets {
                if self.assetCount == AssetRowsAsk.assetCountMax { return false }
                self.assetCount += 1
                var kinds: [AssetRowFault.Kind] = []
                if try self.view.row(.asset, AssetKeys.asset(asset)) == nil {
                    kinds.append(.noAsset)
                }
                if try self.view.row(.asset, AssetKeys.holder(of: asset, zone, name)) == nil {
                    kinds.append(.noHolder)
                }
                guard self.note(kinds, of: asset, in: name, zone) else { return false }
                self.place.doneCount += 1
            }
            return true
        }

        /// The name matters to nobody who looks at files only.
        private static let unnamedZone = ZoneID(name: "", owner: "")

        /// - Returns: false where the zone's name is still to be found: the row is looked at again.
        private mutating func note(
            _ kinds: [AssetRowFault.Kind], of asset: AssetID, in record: String, _ zone: ZoneNumber
        ) -> Bool {
            if kinds.isEmpty { return true }
            guard let search = self.place.search, search.number == zone.raw else {
                self.place.search = ZoneSearch(for: zone)
                return false
            }
            for kind in kinds {
                self.faults.append(
                    AssetRowFault(kind, of: asset) {
                        $0.database = search.database
                        $0.zone = search.zone
                        $0.record = record
                    })
            }
            return true
        }
    }
}

/// How far an audit of rows has come.
package struct AssetRowsPlace: FormValue, Sendable, Equatable {
    enum Range: UInt8, Sendable {
        case assets = 0
        case holders = 1
        case records = 2

        fileprivate var rows: (table: Table, start: Bytes, end: Bytes) {
            switch self {
            case .assets: (.asset, AssetKeys.assets, Keys.end(of: AssetKeys.assets))
            case .holders: (.asset, AssetKeys.holders, Keys.end(of: AssetKeys.holders))
            case .records: (.record, [], [])
            }
        }
    }

    var range = Range.assets
    /// The key of the last row that was looked at; empty: from the first.
    var last: Bytes = []
    /// Assets of the next record that were looked for.
    var doneCount: UInt32 = 0
    /// The zone of the last fault.
    var search: ZoneSearch?

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.range)
        try form.lay(&self.last)
        try form.lay(&self.doneCount)
        try form.lay(&self.search)
    }
}

/// Rows that say different things of one file.
package struct AssetRowFault: FormValue, Sendable, Equatable {
    package enum Kind: UInt8, Sendable, Equatable, CaseIterable {
        /// The row of its body is not there, or is that of another file.
        case noBody = 1
        /// No record holds it, and no time is set at which it is removed.
        case neverEnds = 2
        /// The row of the time at which it is removed is not there.
        case noEnd = 3
        /// It says that a record holds it, and none does; or the other way.
        case heldWrongly = 4
        /// A record, or the row that says so, holds a file that is not there.
        case noAsset = 5
        /// A row says that a record holds it, and the record does not.
        case notInRecord = 6
        /// A record holds it, and no row says so.
        case noHolder = 7

        package var text: String {
            switch self {
            case .noBody: "has no body of its own"
            case .neverEnds: "is held by no record, and never ends"
            case .noEnd: "has no row of its end"
            case .heldWrongly: "says wrongly whether records hold it"
            case .noAsset: "is named, and is not there"
            case .notInRecord: "is held by a record that does not name it"
            case .noHolder: "is named by a record, and no row says so"
            }
        }
    }

    package var kind = Kind.noBody
    package var asset = AssetID()
    /// The database, and its zone where a record is concerned. Nil: it is not there any more.
    package var database: DatabaseID?
    package var zone: String?
    package var record: String?

    package init() {}

    package init(_ kind: Kind, of asset: AssetID, _ fill: (inout Self) -> Void = { _ in }) {
        self.kind = kind
        self.asset = asset
        fill(&self)
    }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.kind)
        try form.lay(&self.asset)
        try form.lay(&self.database)
        try form.lay(&self.zone)
        try form.lay(&self.record)
    }
}

/// An answer to an ``AssetRowsAsk``.
package struct AssetRowFaults: FormValue, Sendable, Equatable {
    /// Of each row that one question looks at, or asset of a record, there are four at most.
    static let countMax = 4 * AssetRowsAsk.rowCountMax + 4

    package var faults: [AssetRowFault] = []
    /// Where to go on; nil: everything has been looked at.
    package var next: AssetRowsPlace?

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.faults, atMost: Self.countMax)
        try form.lay(&self.next)
    }
}
