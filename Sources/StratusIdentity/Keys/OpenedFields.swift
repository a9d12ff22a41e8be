package import StratusCluster
import StratusCoding
package import StratusModel
package import StratusSealing

/// The values of encrypted fields of the records of one answer, opened.
package struct OpenedFields: Sendable {
    /// By their sealed bytes, which no two places share.
    private var values: [Bytes: FieldValue] = [:]

    package static let none = OpenedFields()

    package init() {}

    /// Nil for what is not a sealed value, or was not among the records.
    package func value(of field: Field) -> FieldValue? {
        guard case .sealed(_, let sealed) = field.value else { return nil }
        return self.values[sealed]
    }

    fileprivate mutating func insert(_ value: FieldValue, for sealed: Bytes) {
        self.values[sealed] = value
    }
}

extension DatabaseKeys {
    /// What seals the encrypted fields of a database from now on. A key is made if there is none.
    package func fieldSealer(of database: DatabaseID) async throws(RouteError) -> FieldSealer {
        let sealing = try await self.sealing(of: database)
        return FieldSealer(
            databaseKey: sealing.key, version: sealing.version, database: database)
    }

    /// Opens every encrypted field of `records`. The row of a key is read once for each database
    /// and version among them.
    ///
    /// - Parameter database: of a record, with its bucket.
    /// - Throws: `notExecuted` where a key is gone: the database was erased meanwhile.
    package func open(
        _ records: [Record], in database: (Record) -> DatabaseID
    ) async throws(RouteError) -> OpenedFields {
        struct Name: Hashable {
            var database: DatabaseID
            var version: UInt32
        }
        var sealers: [Name: FieldSealer] = [:]
        var opened = OpenedFields()
        for record in records {
            for field in record.fields {
                guard case .sealed(let type, let sealed) = field.value else { continue }
                guard let version = try? SealedFieldCoding.keyVersion(of: sealed) else {
                    throw .unreadable
                }
                let name = Name(database: database(record), version: version)
                let sealer: FieldSealer
                if let known = sealers[name] {
                    sealer = known
                } else {
                    guard let key = try await self.key(version, of: name.database) else {
                        throw .notExecuted(retryAfter: .seconds(1))
                    }
                    sealer = FieldSealer(
                        databaseKey: key, version: version, database: name.database)
                    sealers[name] = sealer
                }
                let place = FieldPlace(
                    zone: record.zone.name, record: record.name, field: field.name)
                guard let value = sealer.open(sealed, as: type, at: place) else {
                    throw .unreadable
                }
                opened.insert(value, for: sealed)
            }
        }
        return opened
    }
}
