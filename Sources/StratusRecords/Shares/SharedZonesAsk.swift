package import StratusCoding
package import StratusModel
package import StratusRows

/// Asks for the zones of others that the owner of a database has accepted, in the order of their
/// owners and names. It goes to the home of the private database. The list grants nothing: only the
/// zones' own partitions say who may read.
package struct SharedZonesAsk: SingleQuestion, DatabaseQuestion, Equatable {
    package static let number: UInt8 = 32
    package static let bound = WorkBound.single(1_000)
    package static let zoneCountMax = 200
    /// Rows that one question looks at: zones that were left lie between.
    static let rowCountMax = 300

    package var database = DatabaseID()
    /// The zone behind which to look; nil: from the first.
    package var after: SharedZoneName?
    /// 1…``zoneCountMax``.
    package var limit: UInt32 = 0

    package init() {}

    package var payer: Payer { .owner(of: self.database) }
    package var need: AccessNeed { .owner }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.database)
        try form.lay(&self.after)
        try form.lay(&self.limit)
    }

    package func answer(in state: inout RecordState, to asker: Principal, over view: RowView)
        throws(StoreError) -> Result<SharedZones, RequestRefusal>
    {
        .success(SharedZones())
    }
}

/// A zone of somebody else's.
package struct SharedZoneName: FormValue, Sendable, Hashable {
    package var owner = ""
    package var zone = ""

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.owner)
        try form.lay(&self.zone)
    }
}

/// An answer to a ``SharedZonesAsk``.
package struct SharedZones: FormValue, Sendable, Equatable {
    package struct Zone: FormValue, Sendable, Hashable {
        package var name = SharedZoneName()
        package var incarnation = ZoneIncarnation(0)
        /// Its place in the feed of the shared database.
        package var turn: UInt64 = 0

        package init() {}

        package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
            try form.lay(&self.name)
            try form.lay(fixed: &self.incarnation.raw)
            try form.lay(&self.turn)
        }
    }

    package var zones: [Zone] = []
    /// The zone that was looked at last; nil: there are no more.
    package var next: SharedZoneName?

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.zones, atMost: SharedZonesAsk.zoneCountMax)
        try form.lay(&self.next)
    }
}
