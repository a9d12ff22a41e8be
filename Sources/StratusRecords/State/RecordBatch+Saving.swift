import StratusCoding
import StratusModel
import StratusQuery
import StratusRows

extension RecordBatch {
    /// `create`, `update`, `forceUpdate`, `replace`, `forceReplace`.
    mutating func save(_ asked: RecordOperation, over rows: RowView)
        throws(StoreError) -> ModifiedRecords.Result
    {
        if let draft = asked.share { return try self.saveShare(asked, draft, over: rows) }
        var operation = asked
        if self.modify.resolvesAssets { operation.stripAssets() }
        let receipts = self.modify.resolvesAssets ? asked.receipts : []
        if let refusal = self.checkNames(of: operation) { return .refused(refusal) }
        let existing = try self.edit.record(operation.recordName, over: rows)
        if let existing {
            // First of all: a record one may not read does not exist, whatever else is wrong.
            if operation.kind != .create, let refusal = self.checkWrite(of: existing) {
                return .refused(refusal)
            }
            // A client may leave out what a record is.
            if existing.type == ShareNames.type {
                return try self.saveShare(asked, ShareDraft(), over: rows)
            }
            if let decided = self.checkExisting(existing, operation) { return decided }
        } else if !operation.kind.createsMissing {
            return .refused(RecordRefusal(.notFound))
        }
        guard let typeName = existing?.type ?? operation.recordType else {
            return .refused(RecordRefusal(.typeMissing))
        }
        let type: RecordType?
        switch self.checkSchema(operation, typeName: typeName) {
        case .failure(let refusal): return .refused(refusal.refusal)
        case .success(let found): type = found
        }
        // People may make their own record, should it be missing: nobody else could.
        if existing == nil, typeName != RecordState.userType,
            !AccessRules.allows(
                .create, type, creator: nil, in: self.modify.database, self.principal)
        {
            return .refused(RecordRefusal(.createDenied, typeName))
        }
        if self.modify.resolvesAssets,
            let refusal = try self.resolveAssets(of: &operation, existing, over: rows)
        {
            return .refused(refusal)
        }
        if let refusal = try self.checkFieldKeys(of: operation, over: rows) {
            return .refused(refusal)
        }
        let result = try self.store(
            self.merged(operation, existing, typeName: typeName), by: operation, over: existing,
            rows)
        if case .saved = result {
            for (asset, receipt) in receipts { self.edit.assets.use(receipt, of: asset) }
        }
        return result
    }

    /// The rules that need nothing but the request.
    private func checkNames(of operation: RecordOperation) -> RecordRefusal? {
        let name = operation.recordName
        let limit = RecordState.nameLengthMax
        if name == ShareNames.zoneWide, operation.kind.createsMissing,
            operation.recordType != nil, operation.recordType != ShareNames.type
        {
            return RecordRefusal(.shareRootMissing)
        }
        if !NameRules.isRecordName(name, limit: limit), !self.isOwnUserRecord(operation) {
            return self.isUserRecord(operation)
                ? RecordRefusal(.writeDenied, RecordState.userType)
                : RecordRefusal(.nameInvalid, name)
        }
        if let type = operation.recordType {
            // One for each user, under the user's name, in the public database.
            if type == RecordState.userType, !self.isOwnUserRecord(operation) {
                return RecordRefusal(.typeReserved, type)
            }
            if type.hasPrefix("cloudkit.") { return RecordRefusal(.typeReserved, type) }
            guard NameRules.isIdentifier(type, limit: limit) else {
                return RecordRefusal(.typeUnknown, type)
            }
        }
        return nil
    }

    /// Whether the operation is about a person's record, whosever it is and whether or not it is
    /// there.
    private func isUserRecord(_ operation: RecordOperation) -> Bool {
        self.modify.database.scope == .public
            && NameRules.isUserRecordName(operation.recordName)
            && (operation.recordType ?? RecordState.userType) == RecordState.userType
    }

    /// Names that begin with an underscore are users': a user's own record, or Stratus' business.
    private func isOwnUserRecord(_ operation: RecordOperation) -> Bool {
        let name = operation.recordName
        guard name.utf8.first == UInt8(ascii: "_"),
            NameRules.isRecordName(String(name.dropFirst()), limit: RecordState.nameLengthMax - 1)
        else { return false }
        switch self.principal.kind {
        case .system, .administrator: return true
        case .anonymous: return false
        case .user, .serverKey:
            return self.modify.database.scope == .public
                && name == self.principal.userRecordName
                && (operation.recordType ?? RecordState.userType) == RecordState.userType
        }
    }

    /// Returns the result that the existing record decides: a refusal, or success for a repeated
    /// create; nil: the save may go on.
    private func checkExisting(_ existing: Record, _ operation: RecordOperation)
        -> ModifiedRecords.Result?
    {
        let flags = self.modify.rules.flags
        if operation.kind == .create {
            if flags.contains(.repeatedCreateSucceeds), self.repeats(operation, existing) {
                return .saved(
                    SavedRecord(
                        tag: existing.tag, milliseconds: existing.modified.milliseconds,
                        record: existing))
            }
            return .refused(RecordRefusal(.exists))
        }
        if operation.kind != .forceUpdate, operation.kind != .forceReplace {
            if let tag = operation.changeTag {
                if tag != existing.tag.text, !self.edit.bugs.contains(.staleTagAccepted) {
                    return .refused(RecordRefusal(.tagMismatch))
                }
            } else if !flags.contains(.tagIsOptional) {
                return .refused(RecordRefusal(.tagMissing))
            }
        }
        if let type = operation.recordType, type != existing.type,
            !flags.contains(.typeMismatchIsIgnored)
        {
            return .refused(RecordRefusal(.typeMismatch, existing.type))
        }
        return nil
    }

    /// Whether `operation` is the create that made `existing`, sent again.
    private func repeats(_ operation: RecordOperation, _ existing: Record) -> Bool {
        var parent: String?
        if case .set(let name) = operation.parent { parent = name }
        return existing.created == existing.modified
            && existing.created.userRecordName == self.principal.userRecordName
            && existing.type == operation.recordType && existing.fields == operation.fields
            && existing.parent == parent
    }

    private struct SchemaRefusal: Error { let refusal: RecordRefusal }

    /// The gateway has coerced the fields to the schema it knew; the schema held here may be newer.
    private func checkSchema(_ operation: RecordOperation, typeName: String)
        -> Result<RecordType?, SchemaRefusal>
    {
        guard let schema = self.schema else { return .success(nil) }
        guard let type = schema.type(named: typeName) else {
            return .failure(SchemaRefusal(refusal: RecordRefusal(.typeUnknown, typeName)))
        }
        for field in operation.fields {
            guard let definition = type.field(named: field.name) else {
                return .failure(
                    SchemaRefusal(refusal: RecordRefusal(.fieldUnknown, field.name)))
            }
            guard definition.type == field.value.type else {
                return .failure(
                    SchemaRefusal(refusal: RecordRefusal(.fieldTypeMismatch, field.name)))
            }
        }
        for name in operation.clearedFields where type.field(named: name) == nil {
            return .failure(SchemaRefusal(refusal: RecordRefusal(.fieldUnknown, name)))
        }
        return .success(type)
    }

    /// Whether the caller may change or delete a record that exists.
    func checkWrite(of existing: Record) -> RecordRefusal? {
        if self.allows(.write, existing) { return nil }
        return self.allows(.read, existing)
            ? RecordRefusal(.writeDenied, existing.type) : RecordRefusal(.notFound)
    }

    func allows(_ permission: Grant.Permission, _ record: Record) -> Bool {
        // Private databases hold their owner's records; no need to find the type.
        if self.modify.database.scope != .public { return true }
        return AccessRules.allows(
            permission, self.schema?.type(named: record.type),
            creator: record.created.userRecordName, in: self.modify.database, self.principal)
    }

    /// Whether a record that the caller may know of has this name.
    mutating func isVisible(_ name: String, over rows: RowView)
        throws(StoreError) -> Bool
    {
        guard let record = try self.edit.record(name, over: rows) else { return false }
        return self.allows(.read, record)
    }

    /// The record as the operation leaves it, with the next tag.
    func merged(_ operation: RecordOperation, _ existing: Record?, typeName: String)
        -> Record
    {
        let stamp = ChangeStamp(
            milliseconds: self.edit.milliseconds, userRecordName: self.principal.userRecordName,
            deviceID: self.modify.deviceID)
        var fields = operation.fields
        var parent: String?
        if operation.kind.merges, let existing {
            fields = Self.merge(existing.fields, operation)
            parent = existing.parent
        }
        switch operation.parent {
        case .unmentioned: break
        case .cleared: parent = nil
        case .set(let name): parent = name
        }
        return Record(
            name: operation.recordName, type: typeName, zone: self.edit.id,
            tag: self.edit.nextTag, created: existing?.created ?? stamp, modified: stamp,
            fields: fields, parent: parent,
            shortGUID: existing?.shortGUID ?? operation.drawnShortGUID?.text, share: existing?.share
        )
    }

    /// Both sides are sorted by name, and so is what comes out.
    private static func merge(_ old: [Field], _ operation: RecordOperation) -> [Field] {
        var merged: [Field] = []
        merged.reserveCapacity(old.count + operation.fields.count)
        var new = operation.fields[...]
        var cleared = operation.clearedFields[...]
        for field in old {
            while let next = new.first, next.name < field.name {
                merged.append(next)
                new.removeFirst()
            }
            while let next = cleared.first, next < field.name { cleared.removeFirst() }
            if let next = new.first, next.name == field.name {
                merged.append(next)
                new.removeFirst()
            } else if cleared.first != field.name {
                merged.append(field)
            }
        }
        merged.append(contentsOf: new)
        return merged
    }

    /// The checks that need the whole record, then the change.
    mutating func store(
        _ record: Record, by operation: RecordOperation, over existing: Record?,
        _ rows: RowView
    ) throws(StoreError) -> ModifiedRecords.Result {
        var head = ByteWriter(reserving: 512)
        head.write(recordHead: record)
        let headCount = head.bytes.count
        head.write(fields: record.fields)
        let encoded = head.bytes
        if encoded.count - headCount > self.modify.rules.recordSizeMax {
            return .refused(RecordRefusal(.tooLarge))
        }
        if record.assets.count > AssetEdits.recordCountMax {
            return .refused(RecordRefusal(.tooManyAssets, String(AssetEdits.recordCountMax)))
        }
        if self.overflows(record.name, size: encoded.count) {
            return .refused(
                RecordRefusal(.databaseFull, String(self.modify.rules.databaseSizeMax)))
        }
        let refusal =
            self.edit.hasTree
            ? try self.checkTree(of: record, operation, existing, over: rows)
            : try self.checkParent(of: record, existing, over: rows)
        if let refusal { return .refused(refusal) }
        let isFlagged = self.modify.rules.flags.contains(.crossZoneReferencesAllowed)
        for field in record.fields where field.value.leaves(self.edit.id, actingOnly: isFlagged) {
            return .refused(RecordRefusal(.crossZoneReference, field.name))
        }
        let new = record.actingReferences
        let old = existing?.actingReferences ?? []
        let added = ActingReference.subtract(old, from: new)
        let removed = ActingReference.subtract(new, from: old)
        var granted: [ActingReference: RequestIdentity] = [:]
        for reservation in operation.reservations
        where reservation.deadlineMilliseconds >= self.deadlineMilliseconds {
            let reference = ActingReference(
                target: reservation.target, action: reservation.action)
            granted[reference] = reservation.identity
        }
        // What a save does not speak of stays what it was: only what it states again is made anew.
        let restated = self.restated(by: operation, old, added, granted)
        let posting = (added + removed + restated).filter { self.edit.leaves($0.target) }
        if let refusal = try self.checkReferences(
            added, postingCount: posting.count, granted, of: record, over: rows)
        {
            return .refused(refusal)
        }
        if !self.hasOutboxRoom, !posting.isEmpty {
            return .refused(RecordRefusal(.outboxFull))
        }
        try self.edit.save(
            record, encoded: encoded, addedReferences: added, removedReferences: removed,
            restatedReferences: restated, reservations: granted, over: rows)
        return .saved(
            SavedRecord(tag: record.tag, milliseconds: self.edit.milliseconds, record: record))
    }

    /// References that the record has already and the operation names, as far as there is anything
    /// to be done about them.
    private func restated(
        by operation: RecordOperation, _ old: [ActingReference], _ added: [ActingReference],
        _ granted: [ActingReference: RequestIdentity]
    ) -> [ActingReference] {
        if old.isEmpty { return [] }
        let stated = ActingReference.subtract(added, from: operation.fields.actingReferences)
        return stated.filter { reference in
            self.edit.leaves(reference.target)
                ? granted[reference] != nil : reference.action == .deleteSelf
        }
    }

    private mutating func checkParent(
        of record: Record, _ existing: Record?, over rows: RowView
    ) throws(StoreError) -> RecordRefusal? {
        guard let parent = record.parent, parent != existing?.parent else { return nil }
        if parent == record.name || self.isShare(parent) {
            return RecordRefusal(.parentMissing, parent)
        }
        // In another bucket: whoever sent the command has looked.
        if self.edit.leaves(parent) { return nil }
        guard try self.isVisible(parent, over: rows) else {
            return RecordRefusal(.parentMissing, parent)
        }
        return try self.isBelow(record.name, parent, over: rows)
            ? RecordRefusal(.parentCircle, parent) : nil
    }

    /// Parents above a record. Who walks up to the root of a share must come to an end.
    static let parentCountMax = 256

    /// Whether `name` is among the records above `start`, or nobody can say it in that many steps.
    private mutating func isBelow(
        _ name: String, _ start: String, over rows: RowView
    ) throws(StoreError) -> Bool {
        var above = start
        for _ in 0..<Self.parentCountMax {
            guard let next = try self.edit.record(above, over: rows)?.parent,
                !self.edit.leaves(next)
            else { return false }
            if next == name { return true }
            above = next
        }
        return true
    }

    private mutating func checkReferences(
        _ added: [ActingReference], postingCount: Int,
        _ granted: [ActingReference: RequestIdentity],
        of record: Record, over rows: RowView
    ) throws(StoreError) -> RecordRefusal? {
        let madeCount = self.edit.references.addedCount + self.edit.mails.count
        if madeCount + max(added.count, postingCount) > Self.addedReferenceCountMax {
            return RecordRefusal(.tooManyReferences)
        }
        for reference in added {
            guard NameRules.isReferenceTarget(reference.target, limit: RecordState.nameLengthMax)
            else { return RecordRefusal(.nameInvalid, reference.target) }
            if self.isShare(reference.target) {
                return RecordRefusal(.referenceTargetMissing, reference.target)
            }
            if self.edit.leaves(reference.target) {
                if granted[reference] == nil {
                    return RecordRefusal(.notReserved, reference.target)
                }
            } else if reference.action == .validate {
                if reference.target == record.name { continue }
                if try !self.isVisible(reference.target, over: rows) {
                    return RecordRefusal(.referenceTargetMissing, reference.target)
                }
            } else {
                let counts = try self.edit.referrerCounts(of: reference.target, over: rows)
                if counts.deleteSelf >= self.modify.rules.deleteSelfReferrerCountMax {
                    return RecordRefusal(.tooManyReferrers, reference.target)
                }
            }
        }
        return nil
    }
}
