import StratusCoding
import StratusModel
import StratusRows

/// Who is above whom in one zone, stored rows and pending changes as one. A walk reads a small row
/// for each step, no records, and remembers it.
struct TreeEdits {
    private struct Node {
        /// Nil: the record has no parent.
        var row: TreeRow?
        var isChanged: Bool
    }

    let zone: ZoneNumber
    private var nodes: [String: Node] = [:]

    init(zone: ZoneNumber) { self.zone = zone }

    /// The name of the record above this one; nil: it has no parent, or is not there.
    mutating func parent(of name: String, over rows: RowView) throws(StoreError) -> String? {
        if let known = self.nodes[name] { return known.row?.parent }
        let row = try TreeRow.stored(.reference, Keys.tree(self.zone, name), over: rows)
        self.nodes[name] = Node(row: row, isChanged: false)
        return row?.parent
    }

    /// - Parameter parent: nil: the record has none any more.
    mutating func set(_ parent: String?, of name: String, at tag: ChangeTag) {
        var row: TreeRow?
        if let parent {
            row = TreeRow {
                $0.parent = parent
                $0.tag = tag.raw
            }
        }
        self.nodes[name] = Node(row: row, isChanged: true)
    }

    func flush(into rows: Rows) throws(StoreError) {
        for name in self.nodes.keys.sorted() {
            guard let node = self.nodes[name], node.isChanged else { continue }
            let key = Keys.tree(self.zone, name)
            if let row = node.row {
                try rows.put(.reference, key, row.encoded())
            } else {
                try rows.remove(.reference, key)
            }
        }
    }
}
