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

    package func answer(
        in state: inout RecordState, to asker: Principal, _ cost: ReadCost, over view: RowView
    )
        throws(StoreError) -> Result<SharedZones, RequestRefusal>
    {
        var page = SharedZones()
        guard let database = try state.cache.database(self.database, over: view) else {
            return .success(page)
        }
        let start = ShareKeys.sharedZones(database.number)
        let from = self.after.map { ShareKeys.sharedZone(database.number, $0) + [0] } ?? start
        let limit = min(max(1, Int(self.limit)), Self.zoneCountMax)
        let found = try view.rows(
            .zone, from: from, to: Keys.end(of: start), limit: Self.rowCountMax)
        for (key, row) in found {
            // There are rows left that were not looked at.
            if page.zones.count == limit { return .success(page) }
            let name = try ShareKeys.sharedZone(in: key)
            page.next = name
            let zone = try decodingRow("shared zone") { () throws(DecodingError) in
                try SharedZoneRow(decoding: row)
            }
            guard zone.state == .accepted else { continue }
            page.zones.append(
                SharedZones.Zone {
                    $0.name = name
                    $0.incarnation = zone.incarnation
                    $0.turn = zone.turn
                })
        }
        if found.count < Self.rowCountMax { page.next = nil }
        return .success(page)
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
        try form.require(!self.owner.utf8.contains(0))
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
