import StratusCoding
package import StratusModel

// Sealed content of a field, format 1
//
// The key is HKDF-SHA-256(database key, info: `stratus field 1`). It seals as `TokenCipher` does:
// 16 bytes of synthetic IV, then the value under AES-256-CTR. Its circumstances are:
//
// | bytes  | what                                                |
// | ------ | --------------------------------------------------- |
// | text   | `stratus sealed field 1`                            |
// | text   | container                                           |
// | 1, 1   | environment, scope                                  |
// | text   | owner                                               |
// | text   | zone's name                                         |
// | text   | record's name                                       |
// | text   | field's name                                        |
// | 1      | shape of the value, as in `ValueCoding.swift`       |
// | 4      | key version                                         |

/// Which field of which record a value is sealed for.
package struct FieldPlace: Sendable, Hashable {
    package var zone: String
    package var record: String
    package var field: String

    package init(zone: String, record: String, field: String) {
        self.zone = zone
        self.record = record
        self.field = field
    }
}

/// Seals and opens the values of encrypted fields of one database, under one version of its key.
///
/// The IV is made of the value and its place. So equal values of one field of one record are equal
/// when sealed, and a repeated create is still equal. Nothing else is equal, and no nonce repeats
/// for another text. The size of a value can be seen.
package struct FieldSealer: Sendable {
    private let cipher: TokenCipher
    package let database: DatabaseID
    package let version: UInt32

    /// - Parameter databaseKey: 32 bytes, of that version.
    package init(databaseKey: SecretBytes, version: UInt32, database: DatabaseID) {
        precondition(databaseKey.count == 32, "a database key has 32 bytes")
        precondition(version > 0, "version 0 seals nothing")
        let key = KeyDerivation.derive(from: databaseKey, info: Bytes("stratus field 1".utf8))
        self.cipher = TokenCipher(key: key.withBytes { Bytes($0) })
        self.database = database
        self.version = version
    }

    /// - Returns: the value as a row holds it.
    package func seal(_ value: FieldValue, at place: FieldPlace) -> FieldValue {
        var type = value.type
        precondition(!type.isEncrypted, "a value is sealed once")
        type.isEncrypted = true
        var writer = ByteWriter(reserving: 256)
        writer.write(value)
        let content = self.cipher.seal(writer.bytes, for: self.circumstances(type, place))
        return .sealed(
            type, SealedFieldCoding.bytes(keyVersion: self.version, content: content))
    }

    /// Nil for anything that was not sealed for this place, as this type, under this key.
    package func open(_ sealed: Bytes, as type: FieldType, at place: FieldPlace) -> FieldValue? {
        guard let version = try? SealedFieldCoding.keyVersion(of: sealed), version == self.version,
            let content = self.cipher.open(
                Bytes(sealed.dropFirst(SealedFieldCoding.headSize)),
                for: self.circumstances(type, place))
        else { return nil }
        var reader = ByteReader(content)
        guard let value = try? reader.fieldValue(), (try? reader.finish()) != nil,
            FieldType(value.type.scalar, isList: value.type.isList, isEncrypted: true) == type
        else { return nil }
        return value
    }

    private func circumstances(_ type: FieldType, _ place: FieldPlace) -> Bytes {
        var writer = ByteWriter(reserving: 256)
        writer.write(text: "stratus sealed field 1")
        writer.write(text: self.database.container.container)
        writer.write(self.database.container.environment.rawValue)
        writer.write(self.database.scope.rawValue)
        writer.write(text: self.database.owner)
        writer.write(text: place.zone)
        writer.write(text: place.record)
        writer.write(text: place.field)
        writer.write(type)
        writer.write(fixed: self.version)
        return writer.bytes
    }
}
