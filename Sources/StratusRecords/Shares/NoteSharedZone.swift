package import StratusCoding
package import StratusModel
package import StratusRows

/// The gateway's: writes into a participant's own list what the owner's partition has decided. The
/// command goes to the home of the participant's private database. What is older than the list's
/// row changes nothing.
package struct NoteSharedZone: DatabaseOperation, Equatable {
    package static let number: UInt8 = 27
    package static let bound = WorkBound.entry(1_000)
    /// Zones of others that one person may have accepted.
    package static let zoneCountMax: UInt64 = 5_000

    /// The participant's.
    package var database = DatabaseID()
    /// The record name of the zone's owner.
    package var owner = ""
    package var note = SharedZoneNote()

    package init() {}

    package var payer: Payer { .owner(of: self.database) }
    package var need: AccessNeed { .system }
    package var adds: Bool { self.note.state == .accepted }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.owner)
        try form.lay(&self.note)
    }

    package func apply(
        in state: inout RecordState, at entry: borrowing EntryContext, over rows: Rows
    ) throws(StoreError) -> Result<NotedSharedZone, RequestRefusal> {
        .success(NotedSharedZone())
    }
}

/// The outcome of a ``NoteSharedZone``.
package struct NotedSharedZone: FormValue, Sendable, Equatable {
    /// Whether the note changed the list.
    package var isNews = false

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.isNews)
    }
}
