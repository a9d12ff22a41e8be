import StratusModel
import StratusRows

extension RecordBatch {
    /// `delete` and `forceDelete`. The closure of the delete is known before anything is changed.
    mutating func delete(_ operation: RecordOperation, over rows: RowView)
        throws(StoreError) -> ModifiedRecords.Result
    {
        let flags = self.modify.rules.flags
        let succeeds = operation.kind == .forceDelete || flags.contains(.deleteMissingSucceeds)
        guard let existing = try self.edit.record(operation.recordName, over: rows) else {
            return succeeds ? .deleted(tag: nil) : .refused(RecordRefusal(.notFound))
        }
        if let refusal = self.checkWrite(of: existing) {
            // As for a record that is not there, `forceDelete` included.
            if refusal.reason == .notFound, succeeds { return .deleted(tag: nil) }
            return .refused(refusal)
        }
        // As long as there is the user there is the user's record.
        if existing.type == RecordState.userType, self.modify.database.scope == .public,
            self.principal.kind == .user || self.principal.kind == .serverKey
        {
            return .refused(RecordRefusal(.typeReserved, existing.type))
        }
        if operation.kind == .delete, let tag = operation.changeTag, tag != existing.tag.text {
            return .refused(RecordRefusal(.tagMismatch))
        }
        if let type = operation.recordType, type != existing.type,
            !flags.contains(.typeMismatchIsIgnored)
        {
            return .refused(RecordRefusal(.typeMismatch, existing.type))
        }

        // What a deletion tells other buckets is found on the way: none begins that could not tell
        // it.
        if !self.hasOutboxRoom { return .refused(RecordRefusal(.outboxFull)) }

        let limit = self.modify.rules.cascadeCountMax
        let closure = try self.closure(
            of: existing.name, limit: max(1, limit - self.deletedCount), over: rows)
        // Alone in its batch, a delete has nothing to be atomic with.
        if closure == nil, self.modify.isAtomic, self.modify.operations.count > 1 {
            return .refused(RecordRefusal(.cascadeTooLarge, String(limit)))
        }
        // Too many for this entry: the root goes now, a job goes on from its position.
        let victims = closure ?? [existing.name]
        if let referrer = try self.validatingReferrer(of: victims, over: rows) {
            return .refused(RecordRefusal(.referenced, referrer))
        }
        if let refusal = try self.validatingLink(to: victims, over: rows) {
            return .refused(refusal)
        }
        if let left = try self.edit.childLeft(by: victims, over: rows) {
            return .refused(RecordRefusal(.parentOfOthers, left.parent, of: left.child))
        }
        let tag = try self.edit.delete(existing, over: rows)
        for name in victims.dropFirst() {
            guard let victim = try self.edit.record(name, over: rows) else { continue }
            try self.edit.delete(victim, over: rows)
        }
        self.deletedCount += victims.count
        if closure == nil, !self.edit.bugs.contains(.cascadeNotContinued) {
            self.edit.enqueue(
                .cascade(
                    self.edit.zone.number, self.edit.place, target: existing.name, before: tag,
                    cursor: ""))
        }
        return .deleted(tag: tag)
    }

    /// `root` and everything that its deletion deletes, breadth first; nil if that is more than
    /// `limit`, or more bytes than the batch may touch.
    private mutating func closure(
        of root: String, limit: Int, over rows: RowView
    ) throws(StoreError) -> [String]? {
        var found = [root]
        var known: Set<String> = [root]
        var next = 0
        let begun = self.referrerCount
        while next < found.count {
            // So many referrers name each other that a job goes through them.
            if self.referrerCount - begun > Self.referrerCountMax { return nil }
            let target = found[next]
            next += 1
            self.referrerCount += 1
            let counts = try self.edit.referrerCounts(of: target, over: rows)
            if counts.deleteSelf == 0 { continue }
            // A circle may name again what is known already: ask for enough to see past that.
            let referrers = try self.edit.referrers(
                of: target, .deleteSelf, limit: limit + 1, over: rows)
            self.referrerCount += referrers.count
            for referrer in referrers where known.insert(referrer.name).inserted {
                found.append(referrer.name)
                if found.count > limit { return nil }
            }
        }
        // They will all be read: few records can be many bytes.
        var assetCount = self.edit.assets.changeCount
        for name in found {
            assetCount += try self.edit.record(name, over: rows)?.assets.count ?? 0
            if self.edit.touchedSize > self.sizeMax { return nil }
            if assetCount > AssetEdits.changeCountMax, name != root { return nil }
        }
        return found
    }

    /// A VALIDATE reference from another bucket that forbids that `victims` go. Its holder stays,
    /// whatever goes here; while it is no more than reserved, nobody can say.
    private mutating func validatingLink(
        to victims: [String], over rows: RowView
    ) throws(StoreError) -> RecordRefusal? {
        guard self.modify.database.recordBucket != nil else { return nil }
        let links = LinkRows(zone: self.edit.zone.number)
        for victim in victims
        where try self.edit.referrerCounts(of: victim, over: rows).validate > 0 {
            let found = try links.inbound(to: victim, .validate, limit: 1, over: rows)
            guard let first = found.first else { continue }
            return first.state.state == .confirmed
                ? RecordRefusal(.referenced) : RecordRefusal(.referencePending)
        }
        return nil
    }

    /// A record outside `victims` whose VALIDATE reference forbids that they go; empty where the
    /// caller may not read it.
    private mutating func validatingReferrer(
        of victims: [String], over rows: RowView
    ) throws(StoreError) -> String? {
        var going: Set<String> = []
        for victim in victims {
            let counts = try self.edit.referrerCounts(of: victim, over: rows)
            if counts.validate == 0 { continue }
            if going.isEmpty { going = Set(victims) }
            let referrers = try self.edit.referrers(
                of: victim, .validate, limit: victims.count + 1, over: rows)
            self.referrerCount += referrers.count
            for outside in referrers where !going.contains(outside.name) {
                // Its name is for those who may know it.
                return try self.isVisible(outside.name, over: rows) ? outside.name : ""
            }
        }
        return nil
    }
}
