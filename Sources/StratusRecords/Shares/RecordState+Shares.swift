import StratusModel
import StratusRows

extension RecordState {
    // MARK: Recovery

    /// Whatever the partition says from now on of who stands in a zone is newer than all that it
    /// may have said and lost.
    static func liftSharing(of zone: ZoneNumber, over rows: Rows) throws(StoreError) {
        let key = ShareKeys.sharing(zone)
        guard var sharing = try ZoneSharing.stored(.share, key, over: rows.view) else { return }
        sharing.version = Self.lifted(sharing.version)
        try rows.put(.share, key, sharing.encoded())
    }

    /// No place in the list of zones of others is given a second time.
    static func liftSharedZones(of database: DatabaseNumber, over rows: Rows) throws(StoreError) {
        let key = ShareKeys.sharedFeed(database)
        guard var feed = try SharedFeedRow.stored(.zone, key, over: rows.view) else { return }
        feed.turn = Self.lifted(feed.turn, by: Self.turnStride)
        try rows.put(.zone, key, feed.encoded())
    }
}
