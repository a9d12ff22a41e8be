package import StratusCoding
package import StratusModel
package import StratusRows

/// A participant leaves all shares of one zone. The command goes to the owner's part of the zone.
/// For who is no participant the zone is not there.
package struct LeaveShares: DatabaseOperation, Equatable {
    package static let number: UInt8 = 26
    package static let bound = WorkBound.entry(2_000)

    package var database = DatabaseID()
    package var zone = ""
    /// The device that `modified` of the share will name.
    package var deviceID = ""
    /// The name of the API token that the request came with.
    package var token = ""

    package init() {}

    package var payer: Payer { .owner(of: self.database) }
    package var need: AccessNeed { .reader(zone: self.zone) }
    package var adds: Bool { false }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.zone)
        try form.lay(&self.deviceID)
        try form.lay(&self.token)
    }

    /// - Returns: what the caller's own list is to be told. An owner leaves nothing: access denied.
    package func apply(
        in state: inout RecordState, at entry: borrowing EntryContext, over rows: Rows
    ) throws(StoreError) -> Result<SharedZoneNote, RequestRefusal> {
        let asker = entry.principal
        if AccessRules.mayUse(self.database, asker) {
            return .failure(RequestRefusal(.accessDenied))
        }
        // A participant, as the table has found.
        guard let database = try state.cache.database(self.database, over: rows.view),
            let zone = try state.cache.zone(self.zone, in: database.number, over: rows.view)
        else { return .failure(RequestRefusal(.zoneNotFound, self.zone)) }
        var edit = ZoneEdit(
            self.zone, of: self.database, database: database, zone: zone, at: entry.time,
            bugs: entry.bugs)
        let note = try edit.leave(
            asker.userRecordName, from: self.deviceID, over: rows.view)
        guard let note else { return .failure(RequestRefusal(.zoneNotFound, self.zone)) }
        try state.flush(&edit, of: self.database, over: rows)
        return .success(note)
    }
}
