package import StratusModel

// Field values, format 1. Part of record rows, commands, answers and stored queries.
//
// A field value is one byte of shape, then what the shape says:
//
// | shape       | follows                                                                     |
// | ----------- | --------------------------------------------------------------------------- |
// | 0x01…0x08   | one scalar of that type (the raw value of `ScalarType`)                       |
// | 0x11…0x18   | a list of that type: count, then the scalars                                |
// | 0x21…0x28   | sealed scalar: prefixed bytes, not looked into                              |
// | 0x31…0x38   | sealed list: prefixed bytes                                                 |
//
// | scalar    | bytes                                                                         |
// | --------- | ----------------------------------------------------------------------------- |
// | string    | text                                                                          |
// | int64     | signed varint                                                                 |
// | double    | 8 bytes, IEEE 754 bit pattern; never NaN or infinite                          |
// | timestamp | signed varint, milliseconds since 1970                                        |
// | bytes     | prefixed bytes                                                                |
// | location  | 1 byte of presence bits (1 horizontal accuracy, 2 vertical accuracy,          |
// |           | 4 altitude, 8 speed, 16 course, 32 timestamp), latitude and longitude as      |
// |           | doubles, then what is present, in that order; the timestamp a signed varint   |
// | reference | 1 byte action, text record name, text zone name, text zone owner              |
// | asset     | 1 byte of presence bits (1 receipt, 2 reference checksum, 4 wrapping key,     |
// |           | 8 asset), text file checksum, signed varint size, then the present texts in   |
// |           | that order, then the asset: 16 bytes, the high one first                      |

extension ByteWriter {
    package mutating func write(_ value: FieldValue) {
        switch value {
        case .scalar(let scalar):
            self.write(scalar.type.rawValue)
            self.write(scalar)
        case .list(let element, let scalars):
            self.write(element.rawValue | 0x10)
            self.write(count: scalars.count)
            for scalar in scalars {
                precondition(scalar.type == element, "a list holds one type")
                self.write(scalar)
            }
        case .sealed(let type, let sealed):
            self.write(type.scalar.rawValue | (type.isList ? 0x30 : 0x20))
            self.write(prefixed: sealed)
        }
    }

    package mutating func write(_ scalar: Scalar) {
        switch scalar {
        case .string(let text): self.write(text: text)
        case .int64(let number): self.write(signed: number)
        case .double(let number):
            precondition(number.isFinite, "no client can have sent this")
            self.write(double: number)
        case .timestamp(let milliseconds): self.write(signed: milliseconds)
        case .bytes(let bytes): self.write(prefixed: bytes)
        case .location(let location): self.write(location)
        case .reference(let reference): self.write(reference)
        case .asset(let asset): self.write(asset)
        }
    }

    package mutating func write(_ location: Location) {
        var presence: UInt8 = 0
        if location.horizontalAccuracy != nil { presence |= 1 }
        if location.verticalAccuracy != nil { presence |= 2 }
        if location.altitude != nil { presence |= 4 }
        if location.speed != nil { presence |= 8 }
        if location.course != nil { presence |= 16 }
        if location.timestamp != nil { presence |= 32 }
        self.write(presence)
        self.write(double: location.latitude)
        self.write(double: location.longitude)
        for part in [
            location.horizontalAccuracy, location.verticalAccuracy, location.altitude,
            location.speed, location.course,
        ] {
            if let part { self.write(double: part) }
        }
        if let timestamp = location.timestamp { self.write(signed: timestamp) }
    }

    package mutating func write(_ reference: Reference) {
        self.write(reference.action.rawValue)
        self.write(text: reference.recordName)
        self.write(text: reference.zone.name)
        self.write(text: reference.zone.owner)
    }

    package mutating func write(_ asset: AssetReference) {
        var presence: UInt8 = 0
        if asset.receipt != nil { presence |= 1 }
        if asset.referenceChecksum != nil { presence |= 2 }
        if asset.wrappingKey != nil { presence |= 4 }
        if asset.asset != nil { presence |= 8 }
        self.write(presence)
        self.write(text: asset.fileChecksum)
        self.write(signed: asset.size)
        if let receipt = asset.receipt { self.write(text: receipt) }
        if let checksum = asset.referenceChecksum { self.write(text: checksum) }
        if let key = asset.wrappingKey { self.write(text: key) }
        if let name = asset.asset { self.write(name: name.raw) }
    }

    /// A drawn name of 128 bits, the high byte first: names sort as their bytes do.
    package mutating func write(name: UInt128) {
        for shift in stride(from: 120, through: 0, by: -8) {
            self.write(UInt8(truncatingIfNeeded: name >> UInt128(shift)))
        }
    }

    package mutating func write(_ type: FieldType) {
        self.write(
            type.scalar.rawValue | (type.isList ? 0x10 : 0) | (type.isEncrypted ? 0x20 : 0))
    }
}

extension ByteReader {
    package mutating func fieldValue() throws(DecodingError) -> FieldValue {
        let type = try self.fieldType()
        if type.isEncrypted { return .sealed(type, try self.prefixed()) }
        guard type.isList else { return .scalar(try self.scalar(type.scalar)) }
        let count = try self.count()
        var scalars: [Scalar] = []
        scalars.reserveCapacity(min(count, 1_024))
        for _ in 0..<count { scalars.append(try self.scalar(type.scalar)) }
        return .list(type.scalar, scalars)
    }

    /// Skips a field's value, and reads no more of it than that needs.
    package mutating func skipFieldValue() throws(DecodingError) {
        let type = try self.fieldType()
        if type.isEncrypted { return try self.skipPrefixed() }
        guard type.isList else { return try self.skipScalar(type.scalar) }
        for _ in 0..<(try self.count()) { try self.skipScalar(type.scalar) }
    }

    private mutating func skipScalar(_ type: ScalarType) throws(DecodingError) {
        switch type {
        case .string, .bytes: try self.skipPrefixed()
        case .int64, .timestamp: _ = try self.varint()
        case .double: try self.skip(8)
        case .location: _ = try self.location()
        case .reference:
            try self.skip(1)
            for _ in 0..<3 { try self.skipPrefixed() }
        case .asset: _ = try self.asset()
        }
    }

    package mutating func fieldType() throws(DecodingError) -> FieldType {
        let shape = try self.byte()
        guard shape & 0xC0 == 0, let scalar = ScalarType(rawValue: shape & 0x0F) else {
            throw DecodingError(.malformed, at: self.offset - 1)
        }
        return FieldType(scalar, isList: shape & 0x10 != 0, isEncrypted: shape & 0x20 != 0)
    }

    package mutating func scalar(_ type: ScalarType) throws(DecodingError) -> Scalar {
        switch type {
        case .string: return .string(try self.text())
        case .int64: return .int64(try self.signed())
        case .double: return .double(try self.finiteDouble())
        case .timestamp: return .timestamp(try self.signed())
        case .bytes: return .bytes(try self.prefixed())
        case .location: return .location(try self.location())
        case .reference: return .reference(try self.reference())
        case .asset: return .asset(try self.asset())
        }
    }

    package mutating func finiteDouble() throws(DecodingError) -> Double {
        let start = self.offset
        let number = try self.double()
        guard number.isFinite else { throw DecodingError(.malformed, at: start) }
        return number
    }

    package mutating func location() throws(DecodingError) -> Location {
        let presence = try self.byte()
        guard presence < 64 else { throw DecodingError(.malformed, at: self.offset - 1) }
        let latitude = try self.finiteDouble()
        var location = Location(latitude: latitude, longitude: try self.finiteDouble())
        if presence & 1 != 0 { location.horizontalAccuracy = try self.finiteDouble() }
        if presence & 2 != 0 { location.verticalAccuracy = try self.finiteDouble() }
        if presence & 4 != 0 { location.altitude = try self.finiteDouble() }
        if presence & 8 != 0 { location.speed = try self.finiteDouble() }
        if presence & 16 != 0 { location.course = try self.finiteDouble() }
        if presence & 32 != 0 { location.timestamp = try self.signed() }
        return location
    }

    package mutating func reference() throws(DecodingError) -> Reference {
        guard let action = Reference.Action(rawValue: try self.byte()) else {
            throw DecodingError(.malformed, at: self.offset - 1)
        }
        let recordName = try self.text()
        let zoneName = try self.text()
        return Reference(
            recordName: recordName, zone: ZoneID(name: zoneName, owner: try self.text()),
            action: action)
    }

    package mutating func asset() throws(DecodingError) -> AssetReference {
        let presence = try self.byte()
        guard presence < 16 else { throw DecodingError(.malformed, at: self.offset - 1) }
        let checksum = try self.text()
        var asset = AssetReference(fileChecksum: checksum, size: try self.signed())
        if presence & 1 != 0 { asset.receipt = try self.text() }
        if presence & 2 != 0 { asset.referenceChecksum = try self.text() }
        if presence & 4 != 0 { asset.wrappingKey = try self.text() }
        if presence & 8 != 0 { asset.asset = AssetID(try self.name()) }
        return asset
    }

    package mutating func name() throws(DecodingError) -> UInt128 {
        var name: UInt128 = 0
        for byte in try self.raw(16) { name = name << 8 | UInt128(byte) }
        return name
    }
}
