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
    /// The caller's participant ID, should the caller come by the link of a public share.
    package var drawnID: UInt128 = 0
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
        try form.lay(name: &self.drawnID)
        try form.lay(&self.name)
        try form.lay(&self.deviceID)
        try form.lay(&self.token)
    }

    package func apply(
        in state: inout RecordState, at entry: borrowing EntryContext, over rows: Rows
    ) throws(StoreError) -> Result<JoinedShare, RequestRefusal> {
        let asker = entry.principal
        guard
            let found = try LinkedShare.find(
                self.link, in: self.database, for: asker, over: PointReader(rows.view))
        else { return .failure(RequestRefusal(.shareNotFound)) }
        if found.caller == .owner { return .success(JoinedShare { $0.isOwner = true }) }
        var edit = ZoneEdit(
            found.zoneName, of: self.database, database: found.database, zone: found.zone,
            at: entry.time, bugs: entry.bugs)
        var change = try ShareEdit.load(found.zone.number, hasPeople: false, over: rows.view)
        switch found.caller {
        case .owner, .participant: break
        case .invited:
            guard let (id, row) = found.participant else { break }
            change.add(id, row)
            change.accept(id, as: asker.userRecordName, self.name)
            edit.share = change
            try edit.restampShare(from: self.deviceID, over: rows.view)
        case .stranger:
            guard found.row.publicCount < ShareDecision.publicCountMax else {
                return .failure(
                    RequestRefusal(.shareFull, String(ShareDecision.publicCountMax)))
            }
            let isTaken = try rows.row(
                .share, ShareKeys.participant(found.zone.number, found.number, self.drawnID))
            // Of 128 drawn bits nobody draws the same twice, unless by malice.
            guard self.drawnID != 0, self.drawnID != found.row.ownerID, isTaken == nil else {
                return .failure(RequestRefusal(.shareNotFound))
            }
            change.addPublic(
                self.drawnID, asker.userRecordName, self.name, at: edit.milliseconds)
            edit.share = change
        }
        if edit.hasEffect { try state.flush(&edit, of: self.database, over: rows) }
        return .success(
            JoinedShare {
                $0.note = change.note(.accepted, of: found.zone, named: found.zoneName)
            })
    }
}

extension ShareEdit {
    /// Who was invited is a participant from now on.
    fileprivate mutating func accept(_ id: UInt128, as user: String, _ name: ShownName) {
        self.current.people[id]?.status = .accepted
        self.current.people[id]?.user = user
        self.current.people[id]?.name = name
        self.current.sharing.version += 1
    }

    fileprivate mutating func addPublic(
        _ id: UInt128, _ user: String, _ name: ShownName, at milliseconds: Int64
    ) {
        self.current.people[id] = ParticipantRow {
            $0.user = user
            $0.role = .publicUser
            $0.status = .accepted
            $0.name = name
            $0.addedMilliseconds = milliseconds
        }
        self.current.row?.publicCount += 1
        self.current.sharing.version += 1
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
