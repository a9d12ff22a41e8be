import StratusHTTP
import StratusModel
import StratusRecords
import StratusSealing

/// Positions in feeds, as clients hold them.
extension Exchange {
    func token(_ position: FeedPosition, in zone: ZoneID) -> String {
        FeedToken(position).text(at: self.feedPlace(zone.name, zone.owner), sealedWith: self.cipher)
    }

    func position(_ token: String, in zone: ZoneID) throws(InputRefusal) -> FeedPosition {
        try FeedToken(
            .zone, text: token, at: self.feedPlace(zone.name, zone.owner), openedWith: self.cipher
        ).feedPosition
    }

    func token(_ position: DatabasePosition, as kind: FeedToken.Kind) -> String {
        FeedToken(kind, position).text(
            at: self.feedPlace(nil, self.holder.owner), sealedWith: self.cipher)
    }

    func databasePosition(
        _ token: String, as kind: FeedToken.Kind
    ) throws(InputRefusal) -> DatabasePosition {
        try FeedToken(
            kind, text: token, at: self.feedPlace(nil, self.holder.owner), openedWith: self.cipher
        ).databasePosition
    }

    func feedPlace(_ zone: String?, _ owner: String) -> FeedPlace {
        FeedPlace(
            container: self.route.container, scope: self.route.scope, owner: owner, zone: zone,
            reader: self.isShared ? self.sender.name : nil)
    }

    /// Default zones have no feed, and clients conclude that from the missing token.
    func zoneToken(_ zone: ZoneSummary) -> String? { self.zoneToken(zone, in: self.id(zone)) }

    func zoneToken(_ zone: ZoneSummary, in id: ZoneID) -> String? {
        zone.isDefault ? nil : self.token(zone.position, in: id)
    }

    /// Writes the zone's current token, where the client asked for one.
    func writeSyncToken(of zone: ZoneSummary?, in id: ZoneID, to writer: inout JSONWriter) {
        guard self.wantsSyncToken else { return }
        // A default zone that was never written has not begun.
        let start = FeedPosition(incarnation: ZoneIncarnation(0), tag: ChangeTag(0))
        writer.member("syncToken", self.token(zone?.position ?? start, in: id))
    }

    /// A writer of an answer. It says whether keys may be written that only Stratus has.
    func writer(reserving capacity: Int = 512) -> JSONWriter {
        JSONWriter(
            reserving: capacity, hasExtensions: self.kernel.settings.hasExtensions)
    }
}
