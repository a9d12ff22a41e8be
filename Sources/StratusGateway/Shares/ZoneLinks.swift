import StratusIdentity
import StratusModel

/// Makes the short GUIDs of what is in one zone.
struct ZoneLinks: Sendable {
    private let links: ShareLinks
    private let place: ShareLinks.Place

    /// Nil where nothing can be shared: in public databases, and in default zones.
    init?(_ keys: IdentityKeys, of place: ZonePlace) {
        guard place.database.scope == .private, !place.zone.isDefault else { return nil }
        self.links = keys.shareLinks(of: place.database.container)
        self.place = ShareLinks.Place(
            part: place.database.bucket.map { Int($0.number) + 1 } ?? 0,
            owner: place.database.owner)
    }

    /// Nil for an owner whose name fits no link.
    func link(drawn: UInt128) -> ShareLink? { self.links.link(drawn: drawn, to: self.place) }
}
