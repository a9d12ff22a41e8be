package import StratusCoding
package import StratusModel
package import StratusRows

/// Asks for the share of a link, at the part of the owner's database that the link opens to.
///
/// The answer is nil where there is no such share, and where the caller has no part in it: the two
/// are alike, and cost the same reads.
package struct ShareByLinkAsk: SingleQuestion, DatabaseQuestion, Equatable {
    package static let number: UInt8 = 30
    /// Most of it is the record, which may hold a picture of nearly a megabyte.
    package static let bound = WorkBound.single(600)

    package var database = DatabaseID()
    package var link = ShareLink()

    package init() {}

    package var payer: Payer { .owner(of: self.database) }
    package var need: AccessNeed { .link }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.database)
        try form.lay(&self.link)
    }

    package func answer(
        in state: inout RecordState, to asker: Principal, _ cost: ReadCost, over view: RowView
    )
        throws(StoreError) -> Result<SharedLink?, RequestRefusal>
    {
        guard
            let found = try LinkedShare.find(
                self.link, in: self.database, for: asker, over: PointReader(view)),
            let row = try view.row(
                .record, Keys.record(found.zone.number, found.row.recordName))
        else { return .success(nil) }
        let zone = ZoneID(name: found.zoneName, owner: self.database.owner)
        let record = try decodingRow("record") { () throws(DecodingError) in
            try RecordRow(decoding: row, name: found.row.recordName, zone: zone)
        }
        guard let record = record.live else { return .success(nil) }
        return .success(
            SharedLink {
                $0.zone = found.zoneName
                $0.detail = found.detail(owner: self.database.owner)
                $0.records = [record]
            })
    }
}

/// An answer to a ``ShareByLinkAsk``. An owner or a participant who reads is shown no more people
/// than somebody who is invited: ``ShareDetailAsk`` tells of all.
package struct SharedLink: FormValue, Sendable, Equatable {
    package var zone = ""
    package var detail = ShareDetail()
    /// The share's own record.
    package var records: [Record] = []

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.zone)
        try form.lay(&self.detail)
        try form.lay(&self.records, by: { $0.write(run: $1) }) { (reader) throws(DecodingError) in
            try reader.recordRun()
        }
        try form.require(self.records.count == 1)
    }

    package var record: Record? { self.records.first }
}
