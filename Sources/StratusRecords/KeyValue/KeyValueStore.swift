import StratusCoding
import StratusModel
import StratusRows

/// The names that the store accepts.
package enum KeyValueStore {
    /// The record type of what the store keeps.
    package static let type = "_KeyValue"
    /// Bytes of a key.
    package static let keySizeMax = 64
    /// Changes in one batch.
    package static let changeCountMax = 1_024

    /// 1 to 64 bytes.
    package static func isKey(_ key: String) -> Bool {
        (1...Self.keySizeMax).contains(key.utf8.count)
    }

    /// 1 to 64 letters, digits, and `-`, `_`, `.`, `:`.
    package static func isDevice(_ device: String) -> Bool {
        (1...64).contains(device.utf8.count)
            && device.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
                    UInt8(ascii: "."), UInt8(ascii: ":"):
                    true
                default: false
                }
            }
    }
}

extension KeyValueStore {
    /// The zone of a store; nil: nothing was ever written.
    static func zone(
        of id: DatabaseID, _ cache: inout RowCache, over view: RowView
    ) throws(StoreError) -> ZoneRow? {
        guard let database = try cache.database(id, over: view),
            let zone = try cache.zone(ZoneID.keyValueName, in: database.number, over: view),
            !zone.isDeleted
        else { return nil }
        return zone
    }

    static func device(
        _ device: String, of zone: ZoneNumber, over view: RowView
    ) throws(StoreError) -> KeyValueDeviceRow? {
        guard let row = try view.row(.reference, KeyValueKeys.device(zone, device)) else {
            return nil
        }
        return try decodingRow("key-value device") { () throws(DecodingError) in
            try KeyValueDeviceRow(decoding: row)
        }
    }

    static func use(of zone: ZoneNumber, over view: RowView) throws(StoreError) -> KeyValueUse {
        guard let row = try view.row(.reference, KeyValueKeys.use(zone)) else {
            return KeyValueUse()
        }
        return try decodingRow("key-value counters") { () throws(DecodingError) in
            try KeyValueUse(decoding: row)
        }
    }
}

extension RecordState {
    /// The row of a reserved zone and of its database, made where there are none.
    mutating func place(
        of name: String, in id: DatabaseID, drawn incarnation: ZoneIncarnation,
        _ numbers: inout NumberDraw, over rows: RowView
    ) throws(StoreError) -> (database: DatabaseRow, zone: ZoneRow, isKnown: Bool) {
        let database: DatabaseRow
        if let known = try self.cache.database(id, over: rows) {
            database = known
        } else {
            database = try numbers.database(over: rows)
        }
        if let known = try self.cache.zone(name, in: database.number, over: rows),
            !known.isDeleted
        {
            return (database, known, true)
        }
        // Above every tag of a zone that was erased.
        let zone = ZoneRow(
            number: try numbers.zone(over: rows), incarnation: incarnation,
            baseTag: database.tagFloor)
        return (database, zone, false)
    }
}
