package import StratusCoding
package import StratusModel
package import StratusRows

/// Asks for a page of the devices that have sent changes to a key-value store.
package struct KeyValueDevicesAsk: SingleQuestion, DatabaseQuestion, Equatable {
    package static let number: UInt8 = 18
    /// So many rows at a time, each of which names what its device was refused last.
    private static let rowCount = 16
    package static let bound = WorkBound.page(step: 1_000)

    package var database = DatabaseID()
    /// The last device of the page before.
    package var after: String?

    package init() {}

    package var payer: Payer { .owner(of: self.database) }
    package var need: AccessNeed { .owner }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.database)
        try form.lay(&self.after)
    }

    package func answer(
        in state: inout RecordState, to asker: Principal, _ cost: ReadCost, over view: RowView
    ) throws(StoreError) -> Result<KeyValueDevices, RequestRefusal> {
        guard self.database.scope == .private else {
            return .failure(RequestRefusal(.accessDenied))
        }
        var answer = KeyValueDevices()
        guard let zone = try KeyValueStore.zone(of: self.database, &state.cache, over: view) else {
            return .success(answer)
        }
        let start = KeyValueKeys.devices(zone.number)
        var from = self.after.map { start + Bytes($0.utf8) + [0] } ?? start
        while answer.devices.count <= KeyValueDevices.countMax - Self.rowCount {
            let found = try view.rows(
                .reference, from: from, to: Keys.end(of: start), limit: Self.rowCount)
            for (key, row) in found {
                answer.devices.append(try Self.device(Bytes(key.dropFirst(start.count)), row))
                from = key + [0]
            }
            if found.count < Self.rowCount { return .success(answer) }
            if cost.meter.isSpent { break }
        }
        answer.hasMore = true
        return .success(answer)
    }

    private static func device(_ name: Bytes, _ row: Bytes) throws(StoreError) -> KeyValueDevice {
        guard let name = String(validating: name, as: UTF8.self) else {
            throw StoreError(.unreadable, "key-value device")
        }
        let row = try decodingRow("key-value device") { () throws(DecodingError) in
            try KeyValueDeviceRow(decoding: row)
        }
        return KeyValueDevice {
            $0.device = name
            $0.lastBatch = row.lastBatch
            $0.lastSeenMilliseconds = row.lastSeenMilliseconds
        }
    }
}

/// The answer to a ``KeyValueDevicesAsk``.
package struct KeyValueDevices: FormValue, Sendable, Equatable {
    /// The most of one page.
    static let countMax = 256

    /// By name.
    package var devices: [KeyValueDevice] = []
    package var hasMore = false

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.devices, atMost: Self.countMax)
        try form.lay(&self.hasMore)
    }
}

/// One device that has sent changes.
package struct KeyValueDevice: FormValue, Sendable, Equatable {
    package var device = ""
    package var lastBatch: UInt64 = 0
    package var lastSeenMilliseconds: Int64 = 0

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.device)
        try form.lay(&self.lastBatch)
        try form.lay(&self.lastSeenMilliseconds)
    }
}
