package import StratusCoding
package import StratusModel
package import StratusRows

/// Stratus' own: nodes have stored every chunk of a body that is called lost, as copies from
/// another disk brought them. The row calls it lost no more.
///
/// Like a pin it is appended only where the storers are enough, and does nothing in an entry that is
/// later than ``orphanAfterMilliseconds``.
package struct FindBody: PartitionOperation, Equatable {
    package static let number: UInt8 = 18
    /// Most of it is the row of a body of 64 GiB, which is read and written.
    package static let bound = WorkBound.entry(6_000)

    package var body = BodyID()
    /// As it was said to the nodes that stored copies.
    package var orphanAfterMilliseconds: Int64 = 0
    /// Nodes that have all of the body.
    package var storers: [CopyHolding] = []

    package init() {}

    package var payer: Payer { .stratus }
    package var need: AccessNeed { .system }
    package var adds: Bool { false }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.body)
        try form.lay(&self.orphanAfterMilliseconds)
        try form.lay(&self.storers, atMost: StoredBody.storerCountMax)
    }

    /// - Returns: whether the row is there, and calls the body lost no more.
    package func apply(
        in state: inout RecordState, at entry: borrowing EntryContext, over rows: Rows
    ) throws(StoreError) -> Result<Bool, RequestRefusal> {
        if entry.time.milliseconds > self.orphanAfterMilliseconds {
            return .failure(RequestRefusal(.pinTooLate))
        }
        guard var body = try AssetRows.body(self.body, over: rows.view) else {
            return .success(false)
        }
        guard body.isLost else { return .success(true) }
        body.isLost = false
        // From here on it is to be held, as if it were named for the first time.
        body.namedAt = entry.index
        try AssetRows.write(body, into: rows)
        state.bodyChanges.append(.found(body))
        return .success(true)
    }
}

extension FindBody: NamesCopies {
    var holdings: [CopyHolding]? { self.storers }
}
