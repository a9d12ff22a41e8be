package import StratusCoding
package import StratusModel
package import StratusRows

/// Stratus' own: no member of the group has a sound copy of one of the body's chunks. The row says
/// so, and nobody waits for the body any more.
package struct LoseBody: PartitionOperation, Equatable {
    package static let number: UInt8 = 17
    /// Most of it is the row of a body of 64 GiB, which is read and written.
    package static let bound = WorkBound.entry(6_000)

    package var body = BodyID()

    package init() {}
    package init(_ body: BodyID) { self.body = body }

    package var payer: Payer { .stratus }
    package var need: AccessNeed { .system }
    package var adds: Bool { false }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.body)
    }

    /// - Returns: whether there is such a body.
    package func apply(
        in state: inout RecordState, at entry: borrowing EntryContext, over rows: Rows
    ) throws(StoreError) -> Result<Bool, RequestRefusal> {
        guard var body = try AssetRows.body(self.body, over: rows.view) else {
            return .success(false)
        }
        if body.isLost { return .success(true) }
        body.isLost = true
        try AssetRows.write(body, into: rows)
        state.bodyChanges.append(
            .lost(body.body, chunkCount: UInt32(body.chunks.count), at: entry.index))
        return .success(true)
    }
}
