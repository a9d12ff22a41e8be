import StratusModel
import StratusRecords

/// What a client has of a zone by following its feed, by the plainest of means: it hands on the token it was given, and
/// forgets only when told to.
struct RecordMirror {
    private(set) var position: FeedPosition?
    private(set) var records: [String: Record] = [:]
    /// The database's feed has told of the zone, and it was not followed to its end since: a client that hands on that
    /// feed's tokens does so before it asks for the next page.
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
