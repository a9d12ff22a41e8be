package import StratusCoding
package import StratusModel
package import StratusRows

/// Asks for the share of a link, at the part of the owner's database that the link opens to.
///
/// The answer is nil where there is no such share, and where the caller has no part in it: the two
/// are alike, and cost the same reads.
package struct ShareByLinkAsk: PointQuestion, DatabaseQuestion, Equatable {
    package typealias State = RecordState
    package static let number: UInt8 = 30
    package static let bound = WorkBound.point(50)

    package var database = DatabaseID()
    package var link = ShareLink()

    package init() {}

    package var payer: Payer { .owner(of: self.database) }
    package var need: AccessNeed { .link }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.database)
        try form.lay(&self.link)
    }

    package func answer(to asker: Principal, over points: PointReader)
        throws(StoreError) -> Result<SharedLink?, RequestRefusal>
    {
        .success(nil)
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
