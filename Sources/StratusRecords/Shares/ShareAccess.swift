import StratusCoding
package import StratusModel
import StratusRows

/// How somebody stands in a zone.
package enum Standing: Sendable, Equatable {
    /// Who may use the database: all of the zone is theirs.
    case owner
    /// Somebody who has accepted a share of the zone, and what they may do there.
    case participant(SharePermission)
    /// For them the zone is not there.
    case none

    package var mayRead: Bool { self != .none }

    package var mayWrite: Bool {
        switch self {
        case .owner, .participant(.readWrite): true
        case .participant, .none: false
        }
    }
}

/// Who stands where in a zone. Only these functions read standings, and nothing keeps what they
/// say: the rows of the zone's own partition are the one judge.
enum ShareAccess {
    /// Reads nothing for the owner. For anybody else it reads three rows, whatever is there: the
    /// time of a refusal tells nothing of the zone.
    static func standing(
        of principal: Principal, in zone: String, of database: DatabaseID, over rows: RowView
    ) throws(StoreError) -> Standing {
        if AccessRules.mayUse(database, principal) { return .owner }
        guard AccessRules.mayParticipate(in: database, principal) else { return .none }
        let number = try StoredRows.database(database, over: rows)?.number ?? DatabaseNumber(0)
        let row = try StoredRows.zone(zone, in: number, over: rows)
        var shared = ZoneNumber(0)
        if let row, row.isShared, !ZoneID.isReserved(zone) { shared = row.number }
        let key = ShareKeys.standing(shared, principal.userRecordName)
        guard let standing = try StandingRow.stored(.share, key, over: rows), shared.raw != 0
        else { return .none }
        var most = SharePermission.none
        for share in standing.shares {
            let permission = try Self.permission(of: share, in: shared, over: rows)
            if permission.rawValue > most.rawValue { most = permission }
        }
        return most == .none ? .none : .participant(most)
    }

    /// Public users may do what the share lets everybody do, as it stands now.
    private static func permission(
        of share: StandingRow.Share, in zone: ZoneNumber, over rows: RowView
    ) throws(StoreError) -> SharePermission {
        guard share.role == .publicUser else { return share.permission }
        let row = try ShareRow.stored(.share, ShareKeys.share(zone, share.number), over: rows)
        return row?.publicPermission ?? .none
    }

    /// Why `principal` may not use a zone; nil: they may.
    static func refusal(
        of principal: Principal, in zone: String, of database: DatabaseID?, toWrite: Bool,
        over rows: RowView
    ) throws(StoreError) -> RequestRefusal? {
        guard let database else {
            return principal.isStratus ? nil : RequestRefusal(.accessDenied)
        }
        if AccessRules.mayUse(database, principal) { return nil }
        guard AccessRules.mayParticipate(in: database, principal) else {
            return RequestRefusal(.accessDenied)
        }
        let standing = try Self.standing(of: principal, in: zone, of: database, over: rows)
        if !standing.mayRead { return RequestRefusal(.zoneNotFound, zone) }
        return toWrite && !standing.mayWrite ? RequestRefusal(.accessDenied) : nil
    }
}
