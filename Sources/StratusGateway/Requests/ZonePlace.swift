import StratusModel

/// A zone with the database that holds it: of a spread private database, the part.
struct ZonePlace: Sendable, Hashable {
    var zone: ZoneID
    var database: DatabaseID
    /// Any one of the buckets that hold the zone's records; nil if they are not spread over
    /// buckets. A bucket knows its siblings and how many they are.
    var buckets: Bucket?
    /// The database that answers for the zone itself: its first bucket.
    var home: DatabaseID {
        guard let buckets else { return self.database }
        var database = self.database
        database.bucket = Bucket(0, of: Int(buckets.count))
        return database
    }
    var key: ShardKey { .database(self.home) }

    func database(in bucket: Bucket) -> DatabaseID {
        var database = self.database
        database.bucket = bucket
        return database
    }

    /// One bucket, as a place of its own.
    func part(_ bucket: Bucket) -> ZonePlace {
        ZonePlace(zone: self.zone, database: self.database(in: bucket))
    }
}
