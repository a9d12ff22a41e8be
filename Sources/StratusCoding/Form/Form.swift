package import StratusModel

/// Fields in their order. One function, ``FormValue/lay(in:)``, lays them for both directions: a
/// ``ByteWriter`` appends each value, and a ``ByteReader`` replaces each value by what it reads.
///
/// `NamedForm` of the administrators' answers does the same for members of JSON, which have names.
package protocol Form {
    /// `Never` where the form writes, ``DecodingError`` where it reads.
    associatedtype Problem: Error

    mutating func lay(byte value: inout UInt8) throws(Problem)
    mutating func lay(_ value: inout Bool) throws(Problem)
    /// A varint.
    mutating func lay(_ value: inout UInt32) throws(Problem)
    /// A varint.
    mutating func lay(_ value: inout UInt64) throws(Problem)
    /// A zigzagged varint.
    mutating func lay(_ value: inout Int64) throws(Problem)
    mutating func lay(fixed value: inout UInt32) throws(Problem)
    mutating func lay(fixed value: inout UInt64) throws(Problem)
    /// 16 bytes, the high one first.
    mutating func lay(name value: inout UInt128) throws(Problem)
    mutating func lay(_ value: inout String) throws(Problem)
    mutating func lay(_ value: inout Bytes) throws(Problem)
    /// A count and as many values. A longer list is malformed.
    mutating func lay<Value: FormValue>(_ list: inout [Value], atMost max: Int) throws(Problem)
    /// What is not field by field: a database, the body of a record.
    mutating func lay<Value>(
        _ value: inout Value, by write: (inout ByteWriter, Value) -> Void,
        _ read: (inout ByteReader) throws(DecodingError) -> Value
    ) throws(Problem)
    /// Bytes of which this does not hold are malformed. Whoever writes is not asked.
    mutating func require(_ holds: @autoclosure () -> Bool) throws(Problem)
}

extension Form {
    package mutating func lay(_ value: inout some FormValue) throws(Problem) {
        try value.lay(in: &self)
    }

    /// An enumeration without payloads: its number. An unknown number is malformed.
    package mutating func lay<Value: RawRepresentable>(_ value: inout Value) throws(Problem)
    where Value.RawValue == UInt8 {
        var number = value.rawValue
        try self.lay(byte: &number)
        guard let known = Value(rawValue: number) else { return try self.require(false) }
        value = known
    }

    /// A flag, then the number of an enumeration if there is one.
    package mutating func lay<Value: RawRepresentable>(
        optional value: inout Value?, first: Value
    ) throws(Problem) where Value.RawValue == UInt8 {
        var isThere = value != nil
        try self.lay(&isThere)
        guard isThere else { return value = nil }
        var known = value ?? first
        try self.lay(&known)
        value = known
    }
}

extension ByteWriter: Form {
    package typealias Problem = Never

    package mutating func lay(byte value: inout UInt8) { self.write(value) }
    package mutating func lay(_ value: inout Bool) { self.write(flag: value) }
    package mutating func lay(_ value: inout UInt32) { self.write(varint: UInt64(value)) }
    package mutating func lay(_ value: inout UInt64) { self.write(varint: value) }
    package mutating func lay(_ value: inout Int64) { self.write(signed: value) }
    package mutating func lay(fixed value: inout UInt32) { self.write(fixed: value) }
    package mutating func lay(fixed value: inout UInt64) { self.write(fixed: value) }
    package mutating func lay(name value: inout UInt128) { self.write(name: value) }
    package mutating func lay(_ value: inout String) { self.write(text: value) }
    package mutating func lay(_ value: inout Bytes) { self.write(prefixed: value) }

    package mutating func lay<Value: FormValue>(_ list: inout [Value], atMost max: Int) {
        self.write(count: list.count)
        for place in list.indices { list[place].lay(in: &self) }
    }

    package mutating func lay<Value>(
        _ value: inout Value, by write: (inout ByteWriter, Value) -> Void,
        _ read: (inout ByteReader) throws(DecodingError) -> Value
    ) { write(&self, value) }

    package mutating func require(_ holds: @autoclosure () -> Bool) {}

    /// A value in the middle of what is written by hand.
    package mutating func write(form value: some FormValue) {
        var value = value
        value.lay(in: &self)
    }
}

extension ByteReader: Form {
    package typealias Problem = DecodingError

    package mutating func lay(byte value: inout UInt8) throws(DecodingError) {
        value = try self.byte()
    }

    package mutating func lay(_ value: inout Bool) throws(DecodingError) {
        value = try self.flag()
    }

    package mutating func lay(_ value: inout UInt32) throws(DecodingError) {
        let start = self.offset
        guard let known = UInt32(exactly: try self.varint()) else {
            throw DecodingError(.malformed, at: start)
        }
        value = known
    }

    package mutating func lay(_ value: inout UInt64) throws(DecodingError) {
        value = try self.varint()
    }

    package mutating func lay(_ value: inout Int64) throws(DecodingError) {
        value = try self.signed()
    }

    package mutating func lay(fixed value: inout UInt32) throws(DecodingError) {
        value = try self.fixed32()
    }

    package mutating func lay(fixed value: inout UInt64) throws(DecodingError) {
        value = try self.fixed64()
    }

    package mutating func lay(name value: inout UInt128) throws(DecodingError) {
        value = try self.name()
    }

    package mutating func lay(_ value: inout String) throws(DecodingError) {
        value = try self.text()
    }

    package mutating func lay(_ value: inout Bytes) throws(DecodingError) {
        value = try self.prefixed()
    }

    /// Elements at first, so that a false count reserves little: the rest doubles as it comes.
    private static let reservedCount = 32

    package mutating func lay<Value: FormValue>(_ list: inout [Value], atMost max: Int)
        throws(DecodingError)
    {
        let start = self.offset
        let count = try self.count()
        guard count <= max else { throw DecodingError(.malformed, at: start) }
        list = []
        list.reserveCapacity(min(count, Self.reservedCount))
        for _ in 0..<count { list.append(try self.form(Value.self)) }
    }

    package mutating func lay<Value>(
        _ value: inout Value, by write: (inout ByteWriter, Value) -> Void,
        _ read: (inout ByteReader) throws(DecodingError) -> Value
    ) throws(DecodingError) { value = try read(&self) }

    package mutating func require(_ holds: @autoclosure () -> Bool) throws(DecodingError) {
        guard holds() else { throw DecodingError(.malformed, at: self.offset) }
    }

    /// A value in the middle of what is read by hand.
    package mutating func form<Value: FormValue>(_ type: Value.Type) throws(DecodingError) -> Value
    {
        var value = Value()
        try value.lay(in: &self)
        return value
    }
}
