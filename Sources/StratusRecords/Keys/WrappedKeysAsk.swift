package import StratusCoding
package import StratusModel
package import StratusRows

/// Asks a partition for keys of databases that are wrapped under one key of their container,
/// whatever their database. For Stratus itself.
package struct WrappedKeysAsk: SingleQuestion, Equatable {
    package static let number: UInt8 = 29
    package static let bound = WorkBound.single(1_000)
    /// Rows that one question looks at, and keys that one answer has.
    private static let rowCountMax = 500
    static let keyCountMax = 100

    package var container = ContainerReference()
    /// The check value of the container's key.
    package var check: Bytes = []
    /// The end of the last page; nil: from the first row.
    package var after: Bytes?

    package init() {}

    package var payer: Payer { .jobs(self.container) }
    package var need: AccessNeed { .system }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.container)
        try form.lay(&self.check)
        try form.lay(&self.after)
    }

    package func answer(
        in state: inout RecordState, to asker: Principal, _ cost: ReadCost, over view: RowView
    )
        throws(StoreError) -> Result<WrappedKeysPage, RequestRefusal>
    {
        let found = try view.rows(
            .key, from: self.after.map { $0 + [0] } ?? [], to: [], limit: Self.rowCountMax)
        var page = WrappedKeysPage()
        for (key, bytes) in found {
            let row = try AssetRows.key(decoding: bytes)
            page.next = key
            guard row.database.container == self.container, let wrapped = row.key,
                wrapped.check == self.check
            else { continue }
            var item = WrappedKeysPage.Item()
            item.database = row.database
            item.version = try AssetKeys.version(ofKey: key)
            item.key = wrapped
            page.items.append(item)
            if page.items.count == Self.keyCountMax { return .success(page) }
        }
        if found.count < Self.rowCountMax { page.next = nil }
        return .success(page)
    }
}

/// An answer to a ``WrappedKeysAsk``.
package struct WrappedKeysPage: FormValue, Sendable, Equatable {
    package struct Item: FormValue, Sendable, Equatable {
        package var database = DatabaseID()
        package var version: UInt32 = 0
        package var key = WrappedKey()

        package init() {}

        package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
            try form.lay(&self.database)
            try form.lay(&self.version)
            try form.lay(&self.key)
        }
    }

    package var items: [Item] = []
    /// Behind what the next page begins; nil: the partition has no more.
    package var next: Bytes?

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.items, atMost: WrappedKeysAsk.keyCountMax)
        try form.lay(&self.next)
    }
}
