import StratusCoding
import StratusModel
import StratusRows

extension RecordBatch {
    /// Why a participant may not carry out an operation; nil: they may.
    func checkParticipant(_ operation: RecordOperation) -> RecordRefusal? {
        guard case .participant = self.standing else { return nil }
        if operation.share != nil || operation.recordName == ShareNames.zoneWide {
            return RecordRefusal(.writeDenied, ShareNames.type)
        }
        if !self.standing.mayWrite {
            return RecordRefusal(.writeDenied, operation.recordType ?? "")
        }
        for field in operation.fields
        where field.value.assetReferences.contains(where: { $0.receipt != nil }) {
            return RecordRefusal(.sharedFile, field.name)
        }
        return nil
    }

    // MARK: Saving

    /// A save of a share: of its record, its settings and its people at once.
    mutating func saveShare(
        _ asked: RecordOperation, _ draft: ShareDraft, over rows: RowView
    ) throws(StoreError) -> ModifiedRecords.Result {
        var operation = asked
        operation.parent = .unmentioned
        if let refusal = self.checkShare(operation, draft) { return .refused(refusal) }
        let existing = try self.edit.record(operation.recordName, over: rows)
        if let refusal = Self.checkTag(operation, existing) { return .refused(refusal) }
        if let refusal = Self.checkFields(of: operation) { return .refused(refusal) }
        var change = try ShareEdit.load(self.edit.zone.number, hasPeople: true, over: rows)
        switch ShareDecision.decide(
            draft, on: change.current, owner: self.modify.database.owner,
            at: self.edit.milliseconds)
        {
        case .failure(let refused): return .refused(refused.refusal)
        case .success(let content): change.current = content
        }
        var record = self.merged(operation, existing, typeName: ShareNames.type)
        record.shortGUID = change.current.row?.link.text
        let result = try self.store(record, by: operation, over: existing, rows)
        if case .saved = result {
            self.edit.share = change
            self.edit.zone.isShared = true
        }
        return result
    }

    /// Whether a record of this zone is a share. No other record hangs on one: ending it must not
    /// depend on what somebody has saved, nor take anything with it.
    func isShare(_ name: String) -> Bool {
        name == ShareNames.zoneWide && self.modify.database.scope == .private
            && !self.edit.id.isDefault
    }

    private func checkShare(_ operation: RecordOperation, _ draft: ShareDraft) -> RecordRefusal? {
        let missing = RecordRefusal(.shareRootMissing)
        let isWhole = operation.recordName == ShareNames.zoneWide
        guard self.modify.database.scope == .private, !self.edit.id.isDefault,
            operation.recordType == nil || operation.recordType == ShareNames.type
        else { return missing }
        if draft.root != nil { return isWhole ? missing : RecordRefusal(.shareOfRecord) }
        return isWhole ? nil : missing
    }

    /// Of a share the tag is always compared, whatever the operation is called.
    private static func checkTag(
        _ operation: RecordOperation, _ existing: Record?
    ) -> RecordRefusal? {
        guard let existing else {
            return operation.kind.createsMissing ? nil : RecordRefusal(.notFound)
        }
        if operation.kind == .create { return RecordRefusal(.exists) }
        if existing.type != ShareNames.type { return RecordRefusal(.shareRootMissing) }
        guard let tag = operation.changeTag else { return RecordRefusal(.tagMissing) }
        return tag == existing.tag.text ? nil : RecordRefusal(.tagMismatch)
    }

    /// The fields that a share has. No schema speaks of them.
    private static let fieldTypes: [String: FieldType] = [
        ShareNames.title: FieldType(.string), ShareNames.kind: FieldType(.string),
        ShareNames.thumbnail: FieldType(.bytes),
    ]

    private static func checkFields(of operation: RecordOperation) -> RecordRefusal? {
        for field in operation.fields {
            guard let type = Self.fieldTypes[field.name] else {
                return RecordRefusal(.fieldUnknown, field.name)
            }
            guard case .scalar = field.value, field.value.type == type else {
                return RecordRefusal(.fieldTypeMismatch, field.name)
            }
        }
        for name in operation.clearedFields where Self.fieldTypes[name] == nil {
            return RecordRefusal(.fieldUnknown, name)
        }
        return nil
    }

    // MARK: Leaving

    /// A participant who deletes the share's record leaves it. Nothing else changes.
    mutating func leave(_ operation: RecordOperation, over rows: RowView)
        throws(StoreError) -> ModifiedRecords.Result?
    {
        guard case .participant = self.standing, operation.recordName == ShareNames.zoneWide
        else { return nil }
        let note = try self.edit.leave(
            self.principal.userRecordName, from: self.modify.deviceID, over: rows)
        // All that the same batch still asks for comes from somebody who has left.
        self.standing = .none
        return note.map { .left($0) } ?? .refused(RecordRefusal(.notFound))
    }
}

extension ZoneEdit {
    /// Takes a participant out of the zone's share.
    /// - Returns: what the participant's list is to be told; nil: the user is no participant.
    mutating func leave(
        _ user: String, from device: String, over rows: RowView
    ) throws(StoreError) -> SharedZoneNote? {
        var change = try ShareEdit.load(self.zone.number, hasPeople: false, over: rows)
        let key = ShareKeys.standing(self.zone.number, user)
        guard change.current.row != nil,
            let standing = try StandingRow.stored(.share, key, over: rows),
            let share = standing.shares.first(where: { $0.number == change.current.number }),
            let row = try ParticipantRow.stored(
                .share,
                ShareKeys.participant(self.zone.number, share.number, share.participant),
                over: rows)
        else { return nil }
        change.add(share.participant, row)
        change.remove(share.participant)
        self.share = change
        if row.role == .user { try self.restampShare(from: device, over: rows) }
        return change.note(.left, of: self.zone, named: self.id.name)
    }

    /// Saves the share's record as it is, because its private people have changed: whoever follows
    /// the zone's feed hears of it. The record names who saved it last and not who came or left:
    /// others are shown it who may not know of them.
    mutating func restampShare(from device: String, over rows: RowView) throws(StoreError) {
        guard var record = try self.record(ShareNames.zoneWide, over: rows) else { return }
        record.tag = self.nextTag
        record.modified = ChangeStamp(
            milliseconds: self.milliseconds, userRecordName: record.modified.userRecordName,
            deviceID: device)
        var writer = ByteWriter(reserving: 512)
        writer.write(recordBody: record)
        try self.save(
            record, encoded: writer.bytes, addedReferences: [], removedReferences: [],
            restatedReferences: [], reservations: [:], over: rows)
    }

    /// Ends the share whose record is deleted.
    mutating func endShare(over rows: RowView) throws(StoreError) {
        var change = try ShareEdit.load(self.zone.number, hasPeople: true, over: rows)
        change.end()
        self.share = change
        self.zone.isShared = false
    }
}
