package import StratusModel
package import StratusRows

/// What partitions of records do and answer. Each type stands in one file, with its fields, its
/// layout, its outcome and its work. The operations and questions that are not here yet are those of
/// ``RecordCommand`` and ``RecordQuery``.
extension RecordState: OperationState {
    package static let operations = CommandTable<RecordState>(
        .recordCommand, .of(PutKey.self), .of(RewrapKey.self), .of(RetireKeys.self),
        .of(ResealFields.self), .of(JoinShare.self), .of(LeaveShares.self),
        .of(NoteSharedZone.self), .of(PinAsset.self), .of(HoldAssets.self), .of(LoseBody.self),
        .of(FindBody.self), .of(ReplaceBody.self), .of(ModifySubscriptions.self),
        .of(FollowNews.self), .of(ModifyKeyValues.self))

    package static let questions = QuestionTable<RecordState>(
        .recordQuery, .of(KeyAsk.self), .of(SealedRecordsAsk.self), .of(OlderFilesAsk.self),
        .of(WrappedKeysAsk.self), .of(ShareByLinkAsk.self), .of(ShareDetailAsk.self),
        .of(SharedZonesAsk.self), .of(AssetAsk.self), .of(LostFilesAsk.self),
        .of(DatabaseFilesAsk.self), .of(AssetRowsAsk.self), .of(BodiesAsk.self),
        .of(SubscriptionsAsk.self), .of(NewsAsk.self), .of(WaitingDevicesAsk.self),
        .of(AudienceAsk.self), .of(KeyValuesAsk.self), .of(KeyValueDevicesAsk.self))

    package static var kind: Command.Kind { .records }
    package static var unreadable: RequestRefusal { RequestRefusal(.queryInvalid, "unreadable") }

    package static func refusal(
        of principal: Principal, needing need: AccessNeed, in database: DatabaseID?,
        over rows: RowView
    ) throws(StoreError) -> RequestRefusal? {
        let isMet: Bool
        switch need {
        case .everybody: isMet = true
        case .owner: isMet = database.map { AccessRules.mayUse($0, principal) } ?? false
        case .system: isMet = principal.isStratus
        case .link: isMet = principal.isStratus || principal.kind == .user
        case .reader(let zone), .writer(let zone):
            var toWrite = false
            if case .writer = need { toWrite = true }
            return try ShareAccess.refusal(
                of: principal, in: zone, of: database, toWrite: toWrite, over: rows)
        }
        return isMet ? nil : RequestRefusal(.accessDenied)
    }
}
