package import StratusCoding
import StratusModel

// The rows that the zone `_kv` has beside its records. Their keys stand in the reference table,
// where a name never begins with a control character:
//
// | key                       | row                                                       |
// | ------------------------- | --------------------------------------------------------- |
// | 4 zone, 0x01, device      | a device, format 1: varint last batch, signed last seen,    |
// |                           | count of keys it was refused then, each text, 1 reason      |
// | 4 zone, 0x02              | the counters, format 1: varints keys, bytes of values,       |
// |                           | removed keys, devices                                     |
// | 4 zone, 0x03, 8 tag       | a removed key, by its change: the record's name, UTF-8      |
//
// A key's record is named `k` and the key's UTF-8 in hexadecimal digits. Its fields are `at`
// (TIMESTAMP), `batch` (INT64), `device` (STRING), and `value` (BYTES, a property list); a removed
// key has no `value`.

/// The counters of one store.
package struct KeyValueUse: FormValue, Sendable, Hashable {
    /// Keys that have a value.
    package var keyCount: UInt64 = 0
    /// Bytes of the values.
    package var size: UInt64 = 0
    package var removedCount: UInt64 = 0
    package var deviceCount: UInt64 = 0

    package init() {}

    func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 16)
        writer.write(1 as UInt8)
        writer.write(form: self)
        return writer.bytes
    }

    init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.format(1)
        self = try reader.form(Self.self)
        try reader.finish()
    }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.keyCount)
        try form.lay(&self.size)
        try form.lay(&self.removedCount)
        try form.lay(&self.deviceCount)
    }
}

/// The row of a device.
struct KeyValueDeviceRow: Equatable {
    var lastBatch: UInt64
    var lastSeenMilliseconds: Int64
    /// The keys that the last batch was refused, for a client that asks again.
    var refused: [ModifiedKeyValues.Refused]

    func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 24)
        writer.write(1 as UInt8)
        writer.write(varint: self.lastBatch)
        writer.write(signed: self.lastSeenMilliseconds)
        var refused = self.refused
        writer.lay(&refused, atMost: KeyValueStore.changeCountMax)
        return writer.bytes
    }

    init(lastBatch: UInt64, lastSeenMilliseconds: Int64, refused: [ModifiedKeyValues.Refused]) {
        self.lastBatch = lastBatch
        self.lastSeenMilliseconds = lastSeenMilliseconds
        self.refused = refused
    }

    init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.format(1)
        self.lastBatch = try reader.varint()
        self.lastSeenMilliseconds = try reader.signed()
        self.refused = []
        try reader.lay(&self.refused, atMost: KeyValueStore.changeCountMax)
        try reader.finish()
    }
}

enum KeyValueKeys {
    static func devices(_ zone: ZoneNumber) -> Bytes { Keys.zoneStart(zone) + [0x01] }

    static func device(_ zone: ZoneNumber, _ device: String) -> Bytes {
        Self.devices(zone) + Bytes(device.utf8)
    }

    static func use(_ zone: ZoneNumber) -> Bytes { Keys.zoneStart(zone) + [0x02] }

    static func removed(_ zone: ZoneNumber) -> Bytes { Keys.zoneStart(zone) + [0x03] }

    static func removed(_ zone: ZoneNumber, _ tag: ChangeTag) -> Bytes {
        var key = Self.removed(zone)
        Keys.append(tag.raw, to: &key)
        return key
    }

    /// The name of a key's record.
    static func recordName(_ key: String) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var name: Bytes = [UInt8(ascii: "k")]
        name.reserveCapacity(1 + 2 * key.utf8.count)
        for byte in key.utf8 {
            name.append(digits[Int(byte >> 4)])
            name.append(digits[Int(byte & 15)])
        }
        return String(decoding: name, as: UTF8.self)
    }

    /// The key of a record; nil: the name is no key's.
    static func key(ofRecord name: String) -> String? {
        let bytes = Bytes(name.utf8)
        guard bytes.first == UInt8(ascii: "k"), bytes.count % 2 == 1 else { return nil }
        var key: Bytes = []
        for index in stride(from: 1, to: bytes.count, by: 2) {
            guard let high = Self.digit(bytes[index]), let low = Self.digit(bytes[index + 1]) else {
                return nil
            }
            key.append(high << 4 | low)
        }
        return String(validating: key, as: UTF8.self)
    }

    private static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}

/// The content of a key's record.
struct KeyValueRecord: Equatable {
    /// The effective time of the change.
    var atMilliseconds: Int64
    var batch: UInt64
    var device: String
    /// Nil: the key is removed.
    var value: Bytes?

    var fields: [Field] {
        var fields = [
            Field(name: "at", value: .scalar(.timestamp(self.atMilliseconds))),
            Field(name: "batch", value: .scalar(.int64(Int64(clamping: self.batch)))),
            Field(name: "device", value: .scalar(.string(self.device))),
        ]
        if let value = self.value {
            fields.append(Field(name: "value", value: .scalar(.bytes(value))))
        }
        return fields
    }

    init(atMilliseconds: Int64, batch: UInt64, device: String, value: Bytes?) {
        self.atMilliseconds = atMilliseconds
        self.batch = batch
        self.device = device
        self.value = value
    }

    init(_ record: Record) throws(StoreError) {
        guard case .scalar(.timestamp(let at))? = record.value(of: "at"),
            case .scalar(.int64(let batch))? = record.value(of: "batch"),
            case .scalar(.string(let device))? = record.value(of: "device")
        else { throw StoreError(.unreadable, "key-value record") }
        self.init(
            atMilliseconds: at, batch: UInt64(clamping: batch), device: device, value: nil)
        if case .scalar(.bytes(let value))? = record.value(of: "value") { self.value = value }
    }
}
