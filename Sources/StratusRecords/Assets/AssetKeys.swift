import StratusCoding
import StratusModel

// Keys of the asset table, numbers and drawn names with the high byte first:
//
// | key                                          | row                                        |
// | -------------------------------------------- | ------------------------------------------ |
// | 0x00, 16 asset                               | an `AssetRow`                              |
// | 0x01, 16 asset, 4 zone, record name          | 1 format: the record holds the asset        |
// | 0x02, 4 database, 16 digest                  | 1 format, 16 asset: equal files share it    |
// | 0x03, 4 database, 16 upload                  | an `UploadRow`                             |
// | 0x04, 8 time, 0x00, 16 asset                 | 1 format: a pin or a grace ends then        |
// | 0x04, 8 time, 0x01, 4 database, 16 upload    | 1 format: an upload is forgotten then       |
// | 0x05, 4 database                             | an `AssetUse`                              |
//
// A key of the key table: 4 database, 4 version.

enum AssetKeys {
    /// The whole of a row that says all in its key.
    static let mark: Bytes = [1]

    /// Every asset's own row begins with this.
    static let assets: Bytes = [0x00]

    static func asset(decoding key: Bytes) throws(StoreError) -> AssetID {
        guard key.count == 17 else { throw StoreError(.unreadable, "key of an asset") }
        return AssetID(key[1...].reduce(0) { $0 << 8 | UInt128($1) })
    }

    static func asset(_ asset: AssetID) -> Bytes { Self.key(0x00, asset.raw) }

    /// Every row of a holder begins with this.
    static let holders: Bytes = [0x01]

    static func holders(of asset: AssetID) -> Bytes { Self.key(0x01, asset.raw) }

    static func holder(of asset: AssetID, _ zone: ZoneNumber, _ name: String) -> Bytes {
        Self.holders(of: asset) + Keys.zoneStart(zone) + Bytes(name.utf8)
    }

    /// The zone of a holder.
    static func zone(ofHolder key: Bytes) throws(StoreError) -> ZoneNumber {
        guard key.count > 21 else { throw StoreError(.unreadable, "holder key") }
        return ZoneNumber(key[17..<21].reduce(0) { $0 << 8 | UInt32($1) })
    }

    /// The asset of a holder whose key has a zone.
    static func asset(ofHolder key: Bytes) -> AssetID {
        AssetID(key[1..<17].reduce(0) { $0 << 8 | UInt128($1) })
    }

    static func share(_ database: DatabaseNumber, _ digest: AssetDigest) -> Bytes {
        Self.key(0x02, database, digest.raw)
    }

    static func upload(_ database: DatabaseNumber, _ upload: UploadID) -> Bytes {
        Self.key(0x03, database, upload.raw)
    }

    static func use(_ database: DatabaseNumber) -> Bytes {
        [0x05] + Keys.bytes(database.raw, reserving: 0)
    }

    static let ends: Bytes = [0x04]

    static func end(_ milliseconds: Int64, of asset: AssetID) -> Bytes {
        var writer = ByteWriter(reserving: 26)
        writer.write(raw: Self.ends(from: milliseconds))
        writer.write(0 as UInt8)
        writer.write(name: asset.raw)
        return writer.bytes
    }

    static func end(_ milliseconds: Int64, of upload: UploadID, _ database: DatabaseNumber) -> Bytes
    {
        var writer = ByteWriter(reserving: 30)
        writer.write(raw: Self.ends(from: milliseconds))
        writer.write(1 as UInt8)
        writer.write(raw: Keys.bytes(database.raw, reserving: 0))
        writer.write(name: upload.raw)
        return writer.bytes
    }

    /// The first key of what ends at or after this time.
    static func ends(from milliseconds: Int64) -> Bytes {
        var key = Self.ends
        Keys.append(UInt64(bitPattern: milliseconds) ^ 1 << 63, to: &key)
        return key
    }

    enum Ending: Equatable {
        case asset(AssetID)
        case upload(UploadID, DatabaseNumber)
    }

    static func ending(_ key: Bytes) throws(StoreError) -> (at: Int64, what: Ending) {
        try decodingRow("end of an asset") { () throws(DecodingError) in
            var reader = ByteReader(key)
            try reader.format(0x04)
            let time = Int64(bitPattern: try Self.number(8, &reader) ^ 1 << 63)
            let ending: Ending
            switch try reader.byte() {
            case 0: ending = .asset(AssetID(try reader.name()))
            case 1:
                let database = DatabaseNumber(UInt32(try Self.number(4, &reader)))
                ending = .upload(UploadID(try reader.name()), database)
            default: throw DecodingError(.malformed, at: 9)
            }
            try reader.finish()
            return (time, ending)
        }
    }

    static func databaseKeys(_ database: DatabaseNumber) -> Bytes {
        Keys.bytes(database.raw, reserving: 4)
    }

    static func databaseKey(_ database: DatabaseNumber, _ version: UInt32) -> Bytes {
        Self.databaseKeys(database) + Keys.bytes(version, reserving: 0)
    }

    static func version(ofKey key: Bytes) throws(StoreError) -> UInt32 {
        guard key.count == 8 else { throw StoreError(.unreadable, "key of a key") }
        return key[4...].reduce(0) { $0 << 8 | UInt32($1) }
    }

    private static func key(_ kind: UInt8, _ name: UInt128) -> Bytes {
        var writer = ByteWriter(reserving: 24)
        writer.write(kind)
        writer.write(name: name)
        return writer.bytes
    }

    private static func key(_ kind: UInt8, _ database: DatabaseNumber, _ name: UInt128) -> Bytes {
        var writer = ByteWriter(reserving: 24)
        writer.write(kind)
        writer.write(raw: Keys.bytes(database.raw, reserving: 0))
        writer.write(name: name)
        return writer.bytes
    }

    private static func number(_ count: Int, _ reader: inout ByteReader) throws(DecodingError)
        -> UInt64
    {
        try reader.raw(count).reduce(0) { $0 << 8 | UInt64($1) }
    }
}
