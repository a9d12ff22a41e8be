import StratusCoding
import StratusModel
import StratusRows

extension StoredRows {
    static func watch(_ database: DatabaseNumber, over rows: RowView)
        throws(StoreError) -> WatchRow
    {
        guard let row = try rows.row(.subscription, Keys.watch(database)) else {
            return WatchRow(above: try Self.counters(over: rows).eventFloor)
        }
        return try decodingRow("watch") { () throws(DecodingError) in
            try WatchRow(decoding: row)
        }
    }

    static func marks(
        of zone: String, in database: DatabaseNumber, over rows: RowView
    ) throws(StoreError) -> ZoneMarksRow {
        guard let row = try rows.row(.subscription, Keys.mark(database, zone)) else {
            return ZoneMarksRow()
        }
        return try decodingRow("marks") { () throws(DecodingError) in
            try ZoneMarksRow(decoding: row)
        }
    }

    static func event(decoding row: Bytes, owner: String = "") throws(StoreError) -> NewsEvent {
        try decodingRow("event") { () throws(DecodingError) in
            try NewsEvent(decoding: row, owner: owner)
        }
    }

    static func interest(
        _ type: String, in database: DatabaseNumber, over rows: RowView
    ) throws(StoreError) -> InterestRow? {
        guard let row = try rows.row(.subscription, Keys.interest(database, type)) else {
            return nil
        }
        return try decodingRow("interest") { () throws(DecodingError) in
            try InterestRow(decoding: row)
        }
    }

    static func subscription(_ key: Bytes, over rows: RowView)
        throws(StoreError) -> SubscriptionRow?
    {
        guard let row = try rows.row(.subscription, key) else { return nil }
        return try Self.subscription(decoding: row)
    }

    private static func subscription(decoding row: Bytes) throws(StoreError) -> SubscriptionRow {
        try decodingRow("subscription") { () throws(DecodingError) in
            try SubscriptionRow(decoding: row)
        }
    }

    /// Bounded by how many one owner may have.
    static func subscriptions(
        _ database: DatabaseNumber, isShared: Bool, of subscriber: String,
        over rows: RowView
    ) throws(StoreError) -> [SubscriptionRow] {
        let start = Keys.subscriptions(database, isShared: isShared, of: subscriber)
        var found: [SubscriptionRow] = []
        for (_, row) in try rows.rows(
            .subscription, from: start, to: Keys.end(of: start), limit: 10_000)
        {
            found.append(try Self.subscription(decoding: row))
        }
        return found
    }

    static func follower(_ key: Bytes, over rows: RowView) throws(StoreError)
        -> FollowerRow?
    {
        guard let row = try rows.row(.subscription, key) else { return nil }
        return try Self.follower(decoding: row)
    }

    static func follower(decoding row: Bytes) throws(StoreError) -> FollowerRow {
        try decodingRow("follower") { () throws(DecodingError) in
            try FollowerRow(decoding: row)
        }
    }
}
