import StratusModel
import StratusRows
import Testing

@testable import StratusRecords

/// The key-value store, rule by rule.
@Suite struct KeyValueTests {
    var own = KeyValueBench()
    static let year: Int64 = 365 * 86_400_000

    @Test mutating func `the change that was made last wins, whatever the devices' clocks say`()
        throws
    {
        let start = self.own.milliseconds
        // The phone's clock is a year ahead. It sets the key at second 10, and sends at second 60.
        // The watch's is a year behind. It sets the key at second 30, and sends at once.
        self.own.milliseconds = start + 30_000
        let watch = start + 30_000 - Self.year
        #expect(
            try self.own.modified("watch", batch: 1, now: watch, .set("k", fill: 2, at: watch))
                .results == [.taken])
        self.own.milliseconds = start + 60_000
        let phone = start + Self.year
        #expect(
            try self.own.modified(
                "phone", batch: 1, now: phone + 60_000, .set("k", fill: 1, at: phone + 10_000)
            ).results == [.superseded])
        #expect(try self.own.values() == ["k": [2]])
    }

    @Test mutating func `a change of the future is one of now`() throws {
        let now = self.own.milliseconds
        try self.own.modified("a", batch: 1, now: now, .set("k", fill: 1, at: now + Self.year))
        try self.own.modified("b", batch: 1, .set("k", fill: 2, at: self.own.milliseconds))
        #expect(try self.own.values() == ["k": [2]])
        // Numbers without an end are no way in either.
        try self.own.modified("c", batch: 1, now: .max, .set("k", fill: 3, at: .min))
        try self.own.modified("d", batch: 1, now: .min, .set("j", fill: 3, at: .max))
        #expect(try self.own.values() == ["k": [2], "j": [3]])
    }

    @Test mutating func `of equal times the greater device wins`() throws {
        let time = self.own.milliseconds
        try self.own.modified("b", batch: 1, .set("k", fill: 2, at: time))
        self.own.milliseconds = time
        // The zone's time does not go back: the age makes up for it.
        #expect(
            try self.own.modified("a", batch: 1, now: time, .set("k", fill: 1, at: time)).results
                == [.superseded])
        self.own.milliseconds = time
        #expect(
            try self.own.modified("c", batch: 1, now: time, .set("k", fill: 3, at: time)).results
                == [.taken])
    }

    @Test mutating func `a batch that comes twice changes nothing, and names what was refused`()
        throws
    {
        self.own.rules.sizeMax = 10
        let at = self.own.milliseconds
        let first = try self.own.modified(
            "a", batch: 1, now: at, .set("k", fill: 1, at: at), .set("large", 11, at: at))
        #expect(first.results == [.taken, .refused(.valueTooLarge)])
        try self.own.modified("b", batch: 1, .set("k", fill: 2, at: self.own.milliseconds))
        let again = try self.own.modified(
            "a", batch: 1, now: at, .set("k", fill: 1, at: at), .set("large", 11, at: at))
        #expect(again.isRepeat && again.results.isEmpty)
        #expect(again.refused == first.refused)
        #expect(try self.own.values() == ["k": [2]])
    }

    @Test mutating func `a first sync fills only keys without a value`() throws {
        let at = self.own.milliseconds
        try self.own.modified("a", batch: 1, .set("k", fill: 1, at: at), .set("gone", at: at))
        try self.own.modified("a", batch: 2, .remove("gone", at: self.own.milliseconds))
        let now = self.own.milliseconds
        let first = try self.own.modified(
            "b", batch: 1, now: now, first: true, .set("k", fill: 2, at: now),
            .set("new", fill: 2, at: now), .set("gone", fill: 2, at: now), .remove("k", at: now))
        #expect(first.results == [.superseded, .taken, .taken, .superseded])
        #expect(try self.own.values() == ["k": [1], "new": [2], "gone": [2]])
    }

    @Test mutating func `limits refuse a key alone, and shrinking always works`() throws {
        self.own.rules.keyCountMax = 2
        self.own.rules.sizeMax = 10
        let at = self.own.milliseconds
        let first = try self.own.modified(
            "a", batch: 1, .set("k", 6, at: at), .set("l", 4, at: at), .set("m", 0, at: at),
            .set("k", 7, at: at), .set("", at: at),
            .set(String(repeating: "x", count: 65), at: at), .set("k", 5, at: at))
        #expect(
            first.results == [
                .taken, .taken, .refused(.tooManyKeys), .refused(.storeFull),
                .refused(.keyInvalid), .refused(.keyInvalid), .taken,
            ])
        #expect(try self.own.page().use.size == 9)
        // A limit that was lowered below what is there.
        self.own.rules.keyCountMax = 1
        self.own.rules.sizeMax = 3
        let second = try self.own.modified(
            "a", batch: 2, .set("k", 4, at: at), .set("l", 5, at: at), .remove("l", at: at))
        #expect(second.results == [.taken, .refused(.valueTooLarge), .taken])
        #expect(try self.own.page().use.keyCount == 1)
    }

    @Test mutating func `a follower hears what changed, and of removals`() throws {
        let at = self.own.milliseconds
        try self.own.modified("a", batch: 1, .set("k", at: at), .set("l", at: at))
        let first = try self.own.page()
        #expect(first.isFromStart && first.entries.map(\.key) == ["k", "l"])
        #expect(try self.own.page(after: first.position).entries.isEmpty)
        try self.own.modified("b", batch: 1, .remove("k", at: self.own.milliseconds))
        let next = try self.own.page(after: first.position)
        #expect(!next.isFromStart && next.entries.map(\.key) == ["k"])
        #expect(next.entries[0].value == nil && next.entries[0].device == "b")
        // A key that is asked for is told in any case; the loser of a race needs it.
        let told = try self.own.page(after: next.position, keys: ["l", "never"])
        #expect(told.entries.map(\.key) == ["l", "never"])
        #expect(told.entries.map { $0.value != nil } == [true, false])
        // One removed key is no news to who begins from nothing.
        #expect(try self.own.page().entries.map(\.key) == ["l"])
    }

    @Test mutating func `a position on an empty store goes on when the store begins`() throws {
        let empty = try self.own.page()
        #expect(empty.isFromStart && empty.entries.isEmpty)
        #expect(try !self.own.page(after: empty.position).isFromStart)
        try self.own.modified("a", batch: 1, .set("k", at: self.own.milliseconds))
        let next = try self.own.page(after: empty.position)
        #expect(!next.isFromStart && next.entries.map(\.key) == ["k"])
    }

    @Test mutating func `old removals are forgotten, and their followers begin again`() throws {
        self.own.rules.removedCountMax = 3
        var batch: UInt64 = 0
        let position = try self.own.page().position
        var middle = position
        for number in 0..<40 {
            batch += 1
            let at = self.own.milliseconds
            try self.own.modified("a", batch: batch, .set("k\(number)", at: at))
            batch += 1
            try self.own.modified("a", batch: batch, .remove("k\(number)", at: at + 10))
            if number == 5 { middle = try self.own.page().position }
        }
        try self.own.bench.finishJobs()
        let page = try self.own.page()
        #expect(page.use.removedCount == 3 && page.entries.isEmpty)
        // Rows of keys: three removals; tombstones are trimmed to few.
        let left = try self.own.bench.rows.view.rows(.record, from: [], to: [], limit: .max)
        #expect(left.count < 12, "\(left.count) rows are left")
        #expect(try self.own.page(after: middle).isFromStart)
    }

    @Test mutating func `the device that was silent the longest is forgotten`() throws {
        self.own.rules.deviceCountMax = 2
        for (device, batch) in [("a", 7), ("b", 1), ("a", 8), ("c", 1)] as [(String, UInt64)] {
            try self.own.modified(
                device, batch: batch, .set(device, fill: UInt8(batch), at: self.own.milliseconds))
        }
        let ask = KeyValueDevicesAsk(Bench.privateDatabase) { _ in }
        let devices = try self.own.bench.ask(ask).get().devices
        #expect(devices.map(\.device) == ["a", "c"])
        #expect(devices.map(\.lastBatch) == [8, 1])
        // What a forgotten device sends once more does not take the place of its later changes.
        try self.own.modified("b", batch: 2, .set("b", fill: 2, at: self.own.milliseconds))
        try self.own.modified("d", batch: 1, .set("d", at: self.own.milliseconds))
        try self.own.modified("e", batch: 1, .set("e", at: self.own.milliseconds))
        try self.own.modified("b", batch: 1, .set("b", fill: 1, at: self.own.milliseconds))
        #expect(try self.own.values()["b"] == [2])
    }

    /// A device's row names what it was refused last: with 64 of them some megabytes.
    @Test mutating func `devices come in pages that keep their bound`() throws {
        self.own.rules.sizeMax = 1
        let at = self.own.milliseconds
        let changes = (0..<KeyValueStore.changeCountMax).map { number in
            let key = String(repeating: "k", count: 58) + String(100_000 + number)
            return ModifyKeyValues.Change.set(key, 2, at: at)
        }
        try self.own.modified("first", batch: 1, .set("k", at: at))
        for number in 100..<163 {
            guard case .success = try self.own.send("d\(number)", batch: 1, changes) else {
                throw BenchError("refused")
            }
        }
        var devices: [String] = []
        var hasMore = true
        while hasMore {
            let ask = KeyValueDevicesAsk(Bench.privateDatabase) { $0.after = devices.last }
            let meter = ReadMeter(touchCountMax: 500)
            let query = Query(kind: .records, body: ask.encoded(as: Bench.user))
            let answer = try self.own.bench.state.answer(
                query, within: nil, meter, over: self.own.bench.rows.view)
            let page = try KeyValueDevicesAsk.answer(decoding: answer.body)
            #expect(meter.work.touchCount <= 500 + 1_000)
            devices += page.devices.map(\.device)
            hasMore = page.hasMore
        }
        #expect(devices == (100..<163).map { "d\($0)" } + ["first"])
    }

    @Test mutating func `no operation on records or zones sees the store`() throws {
        try self.own.modified("a", batch: 1, .set("k", at: self.own.milliseconds))
        let name = ZoneID.keyValueName
        #expect(try self.own.bench.lookup("k6b", in: name) == nil)
        #expect(
            try self.own.bench.refusal(
                in: name, [.delete(KeyValueKeys.recordName("k"))]) == .zoneNotFound)
        guard
            case .zones(let all) = try self.own.bench.ask(
                .zones(Bench.privateDatabase, names: nil)),
            case .zones(let named) = try self.own.bench.ask(
                .zones(Bench.privateDatabase, names: [name])),
            case .zoneRefused(let changes) = try self.own.bench.ask(
                .zoneChanges(ZoneChangesAsk(database: Bench.privateDatabase, zone: name)))
        else { throw BenchError("another answer") }
        #expect(all.count == 1)
        #expect(named == [.refused(.notFound)])
        #expect(changes == .notFound)
        #expect(try self.own.bench.databaseChanges().changes.isEmpty)
        #expect(try self.own.bench.zones(.create, name) == [.refused(.nameInvalid)])
        guard
            case .use(let use, let zones, _) = try self.own.bench.ask(.use(Bench.privateDatabase))
        else { throw BenchError("another answer") }
        // Not against the user's space.
        #expect(use == .none && zones == 0)
    }

    @Test mutating func `an erased store is empty, and its positions have expired`() throws {
        try self.own.modified("a", batch: 1, .set("k", at: self.own.milliseconds))
        let position = try self.own.page().position
        _ = try self.own.bench.apply(
            .eraseDatabase(EraseDatabase(database: Bench.privateDatabase)), as: Bench.system)
        #expect(try self.own.page(after: position).isFromStart)
        try self.own.bench.finishJobs()
        for table in [Table.record, .feed, .reference] {
            #expect(try self.own.bench.rows.view.rows(table, from: [], to: [], limit: 1).isEmpty)
        }
        // The device's number is forgotten with the store.
        try self.own.modified("a", batch: 1, .set("k", fill: 9, at: self.own.milliseconds))
        let page = try self.own.page(after: position)
        #expect(page.isFromStart && page.entries.map(\.value) == [[9]])
    }

    @Test mutating func `nobody else may use the store`() throws {
        let stranger = Principal(kind: .user, userRecordName: "_stranger")
        let outcome = try self.own.send(
            "a", batch: 1, as: stranger, [.set("k", at: self.own.milliseconds)])
        let denied = RequestRefusal(.accessDenied)
        #expect(outcome == .failure(denied))
        for ask in KeyValueGoldens.asks {
            #expect(try self.own.bench.ask(ask, as: stranger) == .failure(denied))
        }
        let devices = KeyValueDevicesAsk(Bench.privateDatabase) { _ in }
        #expect(try self.own.bench.ask(devices, as: stranger) == .failure(denied))
        for device in ["", "a b", String(repeating: "a", count: 65), "ü"] {
            #expect(
                try self.own.send(device, batch: 1, [.set("k", at: 0)])
                    == .failure(RequestRefusal(.queryInvalid, "device")))
        }
        #expect(try self.own.send("a", batch: 1, []) == .failure(RequestRefusal(.empty)))
    }

    @Test mutating func `a recovered partition expires the positions of a store`() throws {
        try self.own.modified("a", batch: 1, .set("k", at: self.own.milliseconds))
        let position = try self.own.page().position
        let command = RecordCommand.recover.enveloped(
            container: Bench.container, identity: RequestIdentity(high: 9, low: 9),
            deadlineMilliseconds: .max, schemaVersion: 0, principal: Bench.system)
        _ = try self.own.bench.state.apply(
            command, at: EntryPosition(index: LogIndex(99), time: self.own.bench.time),
            over: self.own.bench.rows)
        #expect(try self.own.page(after: position).isFromStart)
        #expect(try self.own.values() == ["k": [1]])
    }
}
