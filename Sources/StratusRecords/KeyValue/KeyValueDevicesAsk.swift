package import StratusCoding
package import StratusModel
package import StratusRows

/// Asks for the devices that have sent changes to a key-value store.
package struct KeyValueDevicesAsk: SingleQuestion, DatabaseQuestion, Equatable {
    package static let number: UInt8 = 18
    package static let bound = WorkBound.single(500)

    package var database = DatabaseID()

    package init() {}

    package var payer: Payer { .owner(of: self.database) }
    package var need: AccessNeed { .owner }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.database)
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
        for (key, row) in try view.rows(
            .reference, from: start, to: Keys.end(of: start), limit: KeyValueDevices.countMax)
        {
            guard let name = String(validating: key.dropFirst(start.count), as: UTF8.self) else {
                throw StoreError(.unreadable, "key-value device")
            }
            let row = try decodingRow("key-value device") { () throws(DecodingError) in
                try KeyValueDeviceRow(decoding: row)
            }
            answer.devices.append(
                KeyValueDevice {
                    $0.device = name
                    $0.lastBatch = row.lastBatch
                    $0.lastSeenMilliseconds = row.lastSeenMilliseconds
                })
        }
        return .success(answer)
    }
}

/// The answer to a ``KeyValueDevicesAsk``.
package struct KeyValueDevices: FormValue, Sendable, Equatable {
    /// As many as are told; a store remembers fewer.
    static let countMax = 256

    /// By name.
    package var devices: [KeyValueDevice] = []

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.devices, atMost: Self.countMax)
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
