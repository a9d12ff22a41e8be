import StratusCoding
import StratusModel
import StratusRuntime
import StratusStorage

/// The log and the rows with and without `storage.atRest`, in turn.
extension StorageBenchmark {
    func sealed() async throws {
        var rates: [Bool: [Double]] = [:]
        var costs: [Bool: [Double]] = [:]
        var rows: [Int: [Bool: [Double]]] = [:]
        for round in 0..<self.rounds {
            // Whichever is first has the colder machine: they take turns at that too.
            for isSealed in round % 2 == 0 ? [false, true] : [true, false] {
                let name = "\(isSealed ? "sealed" : "clear")-\(round)"
                let (rate, _) = try await self.sharedLoop("\(name)-log", 64, isSealed: isSealed)
                rates[isSealed, default: []].append(rate)
                costs[isSealed, default: []].append(
                    try self.appendCost("\(name)-append", isSealed: isSealed))
                for indexCount in [0, 4] {
                    let cost = try self.store(
                        "\(name)-rows-\(indexCount)", 10_000, indexCount, isSealed: isSealed)
                    rows[indexCount, default: [:]][isSealed, default: []].append(cost * 1e6)
                }
            }
        }
        print("clear and sealed files in turn, medians of \(self.rounds) rounds")
        Self.compare("log, synced 1-KiB entries/s, 64 writers", rates, isRate: true)
        Self.compare("log, CPU µs a 1-KiB entry in batches of 64", costs, isRate: false)
        for indexCount in [0, 4] {
            Self.compare(
                "rows, CPU µs an upsert with \(indexCount) index rows", rows[indexCount] ?? [:],
                isRate: false)
        }
    }

    private static func compare(_ what: String, _ values: [Bool: [Double]], isRate: Bool) {
        let clear = Self.median(values[false] ?? [0])
        let sealed = Self.median(values[true] ?? [0])
        let ratio = isRate ? sealed / clear : clear / sealed
        print(
            "  \(what): clear \(Self.text(clear)), sealed \(Self.text(sealed)); "
                + "\(Self.text(ratio)) of clear")
    }

    /// CPU of the log's own thread for one entry: encoded, written and synced.
    private func appendCost(_ name: String, isSealed: Bool) throws -> Double {
        let world = try self.world(name, isSealed: isSealed)
        let log = try SegmentedLog(in: "log", of: world, isNew: true) { _ in }
        let payload = Bytes(repeating: 7, count: 1_024)
        let count: UInt64 = 32_768
        let start = Self.threadSeconds
        var index: UInt64 = 1
        while index <= count {
            log.submit([
                LogBatch(
                    group: Self.group,
                    entries: (index..<(index + 64)).map { Self.entry($0, payload) })
            ])
            index += 64
            if !log.flush(), let fault = log.fault { throw fault }
        }
        return (Self.threadSeconds - start) / Double(count) * 1e6
    }
}
