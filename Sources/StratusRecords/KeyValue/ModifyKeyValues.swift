package import StratusCoding
package import StratusModel
package import StratusRows

/// A batch of changes that one device made to the key-value store of its user.
///
/// A device says when each change was made and what time it is now, both by its own clock. Only the
/// difference counts, so the clock itself may be wrong by years.
package struct ModifyKeyValues: WholeDatabaseOperation, Equatable {
    package static let number: UInt8 = 13
    /// Each change reads and writes a record, its row in the feed and its removal.
    package static let bound = WorkBound.entry(40_000)
    /// The tombstones that a store keeps for clients that follow it.
    private static let tombstoneCountMin = 4_096

    /// Of the user whose store it is.
    package var database = DatabaseID()
    /// See ``KeyValueStore/isDevice(_:)``.
    package var device = ""
    /// Grows with every batch of the device. One that does not is a repeat.
    package var batch: UInt64 = 0
    /// The time of sending, by the device's clock.
    package var nowMilliseconds: Int64 = 0
    /// The device has not heard anything of the store yet: keys that have a value keep it.
    package var isFirst = false
    /// The incarnation of the zone, should this be its first write.
    package var drawnIncarnation = ZoneIncarnation(0)
    package var rules = KeyValueRules()
    package var changes: [Change] = []

    package struct Change: FormValue, Sendable, Equatable {
        package var key = ""
        /// When it was made, by the device's clock.
        package var atMilliseconds: Int64 = 0
        /// An encoded property list; nil removes the key.
        package var value: Bytes?

        package init() {}

        package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
            try form.lay(&self.key)
            try form.lay(&self.atMilliseconds)
            try form.lay(&self.value)
        }
    }

    package init() {}

    package var payer: Payer { .owner(of: self.database) }
    package var need: AccessNeed { .owner }
    package var adds: Bool { self.changes.contains { $0.value != nil } }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.device)
        try form.lay(&self.batch)
        try form.lay(&self.nowMilliseconds)
        try form.lay(&self.isFirst)
        try form.lay(fixed: &self.drawnIncarnation.raw)
        try form.lay(&self.rules)
        // One more than it takes is told so.
        try form.lay(&self.changes, atMost: KeyValueStore.changeCountMax + 1)
    }

    package func apply(
        in state: inout RecordState, at entry: borrowing EntryContext, over rows: Rows
    ) throws(StoreError) -> Result<ModifiedKeyValues, RequestRefusal> {
        if let refusal = self.refusal { return .failure(refusal) }
        var numbers = NumberDraw()
        let place = try state.place(
            of: ZoneID.keyValueName, in: self.database, drawn: self.drawnIncarnation,
            &numbers, over: rows.view)
        let device = try KeyValueStore.device(
            self.device, of: place.zone.number, over: rows.view)
        if let device, device.lastBatch >= self.batch, !state.bugs.contains(.batchTakenAgain) {
            return .success(
                ModifiedKeyValues {
                    $0.isRepeat = true
                    if device.lastBatch == self.batch { $0.refused = device.refused }
                })
        }
        let zone = ZoneEdit(
            ZoneID.keyValueName, of: self.database, database: place.database, zone: place.zone,
            at: entry.time, bugs: state.bugs)
        var edit = KeyValueEdit(
            self, zone: zone, principal: entry.principal,
            use: try KeyValueStore.use(of: place.zone.number, over: rows.view))
        var modified = ModifiedKeyValues()
        modified.results = try edit.run(over: rows.view)
        modified.refused = edit.refused
        // Where everything was refused before there was a zone, a repeat is refused as well.
        guard place.isKnown || edit.zone.hasChanges else { return .success(modified) }
        if numbers.isDrawn {
            try numbers.write(into: rows)
            try rows.put(.database, Keys.database(self.database), place.database.encoded())
            state.cache.remember(place.database, of: self.database)
        }
        try edit.flush(isNew: device == nil, into: rows)
        try edit.zone.flush(
            into: rows, cache: &state.cache, schema: nil,
            tombstoneCountMin: min(
                Self.tombstoneCountMin, max(1, Int(self.rules.removedCountMax))))
        return .success(modified)
    }

    private var refusal: RequestRefusal? {
        if self.database.scope != .private { return RequestRefusal(.accessDenied) }
        if self.changes.isEmpty { return RequestRefusal(.empty) }
        if self.changes.count > KeyValueStore.changeCountMax {
            return RequestRefusal(.tooManyItems, String(KeyValueStore.changeCountMax))
        }
        return KeyValueStore.isDevice(self.device) ? nil : RequestRefusal(.queryInvalid, "device")
    }
}

/// The limits that a batch is decided by. They travel in the command, as ``RecordRules`` do.
package struct KeyValueRules: FormValue, Sendable, Hashable {
    /// Keys that have a value.
    package var keyCountMax: UInt32 = 1_024
    /// Bytes of all values, and of one.
    package var sizeMax: UInt32 = 1 << 20
    /// Keys that were removed and are remembered, and as many tombstones of older ones.
    package var removedCountMax: UInt32 = 4_096
    /// Devices whose batches are remembered.
    package var deviceCountMax: UInt32 = 64

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.keyCountMax)
        try form.lay(&self.sizeMax)
        try form.lay(&self.removedCountMax)
        try form.lay(&self.deviceCountMax)
    }
}

/// What the store makes of a batch.
package struct ModifiedKeyValues: FormValue, Sendable, Equatable {
    package enum Result: Sendable, Equatable {
        /// The change stands.
        case taken
        /// The store has a newer one.
        case superseded
        /// The key keeps its value.
        case refused(KeyValueRefusal)
    }

    /// The batch was decided before, and has changed nothing now. `results` is then empty, and
    /// `refused` names what was refused when it was decided.
    package var isRepeat = false
    /// In the order of the changes.
    package var results: [Result] = []
    /// The keys that were refused.
    package var refused: [Refused] = []

    package struct Refused: FormValue, Sendable, Equatable {
        package var key = ""
        package var reason = KeyValueRefusal.keyInvalid

        package init() {}

        package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
            try form.lay(&self.key)
            try form.lay(&self.reason)
        }
    }

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.isRepeat)
        try form.lay(&self.results, atMost: KeyValueStore.changeCountMax)
        try form.lay(&self.refused, atMost: KeyValueStore.changeCountMax)
    }
}

extension ModifiedKeyValues.Result: FormChoice {
    package init() { self = .taken }

    package var number: UInt8 {
        switch self {
        case .taken: 1
        case .superseded: 2
        case .refused: 3
        }
    }

    package init?(number: UInt8) {
        switch number {
        case 1: self = .taken
        case 2: self = .superseded
        case 3: self = .refused(.keyInvalid)
        default: return nil
        }
    }

    package mutating func layFields<F: Form>(in form: inout F) throws(F.Problem) {
        guard case .refused(var reason) = self else { return }
        try form.lay(&reason)
        self = .refused(reason)
    }
}

/// The reason why a key keeps its value. The raw value is in stored outcomes for ever.
package enum KeyValueRefusal: UInt8, Sendable, Hashable, CaseIterable {
    case keyInvalid = 1
    case valueTooLarge = 2
    case storeFull = 3
    case tooManyKeys = 4
}
