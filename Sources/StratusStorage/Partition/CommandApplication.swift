package import StratusModel
package import StratusRows

/// Applies commands exactly once: checks the deadline first, then the remembered outcomes, then the
/// state.
///
/// The partition store applies everything through it. Mail is the exception: its own numbers apply
/// it once, so it has no deadline and is not remembered.
package struct CommandApplication<State: ReplicatedState>: Sendable {
    package var state: State
    private var requests: RequestTable

    /// Not yet taken by ``takeForgotten()``.
    private var hasForgotten = false

    private let bugs: PlantedBugs

    /// - Parameter rememberedCountMax: the same on every replica.
    package init(
        _ state: State, rememberedCountMax: Int = RequestTable.countMax,
        bugs: PlantedBugs = PlantedBugs()
    ) {
        self.state = state
        self.requests = RequestTable(countMax: rememberedCountMax)
        self.bugs = bugs
    }

    package var rememberedCount: Int { self.requests.count }

    /// - Throws: only what `rows` threw. Roll back, then call ``forget()``.
    package mutating func apply(
        _ command: Command, at position: EntryPosition, over rows: Rows
    ) throws(StoreError) -> Outcome {
        try self.requests.cleanUp(at: position, in: rows, bugs: self.bugs)
        if command.kind == .mail {
            return try self.state.apply(command, at: position, over: rows)
        }
        guard
            position.time.milliseconds <= command.deadlineMilliseconds
                || self.bugs.contains(.deadlineIgnored)
        else {
            return .expired(at: position.time)
        }
        if let known = try self.requests.outcome(
            of: command.identity, at: position.time, in: rows.view),
            !self.bugs.contains(.identityNotAsked)
        {
            return known
        }
        if let floor = try self.requests.floor(over: command.deadlineMilliseconds, in: rows.view) {
            return .expired(at: floor)
        }
        if self.state.forgetsOutcomes(command) {
            try self.requests.forgetExpired(at: position.time, in: rows)
            self.hasForgotten = true
        }
        let outcome = try self.state.apply(command, at: position, over: rows)
        try self.requests.remember(
            outcome, of: command.identity, deadlineMilliseconds: command.deadlineMilliseconds,
            in: rows)
        return outcome
    }

    package mutating func forget() {
        self.state.forget()
        self.requests.forget()
        self.hasForgotten = false
    }

    /// Whether a command said since the last call that outcomes are to be forgotten.
    package mutating func takeForgotten() -> Bool {
        defer { self.hasForgotten = false }
        return self.hasForgotten
    }
}
