import StratusCoding
import StratusModel
import StratusQuery
import StratusRows

extension RecordState {
    /// Changes the copy of a container's schema that this partition holds.
    mutating func apply(
        _ change: SchemaCommand, of command: Command, over rows: Rows
    ) throws(StoreError) -> RecordOutcome {
        let held = try self.cache.schema(command.container, over: rows.view)
        switch change {
        case .install(let schema):
            let heldVersion = held?.schema.version ?? 0
            guard schema.version > heldVersion else { return .schema(version: heldVersion) }
            if let reason = SchemaRules.check(schema) {
                return .refused(RequestRefusal(.schemaConflict, reason))
            }
            return try self.install(schema, over: held, of: command.container, rows: rows)
        case .extend(let types):
            let schema = held?.schema ?? Schema()
            if command.container.environment == .production,
                let reason = Self.productionRefusal(schema, types)
            {
                return .refused(RequestRefusal(.schemaConflict, reason))
            }
            switch SchemaRules.extending(schema, with: types) {
            case .failure(let refusal):
                return .refused(RequestRefusal(.schemaConflict, refusal.text))
            case .success(let extended) where extended.version == schema.version:
                return .schema(version: schema.version)
            case .success(let extended):
                return try self.install(extended, over: held, of: command.container, rows: rows)
            }
        }
    }

    /// Takes a newer schema, and leaves to jobs what its indexes ask for.
    private mutating func install(
        _ schema: Schema, over held: IndexedSchema?, of container: ContainerReference,
        rows: Rows
    ) throws(StoreError) -> RecordOutcome {
        let isReset = held.map { SchemaRules.isReset(from: $0.schema, to: schema) } ?? false
        // In development a field may come back with another type: what records hold of the old one
        // is cleared. Production loses no value.
        let retyped = isReset ? nil : held?.conflict(with: schema)
        if let retyped, container.environment == .production {
            return .refused(RequestRefusal(.schemaConflict, retyped))
        }
        let isEmpty = isReset ? true : try Self.hasNoRecord(of: container, over: rows.view)
        var indexed = held ?? IndexedSchema()
        let dropped = indexed.install(
            schema,
            over: isReset ? .erased : isEmpty ? .none : held == nil ? .unchecked : .checked)
        try rows.put(.schema, Keys.schema(container), indexed.encoded())
        self.cache.remember(indexed, of: container)
        if !indexed.building.isEmpty {
            // From the beginning, also where one is under way: it has to see the new indexes
            // everywhere.
            let job = IndexJob(.fill, container)
            try rows.put(.job, job.key, job.encoded())
        }
        if retyped != nil, !isEmpty {
            let job = IndexJob(.clear, container)
            try rows.put(.job, job.key, job.encoded())
        }
        if !dropped.isEmpty, !isEmpty {
            let job = IndexJob(.drop, container, numbers: dropped.map(\.number))
            try rows.put(.job, job.key, job.encoded())
        }
        return .schema(version: schema.version)
    }

    /// Production grows by promotion only.
    private static func productionRefusal(_ schema: Schema, _ types: [RecordType]) -> String? {
        for type in types {
            guard let known = schema.type(named: type.name) else {
                return "Cannot create new type \(type.name) in production schema"
            }
            if let field = type.fields.first(where: { known.field(named: $0.name) == nil }) {
                return "Cannot create or modify field '\(field.name)' in record '\(type.name)'"
                    + " in production schema"
            }
        }
        return nil
    }

    /// Zones looked at to find out; a container with more is taken to have records.
    private static let emptyZoneCountMax = 1_000

    /// Whether no live zone of the container holds a live record: there is nothing to index then.
    /// Deleted zones are purged with their index rows.
    private static func hasNoRecord(
        of container: ContainerReference, over rows: RowView
    ) throws(StoreError) -> Bool {
        var rest = Self.emptyZoneCountMax
        for scope in [DatabaseScope.public, .private] {
            let prefix = Keys.databases(of: container, scope)
            for (_, row) in try rows.rows(
                .database, from: prefix, to: Keys.end(of: prefix), limit: rest)
            {
                let database = try decodingRow("database") { () throws(DecodingError) in
                    try DatabaseRow(decoding: row)
                }
                let zones = Keys.zonePrefix(database.number)
                let found = try rows.rows(
                    .zone, from: zones, to: Keys.end(of: zones), limit: rest)
                for (_, row) in found {
                    let zone = try StoredRows.zone(decoding: row)
                    if !zone.isDeleted, zone.recordCount > 0 { return false }
                }
                rest -= max(1, found.count)
                if rest <= 0 { return false }
            }
        }
        return true
    }
}
