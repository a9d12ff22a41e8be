import StratusModel
import StratusRecords

/// A client's knowledge of the zones of a private database in buckets, from following its feed.
struct SpreadMirror {
    private(set) var position: PartedPosition?
    private(set) var zones: [String: ZoneIncarnation] = [:]
    /// The turn of each bucket's feed when the client last knew everything there, or nothing.
    private(set) var bases: [Int: UInt64] = [:]

    /// Takes in a page that was asked for by its position.
    ///
    /// - Returns: what is wrong with the page by itself; nil: nothing.
    mutating func take(_ page: FeedMerge.Page) -> String? {
        let last = self.position
        if page.moreComing, page.position == last { return "it has no end" }
        if Set(page.changes.map(\.name)).count < page.changes.count {
            return "a zone comes twice on one page"
        }
        for part in last?.parts ?? []
        where (page.position[part.number] ?? .start) < part.position {
            return "bucket \(part.number) goes on before what it has told"
        }
        for change in page.changes {
            if let problem = DatabaseMirror.problem(of: change) { return problem }
            self.zones[change.name] = change.isDeleted ? nil : change.zone?.incarnation
        }
        for number in 0..<page.position.count {
            let position = page.position[number] ?? .start
            // Who had a token may have found zones there by other ways, and knew all at turn 0.
            let first = last == nil ? max(position.turn, position.floor) : 0
            self.bases[number] = page.moreComing ? self.bases[number] ?? first : position.turn
        }
        self.position = page.position
        return nil
    }

    /// What it knows of the zones that are in one bucket.
    func zones(in number: Int, of database: PrivateDatabase) -> [String: ZoneIncarnation] {
        self.zones.filter { database.number(of: $0.key) == number }
    }
}
