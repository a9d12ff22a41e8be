import StratusModel
import StratusRecords

/// What a client has of a zone by following its feed, by the plainest of means: it hands on the token it was given, and
/// forgets only when told to.
struct RecordMirror {
    private(set) var position: FeedPosition?
    private(set) var records: [String: Record] = [:]

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
        return nil
    }
}
