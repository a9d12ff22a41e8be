package import StratusCoding
package import StratusModel
package import StratusRows

/// Somebody accepts a share, by its link. The command goes to the part of the owner's database that
/// the link opens to. Accepting again changes nothing.
package struct JoinShare: DatabaseOperation, Equatable {
    package static let number: UInt8 = 25
    package static let bound = WorkBound.entry(2_000)

    package var database = DatabaseID()
    package var link = ShareLink()
    /// The caller's name, if others may be shown it.
    package var name = ShownName()
    /// The device that `modified` of the share will name.
    package var deviceID = ""
    /// The name of the API token that the request came with.
    package var token = ""

    package init() {}

    package var payer: Payer { .owner(of: self.database) }
    package var need: AccessNeed { .link }
    package var adds: Bool { true }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.link)
        try form.lay(&self.name)
        try form.lay(&self.deviceID)
        try form.lay(&self.token)
    }

    package func apply(
        in state: inout RecordState, at entry: borrowing EntryContext, over rows: Rows
    ) throws(StoreError) -> Result<JoinedShare, RequestRefusal> {
        .failure(RequestRefusal(.shareNotFound))
    }
}

/// The outcome of a ``JoinShare``.
package struct JoinedShare: FormValue, Sendable, Equatable {
    /// The caller owns the zone: nothing was done, and there is nothing to note.
    package var isOwner = false
    /// What the caller's own list is to be told.
    package var note = SharedZoneNote()

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.isOwner)
        try form.lay(&self.note)
    }
}
