import StratusModel
import StratusRecords

/// A client's knowledge of a database's zones, from following its feed.
struct DatabaseMirror {
    private(set) var position: DatabasePosition?
    private(set) var zones: [String: ZoneIncarnation] = [:]
    /// The database's turn when it last knew everything, or nothing.
    private(set) var base: UInt64 = 0

    /// Takes in a page that was asked for by its position.
    ///
    /// - Returns: what is wrong with the page by itself; nil: nothing.
    mutating func take(_ page: DatabaseChangesPage) -> String? {
        let last = self.position ?? .start
        if page.position < last { return "it goes on before what it has told" }
        if page.moreComing, page.position == last { return "it has no end" }
        if Set(page.changes.map(\.name)).count < page.changes.count {
            return "a zone comes twice on one page"
        }
        for change in page.changes {
            if let problem = Self.problem(of: change) { return problem }
            self.zones[change.name] = change.isDeleted ? nil : change.zone?.incarnation
        }
        if last.turn == 0 { self.base = max(page.position.turn, page.position.floor) }
        if !page.moreComing { self.base = page.position.turn }
        self.position = page.position
        return nil
    }

    static func problem(of change: DatabaseChangesPage.Change) -> String? {
        if change.isDeleted { return nil }
        guard let zone = change.zone else { return "\(change.name) comes without itself" }
        guard let since = change.since, since.incarnation == zone.incarnation else { return nil }
        return since.tag > zone.lastTag ? "\(change.name) comes with a token of its future" : nil
    }
}
