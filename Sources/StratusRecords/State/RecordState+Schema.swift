import StratusModel

extension RecordState {
    /// Changes the copy of a container's schema that this partition holds.
    mutating func apply(
        _ change: SchemaCommand, of command: Command, over rows: inout some RowStore
    ) throws(StoreError) -> RecordOutcome {
        let held = try self.cache.schema(command.container, over: rows)
        switch change {
        case .install(let schema):
            let heldVersion = held?.schema.version ?? 0
            guard schema.version > heldVersion else { return .schema(version: heldVersion) }
            let isEmpty = try Self.hasNoDatabase(of: command.container, over: rows)
            var indexed = held ?? IndexedSchema()
            _ = indexed.install(schema, isEmpty: isEmpty)
            try rows.put(.schema, Keys.schema(command.container), indexed.encoded())
            self.cache.remember(indexed, of: command.container)
            return .schema(version: schema.version)
        case .extend(let types):
            return .refused(RequestRefusal(.schemaConflict, "\(types.count) types"))
        }
    }

    private static func hasNoDatabase(
        of container: ContainerReference, over rows: borrowing some RowReader
    ) throws(StoreError) -> Bool {
        for scope in [DatabaseScope.public, .private] {
            let prefix = Keys.databases(of: container, scope)
            let found = try rows.keys(
                .database, from: prefix, to: Keys.end(of: prefix), limit: 1)
            if !found.isEmpty { return false }
        }
        return true
    }
}
