import StratusCoding
import StratusModel
import StratusRows

/// The tree of a zone: which record is the parent of which. Custom zones of private databases have
/// one. It hangs on every save and deletion, whoever makes it.
extension ZoneEdit {
    /// Keeps the rows of the tree as a record's place changes. Who stays where they are costs
    /// nothing.
    mutating func moveInTree(
        _ name: String, from old: Record?, to new: Record?, at tag: ChangeTag, over rows: RowView
    ) throws(StoreError) {
        guard old?.parent != nil || new?.parent != nil, self.hasTree else { return }
        let (before, after) = (TreeLink(of: old), TreeLink(of: new))
        if before == after { return }
        if let before, after != nil || !self.bugs.contains(.childCountNotKept) {
            try self.references.remove(before.kind, from: name, to: before.parent, over: rows)
        }
        if let after {
            try self.references.add(after.kind, from: name, to: after.parent, at: tag, over: rows)
        }
        if before?.parent != after?.parent { self.tree.set(after?.parent, of: name, at: tag) }
    }

    /// A child outside of `victims` that would be left without its parent, if they went. All of
    /// them were read. What it costs beyond that, is to find the name of such a child.
    mutating func childLeft(
        by victims: [String], over rows: RowView
    ) throws(StoreError) -> (parent: String, child: String)? {
        guard self.hasTree else { return nil }
        var insideCounts: [String: Int] = [:]
        for victim in victims {
            guard let link = TreeLink(of: try self.record(victim, over: rows)), !link.goesAlong
            else { continue }
            insideCounts[link.parent, default: 0] += 1
        }
        for victim in victims {
            let counts = try self.referrerCounts(of: victim, over: rows)
            let insideCount = insideCounts[victim] ?? 0
            if counts.stayingChildren <= UInt64(insideCount) { continue }
            let going = Set(victims)
            let children = try self.references.referrers(
                of: victim, .child, limit: insideCount + 1, over: rows)
            if let child = children.first(where: { !going.contains($0.name) }) {
                return (victim, child.name)
            }
        }
        return nil
    }

    /// Leaves a record that a cascade would delete, because others need it: children that do not go
    /// along, or VALIDATE references. If its parent is what the cascade began with, it has none any
    /// more.
    mutating func spare(
        _ record: Record, from parent: String, over rows: RowView
    ) throws(StoreError) {
        guard record.parent == parent, self.hasTree, try self.record(parent, over: rows) == nil
        else { return }
        var freed = record
        freed.parent = nil
        freed.tag = self.nextTag
        freed.modified.milliseconds = self.milliseconds
        var writer = ByteWriter(reserving: 512)
        writer.write(recordBody: freed)
        try self.save(
            freed, encoded: writer.bytes, addedReferences: [], removedReferences: [],
            restatedReferences: [], reservations: [:], over: rows)
    }
}
