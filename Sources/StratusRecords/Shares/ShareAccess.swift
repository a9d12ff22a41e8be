package import StratusModel

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
