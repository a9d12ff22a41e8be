package import StratusModel

/// Appends the primitives that every format of Stratus is made of.
///
/// Fixed-width integers are little-endian. A *varint* is LEB128: seven bits a byte, low bits first.
/// Signed varints are zigzagged. Byte strings and text are a varint length, then the bytes.
package struct ByteWriter: Sendable {
    package private(set) var bytes: Bytes

    package init(reserving capacity: Int = 64) {
        self.bytes = []
        self.bytes.reserveCapacity(capacity)
    }

    package mutating func write(_ value: UInt8) { self.bytes.append(value) }

    package mutating func write(fixed value: UInt16) { self.append(fixed: value) }
    package mutating func write(fixed value: UInt32) { self.append(fixed: value) }
    package mutating func write(fixed value: UInt64) { self.append(fixed: value) }

    private mutating func append<Integer: FixedWidthInteger>(fixed value: Integer) {
        var rest = value.littleEndian
        for _ in 0..<(Integer.bitWidth / 8) {
            self.bytes.append(UInt8(truncatingIfNeeded: rest))
            rest >>= 8
        }
    }

    package mutating func write(varint value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            self.bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        self.bytes.append(UInt8(truncatingIfNeeded: rest))
    }

    package mutating func write(signed value: Int64) {
        self.write(varint: UInt64(bitPattern: (value << 1) ^ (value >> 63)))
    }

    package mutating func write(count: Int) { self.write(varint: UInt64(count)) }

    package mutating func write(raw bytes: some Sequence<UInt8>) {
        self.bytes.append(contentsOf: bytes)
    }

    /// The same for what is nearly always written. The generic form is not specialised for other
    /// modules, and then takes ten times as long.
    package mutating func write(raw bytes: Bytes) { self.bytes.append(contentsOf: bytes) }

    package mutating func write(raw bytes: ArraySlice<UInt8>) {
        self.bytes.append(contentsOf: bytes)
    }

    package mutating func write(prefixed bytes: Bytes) {
        self.write(count: bytes.count)
        self.bytes.append(contentsOf: bytes)
    }

    package mutating func write(text: String) {
        self.write(count: text.utf8.count)
        self.bytes.append(contentsOf: text.utf8)
    }

    package mutating func write(flag: Bool) { self.bytes.append(flag ? 1 : 0) }

    package mutating func write(double value: Double) { self.write(fixed: value.bitPattern) }

    package mutating func write(optionalText text: String?) {
        self.write(flag: text != nil)
        if let text { self.write(text: text) }
    }
}
