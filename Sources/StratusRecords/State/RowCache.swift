import StratusCoding
import StratusModel
import StratusQuery
import StratusRows

/// The few rows that every command and most reads need, kept decoded. What is in here equals the
/// rows; whoever writes one of these rows tells the cache, and `forget` drops it all.
struct RowCache: Sendable {
    private struct ZoneKey: Hashable {
        var database: DatabaseNumber
        var name: String
    }

    /// Entries kept of each kind. Beyond, all are dropped: simple, and rare.
    private static let countMax = 4_096

    private var databases: [DatabaseID: DatabaseRow] = [:]
    private var zones: [ZoneKey: ZoneRow] = [:]
    private var watches: [DatabaseNumber: WatchRow] = [:]
    private var schemas: [ContainerReference: IndexedSchema] = [:]
    /// What looks for news have found. Whoever changes an owner's subscriptions tells it.
    var board = NewsBoard()
    var recentEvents = RecentEvents()

    mutating func forget() { self = RowCache() }

    mutating func database(_ id: DatabaseID, over rows: RowView)
        throws(StoreError) -> DatabaseRow?
    {
        if let known = self.databases[id] { return known }
        let row = try StoredRows.database(id, over: rows)
        if let row { self.remember(row, of: id) }
        return row
    }

    mutating func zone(
        _ name: String, in database: DatabaseNumber, over rows: RowView
    ) throws(StoreError) -> ZoneRow? {
        let key = ZoneKey(database: database, name: name)
        if let known = self.zones[key] { return known }
        let row = try StoredRows.zone(name, in: database, over: rows)
        if let row { self.remember(row, name, in: database) }
        return row
    }

    mutating func schema(_ container: ContainerReference, over rows: RowView)
        throws(StoreError) -> IndexedSchema?
    {
        if let known = self.schemas[container] { return known }
        let schema = try StoredRows.schema(container, over: rows)
        if let schema { self.remember(schema, of: container) }
        return schema
    }

    /// One without subscriptions where there is no row.
    mutating func watch(of database: DatabaseNumber, over rows: RowView)
        throws(StoreError) -> WatchRow
    {
        if let known = self.watches[database] { return known }
        let row = try StoredRows.watch(database, over: rows)
        self.remember(row, of: database)
        return row
    }

    /// Takes them out, so that they are not copied while they are written on.
    mutating func takeRecentEvents() -> RecentEvents {
        defer { self.recentEvents = RecentEvents() }
        return self.recentEvents
    }

    /// The subscriptions and events of a database begin anew.
    mutating func forgetNews(of database: DatabaseNumber) {
        self.board.forget(database)
        self.recentEvents.forget(database)
    }

    mutating func remember(_ row: WatchRow, of database: DatabaseNumber) {
        if self.watches.count >= Self.countMax { self.watches = [:] }
        self.watches[database] = row
    }

    mutating func remember(_ row: DatabaseRow, of id: DatabaseID) {
        if self.databases.count >= Self.countMax { self.databases = [:] }
        self.databases[id] = row
    }

    mutating func remember(_ row: ZoneRow, _ name: String, in database: DatabaseNumber) {
        if self.zones.count >= Self.countMax { self.zones = [:] }
        self.zones[ZoneKey(database: database, name: name)] = row
    }

    mutating func forgetZone(_ name: String, in database: DatabaseNumber) {
        self.zones[ZoneKey(database: database, name: name)] = nil
    }

    mutating func remember(_ schema: IndexedSchema, of container: ContainerReference) {
        if self.schemas.count >= Self.countMax / 16 { self.schemas = [:] }
        self.schemas[container] = schema
    }
}

/// Reads rows by what they are about.
enum StoredRows {
    static func counters(over rows: RowView) throws(StoreError)
        -> PartitionCounters
    {
        guard let row = try rows.row(.database, Keys.counters) else { return PartitionCounters() }
        return try decodingRow("counters") { () throws(DecodingError) in
            try PartitionCounters(decoding: row)
        }
    }

    static func database(_ id: DatabaseID, over rows: RowView)
        throws(StoreError) -> DatabaseRow?
    {
        guard let row = try rows.row(.database, Keys.database(id)) else { return nil }
        return try Self.database(decoding: row)
    }

    static func database(decoding row: Bytes) throws(StoreError) -> DatabaseRow {
        try decodingRow("database") { () throws(DecodingError) in try DatabaseRow(decoding: row) }
    }

    static func zone(
        _ name: String, in database: DatabaseNumber, over rows: RowView
    ) throws(StoreError) -> ZoneRow? {
        guard let row = try rows.row(.zone, Keys.zone(database, name)) else { return nil }
        return try Self.zone(decoding: row)
    }

    static func zone(decoding row: Bytes) throws(StoreError) -> ZoneRow {
        try decodingRow("zone") { () throws(DecodingError) in try ZoneRow(decoding: row) }
    }

    static func record(
        _ name: String, of number: ZoneNumber, in zone: ZoneID, over rows: RowView
    )
        throws(StoreError) -> (row: RecordRow?, size: Int)
    {
        guard let row = try rows.row(.record, Keys.record(number, name)) else { return (nil, 0) }
        let record = try decodingRow("record") { () throws(DecodingError) in
            try RecordRow(decoding: row, name: name, zone: zone)
        }
        return (record, row.count)
    }

    static func schema(_ container: ContainerReference, over rows: RowView)
        throws(StoreError) -> IndexedSchema?
    {
        guard let row = try rows.row(.schema, Keys.schema(container)) else { return nil }
        return try decodingRow("schema") { () throws(DecodingError) in
            try IndexedSchema(decoding: row)
        }
    }
}
