package import StratusModel

// Ordered values, version 1: bytes that compare as the values do. They are keys of stored rows, so
// they can never change; a new order is a new index.
//
// | type            | bytes                                                                     |
// | --------------- | ------------------------------------------------------------------------- |
// | Int64           | 8, big-endian, sign bit flipped                                           |
// | Double          | 8, big-endian IEEE 754; sign bit flipped, all bits where negative; -0 as 0 |
// | text and bytes  | the bytes, 00 as 00 FF, ended by 00 01; cut to 240, then ended by 00 02   |
// | number          | 1 below 128; otherwise 4, big-endian, top bit set                         |
//
// Each is prefix-free, so that one value follows another and the whole still compares as the pair.
// Text compares by its bytes, which for UTF-8 is the order of its scalars.

/// Writes values as bytes that compare as the values do.
package enum OrderedKey {
    /// Text and bytes longer than this share the key of their beginning: the record decides.
    package static let textLengthMax = 240

    package static func append(_ value: Int64, to key: inout Bytes) {
        Self.append(bits: UInt64(bitPattern: value) ^ 1 << 63, to: &key)
    }

    package static func append(_ value: Double, to key: inout Bytes) {
        Self.append(bits: Self.bits(of: value), to: &key)
    }

    package static func append(bits: UInt64, to key: inout Bytes) {
        unsafe withUnsafeBytes(of: bits.bigEndian) { unsafe key.append(contentsOf: $0) }
    }

    /// An integer whose order is the double's.
    package static func bits(of value: Double) -> UInt64 {
        let raw = value == 0 ? 0 : value.bitPattern
        return raw >> 63 == 1 ? ~raw : raw | 1 << 63
    }

    /// - Returns: whether the value was cut, and this key stands for others too.
    @discardableResult
    package static func append(text: Bytes, to key: inout Bytes) -> Bool {
        // Nearly every text: nothing to escape, and it fits.
        if text.count <= Self.textLengthMax, !text.contains(0) {
            key.reserveCapacity(key.count + text.count + 2)
            key.append(contentsOf: text)
            key.append(0)
            key.append(1)
            return false
        }
        var room = Self.textLengthMax
        for byte in text {
            let width = byte == 0 ? 2 : 1
            if width > room {
                key.append(0)
                key.append(2)
                return true
            }
            key.append(byte)
            if byte == 0 { key.append(0xFF) }
            room -= width
        }
        key.append(0)
        key.append(1)
        return false
    }

    /// Appends the bytes that every text beginning with `prefix` begins with as a key: no
    /// terminator.
    package static func append(prefix: Bytes, to key: inout Bytes) {
        var room = Self.textLengthMax
        for byte in prefix {
            let width = byte == 0 ? 2 : 1
            if width > room { return }
            key.append(byte)
            if byte == 0 { key.append(0xFF) }
            room -= width
        }
    }

    package static func append(number: UInt32, to key: inout Bytes) {
        precondition(number < 1 << 31, "a number of 32 bits has no ordered form")
        if number < 128 {
            key.append(UInt8(number))
        } else {
            for shift in stride(from: 24 as UInt32, through: 0, by: -8) {
                key.append(UInt8(truncatingIfNeeded: (number | 1 << 31) >> shift))
            }
        }
    }

    /// The end of the text that starts at `start`, terminator included; nil if the text does not
    /// end.
    package static func textEnd(in key: Bytes, from start: Int) -> Int? {
        var position = start
        while position + 1 < key.count {
            if key[position] == 0 {
                if key[position + 1] != 0xFF { return position + 2 }
                position += 2
            } else {
                position += 1
            }
        }
        return nil
    }

    /// The smallest key above every key that begins with `prefix`; empty means "to the end".
    package static func successor(ofPrefix prefix: Bytes) -> Bytes {
        var key = prefix
        while let last = key.popLast() {
            if last < 0xFF {
                key.append(last + 1)
                return key
            }
        }
        return []
    }
}

extension Bytes {
    /// Byte by byte, a prefix before what it begins: as SQLite orders keys.
    package static func isOrdered(_ one: Bytes, before other: Bytes) -> Bool {
        unsafe one.withUnsafeBytes { one in
            unsafe other.withUnsafeBytes { other in
                let shared = Swift.min(one.count, other.count)
                var place = 0
                // Keys of one table begin alike: eight bytes at a time.
                while place + 8 <= shared {
                    let left = unsafe one.loadUnaligned(fromByteOffset: place, as: UInt64.self)
                    let right = unsafe other.loadUnaligned(fromByteOffset: place, as: UInt64.self)
                    if left != right { return left.bigEndian < right.bigEndian }
                    place += 8
                }
                while place < shared {
                    let (left, right) = unsafe (one[place], other[place])
                    if left != right { return left < right }
                    place += 1
                }
                return one.count < other.count
            }
        }
    }
}
