import StratusModel
import StratusRecords

/// The records of a zone that a client has from following its feed, in the simplest way: it passes
/// on the token it was given, and forgets only when told to.
struct RecordMirror {
    private(set) var position: FeedPosition?
    private(set) var records: [String: Record] = [:]
    /// Whether the database's feed has reported the zone, and the client has not followed it to its
    /// end since. A client that passes on that feed's tokens does so before it asks for the next
    /// page.
    private(set) var isOwed: Bool

    init(isOwed: Bool = false) { self.isOwed = isOwed }

    /// A token that somebody else was given: what is known already stays.
    mutating func restart(at position: FeedPosition) {
        self.position = position
        self.isOwed = true
    }

    /// Takes in a page that was asked for by its position.
    ///
    /// - Returns: what is wrong with the page by itself; nil: nothing.
    mutating func take(_ page: ZoneChangesPage) -> String? {
        var last = self.position?.tag ?? ChangeTag(0)
        for change in page.changes {
            let tag: ChangeTag
            switch change {
            case .changed(let record):
                tag = record.tag
                self.records[record.name] = record
            case .deleted(let name, let deleted):
                tag = deleted
                self.records[name] = nil
            }
            guard tag > last else { return "\(tag.text) comes behind \(last.text)" }
            last = tag
        }
        if page.position.tag < last { return "it goes on before what it has told" }
        if let position, page.position.incarnation != position.incarnation {
            return "it is another zone's"
        }
        self.position = page.position
        if !page.moreComing { self.isOwed = false }
        return nil
    }
}
