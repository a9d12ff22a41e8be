package import StratusCoding
package import StratusModel
package import StratusRows

/// Asks for the records of a zone with values that are sealed under old keys, in the order of
/// their names. For Stratus itself.
package struct SealedRecordsAsk: SingleQuestion, DatabaseQuestion, Equatable {
    package static let number: UInt8 = 23
    package static let bound = WorkBound.single(1_000)
    /// Records that one question looks at, and bytes of rows after which it ends.
    private static let rowCountMax = 280
    private static let sizeMax = 256 << 10
    private static let step = 4

    package var database = DatabaseID()
    package var zone = ZoneID.defaultName
    /// The name behind which to look; nil: from the first.
    package var after: String?
    /// The first version that is not old.
    package var below: UInt32 = 0

    package init() {}

    package var payer: Payer { .jobs(self.database.container) }
    package var need: AccessNeed { .system }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.database)
        try form.lay(&self.zone)
        try form.lay(&self.after)
        try form.lay(&self.below)
    }

    package func answer(
        in state: inout RecordState, to asker: Principal, _ cost: ReadCost, over view: RowView
    )
        throws(StoreError) -> Result<SealedRecords, RequestRefusal>
    {
        var page = SealedRecords()
        guard let database = try state.cache.database(self.database, over: view),
            let zone = try state.cache.zone(self.zone, in: database.number, over: view),
            !zone.isDeleted
        else { return .success(page) }
        let id = ZoneID(name: self.zone, owner: self.database.owner)
        let start = Keys.zoneStart(zone.number)
        let end = Keys.end(of: start)
        var from = self.after.map { Keys.record(zone.number, $0) + [0] } ?? start
        var (seen, size) = (0, 0)
        while seen < Self.rowCountMax, size < Self.sizeMax,
            page.records.count <= ResealFields.recordCountMax - Self.step
        {
            let found = try view.rows(
                .record, from: from, to: end, limit: Self.step, sizeMax: Self.sizeMax - size)
            for (key, row) in found {
                let name = String(decoding: key.dropFirst(start.count), as: UTF8.self)
                let record = try decodingRow("record") { () throws(DecodingError) in
                    try RecordRow(decoding: row, name: name, zone: id)
                }
                if let live = record.live, self.hasOldValue(live) { page.records.append(live) }
                page.next = name
                size += row.count
            }
            seen += found.count
            // Fewer rows than that: their size ended the step, or the zone.
            guard found.count == Self.step || size >= Self.sizeMax, let last = found.last else {
                page.next = nil
                break
            }
            from = last.key + [0]
        }
        return .success(page)
    }

    private func hasOldValue(_ record: Record) -> Bool {
        record.fields.contains { field in
            guard case .sealed(_, let sealed) = field.value else { return false }
            return (try? SealedFieldCoding.keyVersion(of: sealed)).map { $0 < self.below } ?? true
        }
    }
}

/// An answer to a ``SealedRecordsAsk``.
package struct SealedRecords: FormValue, Sendable, Equatable {
    package var records: [Record] = []
    /// The last name that was looked at; nil: the zone has no more.
    package var next: String?

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.records, by: { $0.write(run: $1) }) { (reader) throws(DecodingError) in
            try reader.recordRun()
        }
        try form.require(self.records.count <= ResealFields.recordCountMax)
        try form.lay(&self.next)
    }
}
