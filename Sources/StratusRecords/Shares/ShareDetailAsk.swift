package import StratusCoding
package import StratusModel
package import StratusRows

/// Asks for the people and settings of a share, as the caller may see them. It is asked beside each
/// record of a share that is to be shown.
///
/// The answer is nil where the zone has no share of this record name. For who may not read in the
/// zone the zone is not there.
package struct ShareDetailAsk: SingleQuestion, DatabaseQuestion, Equatable {
    package static let number: UInt8 = 31
    package static let bound = WorkBound.single(1_000)

    package var database = DatabaseID()
    package var zone = ""
    /// The name of the share's record.
    package var recordName = ShareNames.zoneWide

    package init() {}

    package var payer: Payer { .owner(of: self.database) }
    package var need: AccessNeed { .reader(zone: self.zone) }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.database)
        try form.lay(&self.zone)
        try form.lay(&self.recordName)
    }

    package func answer(
        in state: inout RecordState, to asker: Principal, _ cost: ReadCost, over view: RowView
    )
        throws(StoreError) -> Result<ShareDetail?, RequestRefusal>
    {
        guard let zone = try state.liveZone(self.zone, of: self.database, over: view),
            zone.isShared
        else { return .success(nil) }
        let edit = try ShareEdit.load(zone.number, hasPeople: true, over: view)
        guard let row = edit.current.row, row.recordName == self.recordName else {
            return .success(nil)
        }
        let standing = try ShareAccess.standing(
            of: asker, in: self.zone, of: self.database, over: view)
        return .success(
            ShareDetail(
                row, edit.current.people, for: standing, asker.userRecordName,
                owner: self.database.owner))
    }
}
