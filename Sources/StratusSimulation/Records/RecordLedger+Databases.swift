import StratusModel
import StratusRecords

// The checks of answers about whole databases.
extension RecordLedger {
    func turn(of database: DatabaseID) -> UInt64 { self.databases[database]?.turn ?? 0 }

    /// How far the database's feed had come by a command.
    func turn(after identity: RequestIdentity) -> UInt64 {
        self.turns[identity] ?? 0
    }

    /// Finds the error in a page of a database's feed.
    ///
    /// - Parameters:
    ///   - mirror: the client's state, with the page taken in.
    ///   - floor: the turn that the feed was known to have reached when the page was asked for.
    func problem(
        with page: DatabaseChangesPage, of database: DatabaseID, _ mirror: DatabaseMirror,
        floor: UInt64
    ) -> String? {
        for change in page.changes {
            guard let zone = change.zone else { continue }
            guard let history = self.history(zone.incarnation),
                zone.lastTag.raw <= history.lastTag
            else { return "nobody made \(change.name) as it is at \(zone)" }
        }
        if page.moreComing { return nil }
        let history = self.databases[database] ?? DatabaseHistory()
        if mirror.position == .start {
            return history.wasEmpty(since: floor) ? nil : "it comes without its zones"
        }
        if mirror.base < floor { return "it is at \(mirror.base), it was at \(floor) before" }
        guard let state = history.state(at: mirror.base) else {
            return "it is at \(mirror.base), of \(history.turn)"
        }
        if state.zones == mirror.zones { return nil }
        return "who followed has \(mirror.zones.keys.sorted()) at \(mirror.base), there are "
            + "\(state.zones.keys.sorted())"
    }

    /// Whether a client may be told that its position in a database's feed is good no more.
    func mayRefuse(_ mirror: DatabaseMirror, of database: DatabaseID) -> Bool {
        self.mayRefuse(mirror.base, of: database)
    }

    /// - Parameter base: the database's turn when the client last knew everything, or nothing.
    func mayRefuse(_ base: UInt64, of database: DatabaseID) -> Bool {
        guard let history = self.databases[database], let base = history.state(at: base) else {
            return false
        }
        let last = history.last
        return last.erasureCount > base.erasureCount
            || last.deletionCount - base.deletionCount > Int(clamping: self.deletedZoneCountMax)
    }
}
