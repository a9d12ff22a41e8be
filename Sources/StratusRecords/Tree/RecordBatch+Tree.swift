import StratusModel
import StratusRows

extension RecordBatch {
    /// Levels of a tree. A walk up has as many steps at most.
    static let treeLevelCountMax = 256

    /// Why a record may not stand where a save puts it; nil: it may.
    mutating func checkTree(
        of record: Record, _ operation: RecordOperation, _ existing: Record?, over rows: RowView
    ) throws(StoreError) -> RecordRefusal? {
        if existing == nil, let refusal = try self.checkLeftChildren(of: record.name, over: rows) {
            return refusal
        }
        guard let parent = record.parent else { return nil }
        guard parent != existing?.parent else {
            return try self.checkParentStays(of: record, operation, existing, over: rows)
        }
        if parent == record.name { return RecordRefusal(.parentCircle, parent) }
        guard !self.isShare(parent), try self.isVisible(parent, over: rows) else {
            return RecordRefusal(.treeParentMissing, parent)
        }
        return try self.checkLevel(of: record.name, existing, below: parent, over: rows)
    }

    /// A cascade has still to come to the children of an earlier record of the name: they are none
    /// of the record that would be made.
    private mutating func checkLeftChildren(
        of name: String, over rows: RowView
    ) throws(StoreError) -> RecordRefusal? {
        guard self.edit.hasCascades, !self.edit.bugs.contains(.danglingChildCaught),
            try self.edit.referrerCounts(of: name, over: rows).children > 0
        else { return nil }
        return RecordRefusal(.cascadePending, name)
    }

    /// A record that goes with its parent waits for the cascade, if that has taken the parent. A
    /// save by which it would stay needs the parent to be there.
    private mutating func checkParentStays(
        of record: Record, _ operation: RecordOperation, _ existing: Record?, over rows: RowView
    ) throws(StoreError) -> RecordRefusal? {
        guard self.edit.hasCascades, let link = TreeLink(of: existing), link.goesAlong else {
            return nil
        }
        let isDropped = TreeLink(of: record)?.goesAlong != true
        let isRestated = operation.fields.contains {
            $0.value.refers(to: link.parent, .deleteSelf)
        }
        guard isDropped || isRestated,
            try self.edit.record(link.parent, over: rows) == nil
        else { return nil }
        return RecordRefusal(.treeParentMissing, link.parent)
    }

    /// Walks up from the new parent. Only a record that has children can come to stand below itself.
    private mutating func checkLevel(
        of name: String, _ existing: Record?, below parent: String, over rows: RowView
    ) throws(StoreError) -> RecordRefusal? {
        var mayCircle = false
        if existing != nil, !self.edit.bugs.contains(.circleTaken) {
            mayCircle = try self.edit.referrerCounts(of: name, over: rows).children > 0
        }
        var above = parent
        // The parent stands on the first level, if nothing is above it.
        for _ in 2..<Self.treeLevelCountMax {
            guard let next = try self.edit.tree.parent(of: above, over: rows) else { return nil }
            if mayCircle, next == name { return RecordRefusal(.parentCircle, parent) }
            above = next
        }
        return try self.edit.tree.parent(of: above, over: rows) == nil
            ? nil : RecordRefusal(.parentCircle, parent)
    }

    // MARK: Deletions that wait for others

    /// Decides once more, after all others, the deletions that are refused only for their children:
    /// the last one first, until a round changes nothing.
    ///
    /// Behind the first round only deletions happen. So whoever waited for a child that is still
    /// there waits on, and nothing is read for it. Whoever does not is decided anew with all that goes
    /// along, as far as ``referrerCountMax`` lets it.
    mutating func decideAgain(over rows: RowView) throws(StoreError) {
        if self.edit.bugs.contains(.deletionDecidedOnce) || self.standing == .none { return }
        var waiting = self.decidedOrder.filter { self.blockingChild(at: $0) != nil }
        var isFirst = true
        while !waiting.isEmpty {
            var left: [Int] = []
            for index in waiting.reversed() {
                if !isFirst || self.referrerCount > Self.referrerCountMax,
                    let child = self.blockingChild(at: index),
                    try self.edit.record(child, over: rows) != nil
                {
                    left.append(index)
                    continue
                }
                let name = self.modify.operations[index].recordName
                if let tag = self.edit.tombstone(of: name) {
                    // Another deletion of the batch has taken it along.
                    self.set(.deleted(tag: tag), at: index)
                    continue
                }
                try self.decide(at: index, over: rows)
                if self.blockingChild(at: index) != nil { left.append(index) }
            }
            if left.count == waiting.count { return }
            waiting = left.reversed()
            isFirst = false
        }
    }

    /// The child for which an operation is refused; nil: it is not refused for one.
    private func blockingChild(at index: Int) -> String? {
        guard case .refused(let refusal) = self.result(at: index) else { return nil }
        return refusal.parentAndChild?.child
    }
}
