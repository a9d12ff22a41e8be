/// The type of a field, with CloudKit's tag. The raw value is on disk for ever.
package enum ScalarType: UInt8, Sendable, Hashable, CaseIterable {
    case string = 1
    case int64 = 2
    case double = 3
    case timestamp = 4
    case bytes = 5
    case location = 6
    case reference = 7
    case asset = 8

    /// The type's name in responses; lists add `_LIST`.
    package var tag: String {
        switch self {
        case .string: "STRING"
        case .int64: "INT64"
        case .double: "DOUBLE"
        case .timestamp: "TIMESTAMP"
        case .bytes: "BYTES"
        case .location: "LOCATION"
        case .reference: "REFERENCE"
        case .asset: "ASSETID"
        }
    }
}

package struct FieldType: Sendable, Hashable {
    package var scalar: ScalarType
    package var isList: Bool
    /// Declared `ENCRYPTED`: stored sealed, never queryable.
    package var isEncrypted: Bool

    package init(_ scalar: ScalarType, isList: Bool = false, isEncrypted: Bool = false) {
        self.scalar = scalar
        self.isList = isList
        self.isEncrypted = isEncrypted
    }
}

/// One value of a scalar type.
package enum Scalar: Sendable, Hashable {
    case string(String)
    case int64(Int64)
    /// Never NaN or infinite: JSON cannot say them, so no client can have sent them.
    case double(Double)
    /// Milliseconds since 1970.
    case timestamp(Int64)
    case bytes(Bytes)
    case location(Location)
    case reference(Reference)
    case asset(AssetReference)

    package var type: ScalarType {
        switch self {
        case .string: .string
        case .int64: .int64
        case .double: .double
        case .timestamp: .timestamp
        case .bytes: .bytes
        case .location: .location
        case .reference: .reference
        case .asset: .asset
        }
    }
}

/// The value of a field. A cleared field is absent: no value stands for "nothing".
package enum FieldValue: Sendable, Hashable {
    case scalar(Scalar)
    /// Every element has the list's type; the list may be empty.
    case list(ScalarType, [Scalar])
    /// A value of an encrypted field, sealed by the gateway; the state never looks inside.
    case sealed(FieldType, Bytes)

    package var type: FieldType {
        switch self {
        case .scalar(let scalar): FieldType(scalar.type)
        case .list(let element, _): FieldType(element, isList: true)
        case .sealed(let type, _): type
        }
    }
}

/// A place. Only what the client sent is kept.
package struct Location: Sendable, Hashable {
    package var latitude: Double
    package var longitude: Double
    package var horizontalAccuracy: Double?
    package var verticalAccuracy: Double?
    package var altitude: Double?
    package var speed: Double?
    package var course: Double?
    /// Milliseconds since 1970.
    package var timestamp: Int64?

    package init(latitude: Double, longitude: Double) {
        self.latitude = latitude
        self.longitude = longitude
    }
}

package struct Reference: Sendable, Hashable {
    package enum Action: UInt8, Sendable, Hashable {
        case none = 0
        /// Deleting the target deletes the record that holds this.
        case deleteSelf = 1
        /// The target must exist when this is written, and cannot be deleted while this exists.
        case validate = 2
    }
    package var recordName: String
    /// The zone, always present: the gateway fills in the referring record's zone if the client
    /// named none.
    package var zone: ZoneID
    package var action: Action

    package init(recordName: String, zone: ZoneID, action: Action) {
        self.recordName = recordName
        self.zone = zone
        self.action = action
    }
}

package struct AssetReference: Sendable, Hashable {
    /// The checksum from the client's receipt: base64 text.
    package var fileChecksum: String
    package var size: Int64
    /// The asset, from the receipt that the gateway opened. In a command nil stands for
    /// the asset of that checksum and size which the field holds already. In a stored record
    /// only a value that was never resolved has none.
    package var asset: AssetID?
    /// In a command the ``UploadID`` of the receipt, as text: the save ends its pin.
    package var receipt: String?
    package var referenceChecksum: String?
    package var wrappingKey: String?

    package init(
        fileChecksum: String, size: Int64, asset: AssetID? = nil, receipt: String? = nil,
        referenceChecksum: String? = nil, wrappingKey: String? = nil
    ) {
        self.asset = asset
        self.fileChecksum = fileChecksum
        self.size = size
        self.receipt = receipt
        self.referenceChecksum = referenceChecksum
        self.wrappingKey = wrappingKey
    }
}
