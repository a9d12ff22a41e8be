import StratusCoding
import StratusModel

// Asset row, format 1:
//
// | bytes  | what                                                                        |
// | ------ | --------------------------------------------------------------------------- |
// | 1      | format, 1                                                                   |
// | 1      | bits: 1 held, 2 a common pin, 4 condemned, 8 digest                          |
// | varint | database number                                                             |
// | varint | size of the plain bytes                                                     |
// | text   | checksum                                                                    |
// | 16     | body                                                                        |
// | varint | key version                                                                 |
// | varint | grace, milliseconds                                                         |
// | signed | the end of the common pin, or condemned until, where it is one of them       |
// | 16     | digest, where it has one                                                    |
// | pins   | count, then of each: 16 upload, signed end                                  |
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
    /// Whether there is a holder's row.
    var isHeld = false
    /// The pins of receipts. Each ends with the save that uses its receipt.
    var pins: [Pin] = []
    /// The end of a pin that no save ends.
    var commonEnd: Int64?
    var condemnedUntil: Int64?

    struct Pin: Equatable {
        /// Whose receipt it stands for: that of an upload, or of a rereference.
        var upload: UploadID
        var end: Int64
    }

    /// Pins that are told apart. Of more, the one that ends first becomes common.
    static let pinCountMax = 32

    var pinnedUntil: Int64? {
        let last = self.pins.reduce(nil as Int64?) { max($0 ?? $1.end, $1.end) }
        return last.map { max($0, self.commonEnd ?? $0) } ?? self.commonEnd
    }

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
    ///
    /// - Parameter upload: whose receipt it is for; nil: no save ends the pin.
    mutating func pin(_ upload: UploadID?, until milliseconds: Int64, at now: Int64) {
        var end = max(self.condemnedUntil ?? milliseconds, milliseconds)
        self.condemnedUntil = nil
        guard let upload else {
            self.commonEnd = max(self.commonEnd ?? end, end)
            return
        }
        for pin in self.pins where pin.upload == upload { end = max(end, pin.end) }
        self.pins.removeAll { $0.upload == upload || $0.end <= now }
        self.pins.append(Pin(upload: upload, end: end))
        if self.pins.count > Self.pinCountMax,
            let first = self.pins.indices.min(by: { self.pins[$0].end < self.pins[$1].end })
        {
            let pin = self.pins.remove(at: first)
            self.commonEnd = max(self.commonEnd ?? pin.end, pin.end)
        }
    }

    /// Whether nothing but a receipt of this upload keeps it.
    func isKept(onlyBy upload: UploadID, at now: Int64) -> Bool {
        !self.isHeld && self.pins.contains { $0.upload == upload }
            && self.pins.allSatisfy { $0.upload == upload || $0.end <= now }
            && (self.commonEnd ?? .min) <= now
    }

    init(_ pin: PinAsset, in database: DatabaseNumber, until milliseconds: Int64) {
        self.database = database
        self.size = pin.stored.size
        self.fileChecksum = pin.fileChecksum
        self.body = pin.stored.body
        self.keyVersion = pin.stored.keyVersion
        self.graceMilliseconds = pin.rules.graceMilliseconds
        self.digest = pin.digest
        self.pins = [Pin(upload: pin.upload, end: milliseconds)]
    }

    func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 128)
        var bits: UInt8 = 0
        if self.isHeld { bits |= 1 }
        if self.commonEnd != nil { bits |= 2 }
        if self.condemnedUntil != nil { bits |= 4 }
        if self.digest != nil { bits |= 8 }
        writer.write(1 as UInt8)
        writer.write(bits)
        writer.write(varint: UInt64(self.database.raw))
        writer.write(varint: self.size)
        writer.write(text: self.fileChecksum)
        writer.write(body: self.body)
        writer.write(varint: UInt64(self.keyVersion))
        writer.write(varint: UInt64(self.graceMilliseconds))
        if let end = self.commonEnd ?? self.condemnedUntil { writer.write(signed: end) }
        if let digest = self.digest { writer.write(name: digest.raw) }
        writer.write(count: self.pins.count)
        for pin in self.pins {
            writer.write(name: pin.upload.raw)
            writer.write(signed: pin.end)
        }
        return writer.bytes
    }

    init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.format(1)
        let bits = try reader.byte()
        // Not both pinned and condemned, and not condemned while it is held.
        guard bits < 16, bits & 6 != 6, bits & 5 != 5 else {
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
        if bits & 2 != 0 { self.commonEnd = try reader.signed() }
        if bits & 4 != 0 { self.condemnedUntil = try reader.signed() }
        if bits & 8 != 0 { self.digest = AssetDigest(try reader.name()) }
        let pins = reader.offset
        for _ in 0..<(try reader.count(minimumSize: 17)) {
            self.pins.append(
                Pin(upload: UploadID(try reader.name()), end: try reader.signed()))
        }
        guard self.pins.count <= Self.pinCountMax, self.pins.isEmpty || bits & 4 == 0 else {
            throw DecodingError(.malformed, at: pins)
        }
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
        writer.write(form: self.key)
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
        self.key = try reader.form(WrappedKey?.self)
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
