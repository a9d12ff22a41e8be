import StratusCoding
import StratusModel

// Asset row, format 1:
//
// | bytes  | what                                                                        |
// | ------ | --------------------------------------------------------------------------- |
// | 1      | format, 1                                                                   |
// | 1      | bits: 1 held, 2 pinned, 4 the pin is its upload's own, 8 condemned,          |
// |        | 16 digest, 32 upload                                                        |
// | varint | database number                                                             |
// | varint | size of the plain bytes                                                     |
// | text   | checksum                                                                    |
// | 16     | body                                                                        |
// | varint | key version                                                                 |
// | varint | grace, milliseconds                                                         |
// | signed | pinned or condemned until, where it is one of them                           |
// | 16     | digest, where it has one                                                    |
// | 16     | upload, where it has one                                                    |
//
// Upload row, format 1: 1 format, 16 asset, flag attached, signed end. Use, format 1: 1 format,
// varints count, bytes, unattached count, unattached bytes. Row of a key, format 1: 1 format,
// database, flag and the key as in a command; no key: it was destroyed.

/// An asset: one file, as clients know it.
///
/// An asset that no record holds is either pinned or condemned, so there is always a time at which
/// it ends.
struct AssetRow: Equatable {
    var database: DatabaseNumber
    var size: UInt64
    var fileChecksum: String
    var body: BodyID
    var keyVersion: UInt32
    /// How long it stays after its last holder.
    var graceMilliseconds: Int64
    /// Under which equal files find it.
    var digest: AssetDigest?
    /// The last upload that pinned it, until a record holds it.
    var upload: UploadID?
    /// Whether there is a holder's row.
    var isHeld = false
    var pinnedUntil: Int64?
    /// Whether the pin stands for one receipt alone, that of `upload`: the first holder ends it.
    var pinIsOwn = false
    var condemnedUntil: Int64?

    /// When something is over: the pin, or the grace.
    var end: Int64? { self.pinnedUntil ?? self.condemnedUntil }

    /// What it adds to its database's use.
    var use: AssetUse {
        let isUnattached = !self.isHeld && self.pinnedUntil != nil
        return AssetUse(
            count: 1, size: self.size, unattachedCount: isUnattached ? 1 : 0,
            unattachedSize: isUnattached ? self.size : 0)
    }

    /// Pins it for as long as this at least. A grace that has begun is not cut short.
    mutating func pin(until milliseconds: Int64) {
        self.pinnedUntil = max(self.end ?? milliseconds, milliseconds)
        self.condemnedUntil = nil
    }

    init(_ pin: PinAsset, in database: DatabaseNumber, until milliseconds: Int64) {
        self.database = database
        self.size = pin.size
        self.fileChecksum = pin.fileChecksum
        self.body = pin.body
        self.keyVersion = pin.keyVersion
        self.graceMilliseconds = pin.rules.graceMilliseconds
        self.digest = pin.digest
        self.upload = pin.upload
        self.pinnedUntil = milliseconds
        self.pinIsOwn = true
    }

    func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 128)
        var bits: UInt8 = 0
        if self.isHeld { bits |= 1 }
        if self.pinnedUntil != nil { bits |= 2 }
        if self.pinIsOwn { bits |= 4 }
        if self.condemnedUntil != nil { bits |= 8 }
        if self.digest != nil { bits |= 16 }
        if self.upload != nil { bits |= 32 }
        writer.write(1 as UInt8)
        writer.write(bits)
        writer.write(varint: UInt64(self.database.raw))
        writer.write(varint: self.size)
        writer.write(text: self.fileChecksum)
        writer.write(body: self.body)
        writer.write(varint: UInt64(self.keyVersion))
        writer.write(varint: UInt64(self.graceMilliseconds))
        if let end = self.end { writer.write(signed: end) }
        if let digest = self.digest { writer.write(name: digest.raw) }
        if let upload = self.upload { writer.write(name: upload.raw) }
        return writer.bytes
    }

    init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.format(1)
        let bits = try reader.byte()
        // Not both pinned and condemned, not condemned while it is held, and no pin of its own
        // without a pin.
        guard bits < 64, bits & 10 != 10, bits & 9 != 9, bits & 6 != 4 else {
            throw DecodingError(.malformed, at: 1)
        }
        self.database = DatabaseNumber(try reader.number32())
        self.size = try reader.varint()
        self.fileChecksum = try reader.text()
        self.body = try reader.body()
        self.keyVersion = try reader.number32()
        let start = reader.offset
        guard let grace = Int64(exactly: try reader.varint()) else {
            throw DecodingError(.malformed, at: start)
        }
        self.graceMilliseconds = grace
        self.isHeld = bits & 1 != 0
        self.pinIsOwn = bits & 4 != 0
        if bits & 2 != 0 { self.pinnedUntil = try reader.signed() }
        if bits & 8 != 0 { self.condemnedUntil = try reader.signed() }
        if bits & 16 != 0 { self.digest = AssetDigest(try reader.name()) }
        if bits & 32 != 0 { self.upload = UploadID(try reader.name()) }
        try reader.finish()
    }
}

/// What is remembered of a ticket that was used.
struct UploadRow: Equatable {
    var asset: AssetID
    /// Whether a record has held the asset: then nothing may take its place.
    var isAttached: Bool
    /// When it is forgotten.
    var end: Int64

    init(asset: AssetID, isAttached: Bool = false, end: Int64) {
        self.asset = asset
        self.isAttached = isAttached
        self.end = end
    }

    func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 32)
        writer.write(1 as UInt8)
        writer.write(name: self.asset.raw)
        writer.write(flag: self.isAttached)
        writer.write(signed: self.end)
        return writer.bytes
    }

    init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.format(1)
        self.asset = AssetID(try reader.name())
        self.isAttached = try reader.flag()
        self.end = try reader.signed()
        try reader.finish()
    }
}

/// A key of a database, with the database's name: a key is found without it, and wrapped anew under
/// a key that belongs to the container.
struct KeyRow: Equatable {
    var database: DatabaseID
    /// Nil: destroyed.
    var key: WrappedKey?

    func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 160)
        writer.write(1 as UInt8)
        writer.write(self.database)
        writer.write(flag: self.key != nil)
        if let key = self.key { writer.write(key) }
        return writer.bytes
    }

    init(database: DatabaseID, key: WrappedKey?) {
        self.database = database
        self.key = key
    }

    init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.format(1)
        self.database = try reader.database()
        self.key = try reader.flag() ? try reader.wrappedKey() : nil
        try reader.finish()
    }
}

extension AssetUse {
    var isEmpty: Bool { self == .none }

    package static func + (one: AssetUse, other: AssetUse) -> AssetUse {
        AssetUse(
            count: one.count + other.count, size: one.size + other.size,
            unattachedCount: one.unattachedCount + other.unattachedCount,
            unattachedSize: one.unattachedSize + other.unattachedSize)
    }

    static func - (one: AssetUse, other: AssetUse) -> AssetUse {
        func less(_ one: UInt64, _ other: UInt64) -> UInt64 { one - min(one, other) }
        return AssetUse(
            count: less(one.count, other.count), size: less(one.size, other.size),
            unattachedCount: less(one.unattachedCount, other.unattachedCount),
            unattachedSize: less(one.unattachedSize, other.unattachedSize))
    }

    func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 32)
        writer.write(1 as UInt8)
        writer.write(self)
        return writer.bytes
    }

    init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.format(1)
        self = try reader.assetUse()
        try reader.finish()
    }
}

extension FieldValue {
    /// The identities of the assets in it.
    var assets: [AssetID] {
        switch self {
        case .scalar(.asset(let asset)): asset.asset.map { [$0] } ?? []
        case .list(.asset, let scalars):
            scalars.compactMap { if case .asset(let asset) = $0 { asset.asset } else { nil } }
        default: []
        }
    }
}

extension Record {
    /// Each asset that the record holds, once, ascending.
    var assets: [AssetID] {
        var found: [AssetID] = []
        for field in self.fields { found += field.value.assets }
        if found.count < 2 { return found }
        found.sort()
        var unique: [AssetID] = []
        for asset in found where unique.last != asset { unique.append(asset) }
        return unique
    }
}
