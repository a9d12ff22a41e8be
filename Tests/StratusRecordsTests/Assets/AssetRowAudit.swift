import StratusCoding
import StratusModel
import StratusRows

@testable import StratusRecords

/// Everything that the rows of a partition say of assets, compared with each other.
struct AssetRowAudit {
    struct Holder: Hashable {
        var asset: AssetID
        var zone: ZoneNumber
        var name: String
    }

    private(set) var assets: [AssetID: AssetRow] = [:]
    private(set) var holders: Set<Holder> = []
    private(set) var bodies: Set<BodyID> = []
    private(set) var faults: [String] = []

    /// Zones with records, live or not yet purged.
    init(over rows: RowView) throws {
        var ends: Set<Bytes> = []
        var uses: [DatabaseNumber: AssetUse] = [:]
        var shares: [(key: Bytes, asset: AssetID)] = []
        var uploads: [(key: Bytes, row: UploadRow)] = []
        for (key, row) in try rows.rows(.asset, from: [], to: [], limit: .max) {
            var reader = ByteReader(Bytes(key.dropFirst()))
            switch key[0] {
            case 0: self.assets[AssetID(try reader.name())] = try AssetRow(decoding: row)
            case 1:
                let asset = AssetID(try reader.name())
                let zone = try AssetKeys.zone(ofHolder: key)
                let name = String(decoding: key.dropFirst(21), as: UTF8.self)
                self.holders.insert(Holder(asset: asset, zone: zone, name: name))
            case 2:
                var value = ByteReader(Bytes(row.dropFirst()))
                shares.append((key, AssetID(try value.name())))
            case 3: uploads.append((key, try UploadRow(decoding: row)))
            case 4: ends.insert(key)
            case 5:
                let number = key[1..<5].reduce(0) { $0 << 8 | UInt32($1) }
                uses[DatabaseNumber(number)] = try AssetUse(decoding: row)
            default: self.faults.append("a row of kind \(key[0])")
            }
        }
        self.compare(uses)
        self.compareEnds(ends, uploads)
        for (key, asset) in shares {
            guard let row = self.assets[asset], let digest = row.digest,
                AssetKeys.share(row.database, digest) == key
            else {
                self.faults.append("a share of \(asset) that has another digest or is gone")
                continue
            }
        }
        try self.compareBodies(over: rows)
        try self.compareRecords(over: rows)
    }

    private mutating func compare(_ uses: [DatabaseNumber: AssetUse]) {
        var sums: [DatabaseNumber: AssetUse] = [:]
        for row in self.assets.values {
            sums[row.database] = (sums[row.database] ?? .none) + row.use
        }
        if sums != uses { self.faults.append("assets use \(sums), the rows say \(uses)") }
    }

    private mutating func compareEnds(
        _ stored: Set<Bytes>, _ uploads: [(key: Bytes, row: UploadRow)]
    ) {
        var due: Set<Bytes> = []
        for (asset, row) in self.assets {
            if let end = row.end { due.insert(AssetKeys.end(end, of: asset)) }
            if !row.isHeld, row.end == nil { self.faults.append("\(asset) never ends") }
        }
        for (key, row) in uploads {
            let number = key[1..<5].reduce(0) { $0 << 8 | UInt32($1) }
            let upload = UploadID(key[5...].reduce(0) { $0 << 8 | UInt128($1) })
            due.insert(AssetKeys.end(row.end, of: upload, DatabaseNumber(number)))
        }
        if due != stored { self.faults.append("\(due.count) ends, \(stored.count) rows of ends") }
    }

    private mutating func compareBodies(over rows: RowView) throws {
        for (key, _) in try rows.rows(.body, from: [], to: [], limit: .max) {
            self.bodies.insert(try BodyCoding.decodeKey(key).0)
        }
        if self.bodies != Set(self.assets.values.map(\.body)) {
            self.faults.append("bodies are not those of the assets")
        }
        for (asset, row) in self.assets {
            guard let body = try AssetRows.body(row.body, over: rows), body.size == row.size,
                body.database == row.database.raw, body.keyVersion == row.keyVersion
            else {
                self.faults.append("\(asset) has no body of its own")
                continue
            }
        }
    }

    /// The holders are what records say, of live zones and of those that are not purged yet.
    private mutating func compareRecords(over rows: RowView) throws {
        var expected: Set<Holder> = []
        var counts: [ZoneNumber: UInt64] = [:]
        for (key, row) in try rows.rows(.record, from: [], to: [], limit: .max) {
            let zone = ZoneNumber(key[0..<4].reduce(0) { $0 << 8 | UInt32($1) })
            let name = String(decoding: key.dropFirst(4), as: UTF8.self)
            let id = ZoneID(name: "z", owner: Bench.owner)
            guard let record = try RecordRow(decoding: row, name: name, zone: id).live else {
                continue
            }
            for asset in record.assets {
                expected.insert(Holder(asset: asset, zone: zone, name: name))
            }
            if !record.assets.isEmpty { counts[zone, default: 0] += 1 }
        }
        if expected != self.holders {
            self.faults.append(
                "holders \(self.holders.subtracting(expected)) are no records, records "
                    + "\(expected.subtracting(self.holders)) are no holders")
        }
        let held = Set(self.holders.map(\.asset))
        for asset in held where self.assets[asset] == nil {
            self.faults.append("\(asset) is held and gone")
        }
        for (asset, row) in self.assets where row.isHeld != held.contains(asset) {
            self.faults.append("\(asset): held is \(row.isHeld)")
        }
        for (key, row) in try rows.rows(.zone, from: [], to: [], limit: .max) where key[4] == 0 {
            let zone = try ZoneRow(decoding: row)
            if zone.isDeleted { continue }
            if zone.assetRecordCount != counts[zone.number] ?? 0 {
                self.faults.append("zone \(zone.number.raw) counts \(zone.assetRecordCount)")
            }
        }
    }
}
