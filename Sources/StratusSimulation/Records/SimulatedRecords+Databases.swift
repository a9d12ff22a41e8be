import StratusModel
import StratusRecords

// Clients that follow whole databases.
extension SimulatedRecords {
    /// A page of a database's feed.
    mutating func follow(
        _ page: DatabaseChangesPage, of database: DatabaseID, in group: GroupID, by client: Int,
        _ floor: UInt64
    ) -> String? {
        self.count("pages of database feeds")
        let feed = RecordClient.DatabaseFeed(group: group, database: database)
        if let problem = self.clients[client].take(page, of: feed) { return problem }
        guard let mirror = self.clients[client].databases[feed] else { return nil }
        if !page.moreComing { self.raise(.feed(of: database), in: group, to: mirror.base) }
        return self.ledger(of: group).problem(with: page, of: database, mirror, floor: floor)
    }

    /// A position in a database's feed is good no more.
    mutating func beginAgain(
        _ database: DatabaseID, in group: GroupID, by client: Int
    ) -> String? {
        self.count("expired database positions")
        let feed = RecordClient.DatabaseFeed(group: group, database: database)
        let mirror = self.clients[client].databases[feed] ?? DatabaseMirror()
        self.clients[client].forget(feed)
        if self.ledger(of: group).mayRefuse(mirror, of: database) { return nil }
        return "its position has expired: \(String(describing: mirror.position))"
    }
}
