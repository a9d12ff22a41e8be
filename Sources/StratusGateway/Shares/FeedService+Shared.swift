import StratusCluster
import StratusHTTP
import StratusModel
import StratusRecords

/// The feed of the shared database.
///
/// The caller's list says which zones there are. Each is asked where it lies how far it has come, and
/// what differs from the incoming token has changed. A zone that was left, or that the caller may
/// not use any more, is a deleted one. A partition that does not answer is passed over: its zones
/// are told of once it does.
extension FeedService {
    fileprivate struct SharedChange {
        var zone: ZoneID
        /// Nil: it is gone.
        var summary: ZoneSummary?
        /// The turn of the caller's list in which the caller came to it.
        var turn: UInt64 = 0
        /// From where nothing is missed.
        var since: FeedPosition?
        /// Why it is gone.
        var reason: DeletionReason?
    }

    /// `changes/database` of the shared database, and `zones/changes`.
    ///
    /// - Parameter token: nil: from nothing. Empty: no changes, and the feed's end.
    func sharedChanges(
        after token: String?, as kind: FeedToken.Kind, limit: Int
    ) async throws -> Bytes {
        let place = self.exchange.feedPlace(nil, self.exchange.holder.owner)
        var known = SharedToken(kind)
        if let token, !token.isEmpty {
            known = try SharedToken(
                kind, text: token, at: place, openedWith: self.exchange.cipher)
        }
        let listed = try await self.exchange.sharedList()
        var changes = Self.changes(listed, after: known)
        var all = known
        for change in changes { all.note(change) }
        // Where no token has room for all of it, all of it is told at once: a token that forgets
        // would lead from page to page for ever.
        let moreComing = token != "" && changes.count > limit && all.hasRoom
        if moreComing { changes.removeLast(changes.count - limit) }
        for change in changes { known.note(change) }
        if token == "" { changes = [] }
        return self.written(
            changes, as: kind, token: known.text(at: place, sealedWith: self.exchange.cipher),
            moreComing: moreComing)
    }

    /// What is another than a token says, in the order of owners and names.
    private static func changes(
        _ listed: [Exchange.ListedZone], after known: SharedToken
    ) -> [SharedChange] {
        var changes: [SharedChange] = []
        var there: Set<ZoneID> = []
        var closed: Set<ZoneID> = []
        for zone in listed {
            let id = zone.place.zone
            switch zone.standing {
            // The owner has taken it back; whoever has left does not list it.
            case .closed: closed.insert(id)
            case .away: there.insert(id)
            case .open(let summary):
                there.insert(id)
                let before = known[id]
                let now = SharedToken.Place(position: summary.position, turn: zone.turn)
                guard before != now else { continue }
                // Whoever left and came again has dropped the zone, and begins anew.
                let isSame =
                    before?.turn == zone.turn
                    && before?.position.incarnation == summary.incarnation
                changes.append(
                    SharedChange(
                        zone: id, summary: summary, turn: zone.turn,
                        since: isSame ? before?.position : nil))
            }
        }
        for id in known.zones.keys where !there.contains(id) {
            changes.append(
                SharedChange(zone: id, reason: closed.contains(id) ? .removed : .deleted))
        }
        return changes.sorted { SharedToken.precedes($0.zone, $1.zone) }
    }

    private func written(
        _ changes: [SharedChange], as kind: FeedToken.Kind, token: String, moreComing: Bool
    ) -> Bytes {
        var writer = self.exchange.writer()
        writer.object {
            $0.key("zones")
            $0.array { array in
                for change in changes { self.write(change, as: kind, to: &array) }
            }
            $0.member(kind == .meta ? "metaSyncToken" : "syncToken", token)
            $0.member("moreComing", moreComing)
        }
        return writer.finish()
    }

    private func write(
        _ change: SharedChange, as kind: FeedToken.Kind, to writer: inout JSONWriter
    ) {
        if kind == .meta {
            if let summary = change.summary {
                writer.writeZone(
                    summary, id: change.zone,
                    token: self.exchange.zoneToken(summary, in: change.zone), isShared: true)
            } else {
                writer.writeDeletedZone(change.zone, change.reason)
            }
            return
        }
        writer.object {
            $0.key("zoneID")
            $0.writeZoneID(change.zone)
            if let summary = change.summary {
                let start = FeedPosition(incarnation: summary.incarnation, tag: ChangeTag(0))
                $0.member(
                    "syncToken", self.exchange.token(change.since ?? start, in: change.zone))
            } else {
                $0.member("syncToken", "")
            }
            $0.member("deleted", change.summary == nil)
            if change.summary == nil { $0.writeReason(change.reason, "deletionReason") }
        }
    }
}

extension SharedToken {
    /// What the client knows once it was told of a change.
    fileprivate mutating func note(_ change: FeedService.SharedChange) {
        self[change.zone] = change.summary.map { Place(position: $0.position, turn: change.turn) }
    }
}
