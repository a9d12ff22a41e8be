package import StratusCoding
package import StratusModel
package import StratusRows

/// Stratus' own: puts encrypted values that are sealed anew in the place of the old ones. The
/// record stays what it is: its tag, its times and its place in the feed do not change.
package struct ResealFields: DatabaseOperation, Equatable {
    package static let number: UInt8 = 23
    package static let bound = WorkBound.entry(16_000)
    package static let recordCountMax = 200
    /// Bytes of records after which the rest is left as it is: more than a page of them has.
    static let recordSizeMax = 4 << 20

    package struct Item: FormValue, Sendable, Equatable {
        package var record = ""
        /// Of the record as it was read. One that has changed since is left as it is.
        package var tag = ChangeTag()
        /// The sealed values, sorted by name.
        package var fields: [Field] = []

        package init() {}

        package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
            try form.lay(&self.record)
            try form.lay(&self.tag)
            // As in the row of a record.
            try form.lay(&self.fields, by: { $0.write(fields: $1) }) {
                (reader) throws(DecodingError) in try reader.fields()
            }
        }
    }

    package var database = DatabaseID()
    package var zone = ZoneID.defaultName
    package var items: [Item] = []

    package init() {}

    package var payer: Payer { .jobs(self.database.container) }
    package var need: AccessNeed { .system }
    package var adds: Bool { false }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.zone)
        try form.lay(&self.items, atMost: Self.recordCountMax)
    }

    package func apply(
        in state: inout RecordState, at entry: borrowing EntryContext, over rows: Rows
    ) throws(StoreError) -> Result<ResealedFields, RequestRefusal> {
        guard let database = try state.cache.database(self.database, over: rows.view),
            let newest = try AssetRows.newestKey(of: database.number, over: rows.view)
        else { return .success(ResealedFields()) }
        var resealed = ResealedFields()
        if !self.items.isEmpty, newest.key != nil,
            let zone = try state.cache.zone(self.zone, in: database.number, over: rows.view),
            !zone.isDeleted
        {
            let id = ZoneID(name: self.zone, owner: self.database.owner)
            var size = 0
            for item in self.items where size < Self.recordSizeMax {
                let isReplaced = try Self.replace(
                    item, in: zone.number, id, under: newest.version, size: &size, over: rows)
                if isReplaced { resealed.count += 1 }
            }
        }
        let older = try AssetRows.keys(
            before: newest.version, of: database.number, limit: RetireKeys.keyCountMax,
            over: rows.view)
        resealed.olderKeyCount = UInt64(older.count)
        return .success(resealed)
    }

    /// - Parameter size: grows by the record's.
    /// - Returns: false where the record is not as it was when its values were sealed anew.
    private static func replace(
        _ item: Item, in number: ZoneNumber, _ zone: ZoneID, under version: UInt32,
        size all: inout Int, over rows: Rows
    ) throws(StoreError) -> Bool {
        let (row, size) = try StoredRows.record(item.record, of: number, in: zone, over: rows.view)
        all += size
        guard var record = row?.live, record.tag == item.tag, !item.fields.isEmpty else {
            return false
        }
        for field in item.fields {
            guard case .sealed(let type, let new) = field.value,
                (try? SealedFieldCoding.keyVersion(of: new)) == version,
                let place = record.fields.firstIndex(where: { $0.name == field.name }),
                case .sealed(type, let old) = record.fields[place].value, old.count == new.count
            else { return false }
            record.fields[place].value = field.value
        }
        var writer = ByteWriter(reserving: size)
        writer.write(recordHead: record)
        writer.write(fields: record.fields)
        // What a zone holds is counted by the sizes of its rows.
        guard writer.bytes.count == size else { return false }
        try rows.put(.record, Keys.record(number, item.record), writer.bytes)
        return true
    }
}

/// The outcome of a ``ResealFields`` and of a ``RetireKeys``.
package struct ResealedFields: FormValue, Sendable, Hashable {
    /// Records of which values were replaced.
    package var count: UInt64 = 0
    /// Keys before the newest that the database still has.
    package var olderKeyCount: UInt64 = 0

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.count)
        try form.lay(&self.olderKeyCount)
    }
}
