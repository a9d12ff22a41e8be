import StratusModel
import StratusRows

/// The share of a link, and how somebody stands to it. The reads are the same for every link and
/// everybody: what is not there is looked for under a number that nothing has.
struct LinkedShare {
    enum Caller: Equatable {
        case owner
        /// Has accepted.
        case participant
        case invited
        /// May come by the link.
        case stranger
    }

    let database: DatabaseRow
    let zoneName: String
    let zone: ZoneRow
    let number: UInt32
    let row: ShareRow
    let caller: Caller
    /// Of a participant, and of somebody who is invited.
    let participant: (id: UInt128, row: ParticipantRow)?

    /// Nil: there is no such share, or it is not for `asker`.
    static func find(
        _ link: ShareLink, in id: DatabaseID, for asker: Principal, over points: PointReader
    ) throws(StoreError) -> LinkedShare? {
        let database = try points.row(.database, Keys.database(id)).map {
            (row) throws(StoreError) in try StoredRows.database(decoding: row)
        }
        let number = database?.number ?? DatabaseNumber(0)
        let place = try LinkRow.stored(.zone, ShareKeys.link(number, link), over: points)
        let zone = try points.row(.zone, Keys.zone(number, place?.zone ?? "")).map {
            (row) throws(StoreError) in try StoredRows.zone(decoding: row)
        }
        let user = asker.userRecordName
        let zoneNumber = ZoneNumber(place?.number ?? 0)
        let shareNumber = place?.share ?? 0
        let row = try ShareRow.stored(
            .share, ShareKeys.share(zoneNumber, shareNumber), over: points)
        let standing = try StandingRow.stored(
            .share, ShareKeys.standing(zoneNumber, user), over: points)
        let accepted = standing?.shares.first { $0.number == shareNumber }
        var invited: InvitedRow?
        if let key = ShareKeys.invited(zoneNumber, shareNumber, .user(user)) {
            invited = try InvitedRow.stored(.share, key, over: points)
        }
        let participantID = accepted?.participant ?? invited?.participant ?? 0
        let person = try ParticipantRow.stored(
            .share, ShareKeys.participant(zoneNumber, shareNumber, participantID), over: points)
        guard let database, let place, let zone, let row, zone.isShared,
            zone.number == zoneNumber,
            let caller = Self.caller(
                asker, in: id, row, hasAccepted: accepted != nil, isInvited: person != nil)
        else { return nil }
        let hasPerson = caller == .participant || caller == .invited
        return LinkedShare(
            database: database, zoneName: place.zone, zone: zone, number: shareNumber, row: row,
            caller: caller,
            participant: hasPerson ? person.map { (participantID, $0) } : nil)
    }

    private static func caller(
        _ asker: Principal, in database: DatabaseID, _ row: ShareRow, hasAccepted: Bool,
        isInvited: Bool
    ) -> Caller? {
        if AccessRules.mayUse(database, asker) { return .owner }
        guard AccessRules.mayParticipate(in: database, asker) else { return nil }
        if hasAccepted { return .participant }
        if isInvited { return .invited }
        return row.publicPermission == .none ? nil : .stranger
    }
}
