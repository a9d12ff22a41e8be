package import StratusModel
package import StratusRows

/// The reference state, where to remove a register erases it: with its changes in the feed, as
/// records are erased with theirs.
///
/// Registers whose names begin with "slow" are erased in two steps: to remove one leaves a job, and
/// to remove the register "jobs" does all jobs. To remove "outcomes" forgets outcomes.
package struct ErasingState: ReplicatedState {
    private var registers = RegisterState()
    private var hasErased = false

    package init() {}

    package mutating func apply(
        _ command: Command, at position: EntryPosition, over rows: Rows
    ) throws(StoreError) -> Outcome {
        guard case .remove(let register)? = try? RegisterCommand(decoding: command.body) else {
            return try self.registers.apply(command, at: position, over: rows)
        }
        if register == Bytes("jobs".utf8) {
            for (key, row) in try Self.all(.job, over: rows.view) {
                try Self.erase(row, over: rows)
                try rows.remove(.job, key.span.bytes)
            }
            return Outcome(.decided)
        }
        if register == Bytes("outcomes".utf8) { return Outcome(.decided) }
        self.hasErased = true
        guard register.starts(with: Bytes("slow".utf8)) else {
            try Self.erase(register, over: rows)
            return Outcome(.decided)
        }
        var key = Bytes()
        for shift in stride(from: UInt64(56), through: 0, by: -8) {
            key.append(UInt8(truncatingIfNeeded: position.index.raw >> shift))
        }
        try rows.put(.job, key.span.bytes, register.span.bytes)
        return Outcome(.decided)
    }

    private static func erase(_ register: Bytes, over rows: Rows)
        throws(StoreError)
    {
        try rows.remove(.record, register.span.bytes)
        for (key, row) in try Self.all(.feed, over: rows.view)
        where row.dropFirst().starts(with: register) {
            try rows.remove(.feed, key.span.bytes)
        }
    }

    private static func all(_ table: Table, over rows: RowView)
        throws(StoreError) -> [(key: Bytes, row: Bytes)]
    {
        var found: [(key: Bytes, row: Bytes)] = []
        try rows.scan(
            table, from: Bytes().span.bytes, to: Bytes().span.bytes, descending: false
        ) { key, row in
            found.append((Bytes(copying: key), Bytes(copying: row)))
            return .next
        }
        return found
    }

    package func answer(_ query: Query, over rows: RowView) throws(StoreError)
        -> QueryAnswer
    { try self.registers.answer(query, over: rows) }

    package mutating func forget() {
        self.registers.forget()
        self.hasErased = false
    }

    package func forgetsOutcomes(_ command: Command) -> Bool {
        (try? RegisterCommand(decoding: command.body)) == .remove(Bytes("outcomes".utf8))
    }

    package mutating func takeErased() -> Bool {
        defer { self.hasErased = false }
        return self.hasErased
    }

    package func removing(over rows: RowView) throws(StoreError)
        -> ClosedRange<UInt64>?
    {
        let numbers = try Self.all(.job, over: rows).map {
            $0.key.reduce(0) { $0 << 8 | UInt64($1) }
        }
        guard let least = numbers.first, let greatest = numbers.last else { return nil }
        return least...greatest
    }
}
