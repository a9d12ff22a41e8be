import StratusCoding
package import StratusModel
package import StratusSealing

/// The values of encrypted fields of the records of one answer, opened.
package struct OpenedFields: Sendable {
    /// Why a value is not among those that opened.
    package enum Closure: Sendable, Equatable {
        /// It was not sealed for its place under the key that its database has, or that key itself
        /// does not open. Another try changes nothing.
        case damaged
        /// The database does not have the key. An erasure may have destroyed it meanwhile.
        case keyGone
    }

    /// By their sealed bytes, which no two places share.
    private var values: [Bytes: FieldValue] = [:]
    private var closures: [Bytes: Closure] = [:]

    package static let none = OpenedFields()

    package init() {}

    /// Nil for what is not a sealed value, did not open, or was not among the records.
    package func value(of field: Field) -> FieldValue? {
        guard case .sealed(_, let sealed) = field.value else { return nil }
        return self.values[sealed]
    }

    /// The fields of a record that were to be opened and did not open, in its order.
    package func closed(of record: Record) -> [(field: String, why: Closure)] {
        if self.closures.isEmpty { return [] }
        return record.fields.compactMap { field in
            guard case .sealed(_, let sealed) = field.value, let why = self.closures[sealed] else {
                return nil
            }
            return (field.name, why)
        }
    }

    /// Whether a value did not open because its key is gone.
    package var lacksKeys: Bool { self.closures.values.contains(.keyGone) }

    fileprivate mutating func insert(_ value: FieldValue, for sealed: Bytes) {
        self.values[sealed] = value
    }

    fileprivate mutating func close(_ sealed: Bytes, because why: Closure) {
        self.closures[sealed] = why
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
    /// and version among them. A value that does not open is noted, and keeps no other back.
    ///
    /// - Parameters:
    ///   - sealer: one that is at hand: for what it sealed no row is read.
    ///   - database: of a record, with its bucket.
    /// - Throws: where a key cannot be read now, or this node lacks the keys of the container.
    package func open(
        _ records: [Record], with sealer: FieldSealer? = nil, in database: (Record) -> DatabaseID
    ) async throws(RouteError) -> OpenedFields {
        struct Name: Hashable {
            var database: DatabaseID
            var version: UInt32
        }
        enum Known {
            case opens(FieldSealer)
            case closed(OpenedFields.Closure)
        }
        var known: [Name: Known] = [:]
        if let sealer {
            known[Name(database: sealer.database, version: sealer.version)] = .opens(sealer)
        }
        var opened = OpenedFields()
        for record in records {
            for field in record.fields {
                guard case .sealed(let type, let sealed) = field.value else { continue }
                guard let version = try? SealedFieldCoding.keyVersion(of: sealed) else {
                    opened.close(sealed, because: .damaged)
                    continue
                }
                let name = Name(database: database(record), version: version)
                if known[name] == nil {
                    known[name] =
                        switch try await self.reading(version, of: name.database) {
                        case .opens(let key):
                            .opens(
                                FieldSealer(
                                    databaseKey: key, version: version, database: name.database))
                        case .damaged: .closed(.damaged)
                        case .none: .closed(.keyGone)
                        }
                }
                switch known[name] {
                case .opens(let sealer)?:
                    let place = FieldPlace(
                        zone: record.zone.name, record: record.name, field: field.name)
                    if let value = sealer.open(sealed, as: type, at: place) {
                        opened.insert(value, for: sealed)
                    } else {
                        opened.close(sealed, because: .damaged)
                    }
                case .closed(let why)?: opened.close(sealed, because: why)
                case nil: continue
                }
            }
        }
        return opened
    }
}
