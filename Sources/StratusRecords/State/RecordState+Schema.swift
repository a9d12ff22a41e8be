import StratusCoding
import StratusModel

extension RecordState {
    /// Changes the copy of a container's schema that this partition holds.
    mutating func apply(
        _ change: SchemaCommand, of command: Command, over rows: inout some RowStore
    ) throws(StoreError) -> RecordOutcome {
        let held = try self.cache.schema(command.container, over: rows)
        switch change {
        case .install(let schema):
            guard schema.version > held?.version ?? 0 else {
                return .schema(version: held?.version ?? 0)
            }
            try self.write(schema, of: command.container, into: &rows)
            return .schema(version: schema.version)
        case .extend(let types):
            return .refused(RequestRefusal(.schemaConflict, "\(types.count) types"))
        }
    }

    private mutating func write(
        _ schema: Schema, of container: ContainerReference, into rows: inout some RowStore
    ) throws(StoreError) {
        var writer = ByteWriter(reserving: 1_024)
        writer.write(schema)
        try rows.put(.schema, Keys.schema(container), writer.bytes)
        self.cache.remember(schema, of: container)
    }
}
