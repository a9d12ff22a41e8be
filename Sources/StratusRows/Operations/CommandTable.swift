import StratusCoding
package import StratusModel

/// The operations of a state. It is asked by the number in a command's body: applying is one
/// indirect call, and no value lies in an existential.
package struct CommandTable<State: OperationState>: Sendable {
    package struct Row: Sendable {
        package let type: any PartitionOperation<State>.Type
        fileprivate let bringsLevels: Bool
        fileprivate let apply:
            @Sendable (Bytes, inout State, borrowing EntryContext, Rows) throws(StoreError)
                -> Outcome

        package static func of<Operation: PartitionOperation>(_ type: Operation.Type) -> Row
        where Operation.State == State {
            Row(type: type, bringsLevels: type is any LevelledContent.Type) {
                (body, state, entry, rows) throws(StoreError) in
                guard
                    let operation = try? CommandTable.read(
                        type, body, container: entry.container,
                        isWhole: !entry.bugs.contains(.operationReadsPastItsForm))
                else { return Outcome(.unreadable) }
                let refusal = try State.refusal(
                    of: entry.principal, needing: operation.need, in: operation.head.database,
                    over: rows.view)
                let result: Result<Operation.Outcome, State.Refusal> =
                    if let refusal { .failure(refusal) } else {
                        try operation.apply(in: &state, at: entry, over: rows)
                    }
                let isOther = entry.bugs.contains(.outcomeOfOtherKind)
                return Outcome(
                    .decided,
                    body: Reply.encoded(result, to: Operation.number + (isOther ? 1 : 0)))
            }
        }
    }

    package let rows: [Row]
    private let places: [Row?]

    /// - Parameter family: where the numbers of its operations are registered.
    package init(_ family: NumberFamily, _ rows: Row...) {
        let faults = Self.faults(of: rows.map(\.type), in: family)
        precondition(faults.isEmpty, "\(faults)")
        self.rows = rows
        var places = [Row?](repeating: nil, count: 256)
        for row in rows { places[Int(row.type.number)] = row }
        self.places = places
    }

    /// What is wrong with a list of operations.
    package static func faults(
        of types: [any PartitionOperation<State>.Type], in family: NumberFamily
    ) -> [String] {
        var faults: [String] = []
        for type in types {
            if family.level(of: type.number) != type.level {
                faults.append("\(type): \(family.name) \(type.number) is not of its level")
            }
            if types.filter({ $0.number == type.number }).count > 1 {
                faults.append("\(type): \(type.number) is the number of another one")
            }
            var fits = false
            if case .entry(let units) = type.bound {
                fits = (1...type.bound.unitsMax).contains(units)
            }
            if !fits { faults.append("\(type): \(type.bound) is no bound of an operation") }
        }
        return faults
    }

    /// The operation of a command's body, by its number alone. Nil: it is none of the table.
    package func row(of body: Bytes) -> Row? {
        body.count > 1 ? self.places[Int(body[1])] : nil
    }

    /// The operation in a command, for who looks at it without applying it. Nil: it is none of the
    /// table, or cannot be read.
    package func operation(in command: Command) -> (any PartitionOperation<State>)? {
        guard let row = self.row(of: command.body) else { return nil }
        return try? Self.read(row.type, command.body, container: command.container)
    }

    /// The builds that can read what a command brings into rows.
    package func reading(ofRowsIn command: Command) -> CommandReading {
        guard let row = self.row(of: command.body), row.bringsLevels else {
            return .readable(since: .one)
        }
        do throws(DecodingError) {
            let operation: any PartitionOperation = try Self.read(
                row.type, command.body, container: command.container)
            return .readable(since: (operation as? any LevelledContent)?.contentLevel ?? .one)
        } catch {
            if case .unknownNumber(let family, let number) = error.kind {
                return .newer("\(family) \(number)")
            }
            return .malformed
        }
    }

    /// - Parameter isWhole: whether the body must end where the operation does.
    private static func read<Operation: PartitionOperation>(
        _ type: Operation.Type, _ body: Bytes, container: ContainerReference,
        isWhole: Bool = true
    ) throws(DecodingError) -> Operation where Operation.State == State {
        var reader = ByteReader(body)
        let operation = try Operation(from: &reader, container: container)
        if isWhole { try reader.finish() }
        return operation
    }
}

extension CommandTable.Row {
    /// Nothing is applied that its caller may not do.
    package func apply(
        _ command: Command, in state: inout State, at entry: borrowing EntryContext,
        over rows: Rows
    ) throws(StoreError) -> Outcome { try self.apply(command.body, &state, entry, rows) }
}
