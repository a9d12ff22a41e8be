import StratusCluster
import StratusHTTP
import StratusModel
import StratusRecords
import StratusRuntime

/// `records/lookup`, and the look-ups that other operations need.
struct LookUpService: Sendable {
    let exchange: Exchange

    /// `records/lookup`.
    func answer(_ input: Input) async throws -> Bytes {
        let shape = try AnswerShape(input)
        var names: [String] = []
        var shapes: [AnswerShape] = []
        for element in try input.requiredElements(
            "records", limit: self.exchange.kernel.limits.operationCountMax)
        {
            if let name = element.string {
                names.append(name)
                shapes.append(shape)
            } else {
                let item = try Input(element, at: "records")
                names.append(try item.requiredString("recordName"))
                shapes.append(try shape.overridden(by: item))
            }
        }
        let address = try input["zoneID"].map { value throws(InputRefusal) in
            try ZoneAddress(value, key: "zoneID")
        }
        let place = try self.exchange.requiredPlace(address ?? .defaultZone)
        if self.exchange.isShared, let denial = try await self.exchange.denial(at: place) {
            return self.answer(names, allRefusedFor: denial)
        }
        let (items, zone) = try await self.lookUp(
            names, at: place, roundCountMax: Self.answerRoundCountMax)
        let found = items.compactMap { item in
            if case .found(let record) = item { record } else { nil as Record? }
        }
        let opened = try await self.exchange.opened(found)
        let shares = try await self.exchange.shownShares(of: found, at: place)
        var writer = self.exchange.writer(reserving: 1_024 * items.count)
        var restedAt = 0
        let links = self.exchange.assetLinks
        writer.beginObject()
        writer.key("records")
        writer.beginArray()
        for (position, item) in items.enumerated() {
            switch item {
            case .found(let record):
                writer.writeRead(record, shapes[position], links, opened, shares)
            case .refused(let refusal):
                writer.writeFailure(ClientError(refusal), recordName: names[position])
            case .deferred:
                writer.writeFailure(
                    ClientError(RouteError.notExecuted(retryAfter: .seconds(1))),
                    recordName: names[position])
            }
            // Whatever has come in meanwhile is done first.
            if writer.count - restedAt >= Self.pieceSize {
                restedAt = writer.count
                await Task.yield()
            }
        }
        writer.endArray()
        self.exchange.writeSyncToken(of: zone, in: place.zone, to: &writer)
        writer.endObject()
        return writer.finish()
    }

    private func answer(_ names: [String], allRefusedFor error: ClientError) -> Bytes {
        var writer = self.exchange.writer()
        writer.object {
            $0.key("records")
            $0.array { array in
                for name in names { array.writeFailure(error, recordName: name) }
            }
        }
        return writer.finish()
    }

    /// The bytes that are written before the loop does something else.
    private static let pieceSize = 256 << 10

    /// The number of a partition's messages that one answer is made of. At a mebibyte and a record
    /// in each, this bounds what a request may make this node hold. 200 records of the largest size
    /// would be three times as much.
    private static let answerRoundCountMax = 64

    /// Looks names up, in order. A partition answers about a mebibyte at a time; the rest is asked
    /// for again, `roundCountMax` times at most: what is left then stays deferred. The zone is as
    /// it was when the first was read: who follows its feed from there misses nothing.
    ///
    /// Look-ups that need more than one answer go on a few at a time, the containers in turn.
    /// Whoever waits holds nothing of the memory that answers may take, and begins again: of many
    /// that hold what they have read, none would find room for its end.
    func lookUp(
        _ names: [String], at place: ZonePlace, roundCountMax: Int = .max
    ) async throws -> ([LookupAnswer.Item], ZoneSummary?) {
        if let buckets = place.buckets {
            return try await self.lookUp(
                names, in: buckets, at: place, roundCountMax: roundCountMax)
        }
        if place.database.scope == .public, let schema = await self.exchange.schemaToReadBy() {
            try await self.exchange.teach(schema, to: place.database)
        }
        // What of it is dropped below is counted no longer.
        let room = self.exchange.room.another()
        var (items, zone) = try await self.piece(of: names, at: place, in: room)
        if items.count == names.count || roundCountMax == 1 {
            self.exchange.room.take(over: room)
            return (items + Array(repeating: .deferred, count: names.count - items.count), zone)
        }
        let reading = LongWork.Turn(
            at: self.exchange.kernel.longReads, for: self.exchange.route.tenant)
        defer { reading.leave() }
        if reading.takeAtOnce() {
            self.exchange.room.take(over: room)
        } else {
            items = []
            room.clear()
            self.exchange.turn.leave()
            await reading.take(for: .max)
            (items, zone) = try await self.piece(of: names, at: place)
        }
        var roundCount = 1
        while items.count < names.count, roundCount < roundCountMax {
            roundCount += 1
            do {
                items += try await self.piece(of: Array(names[items.count...]), at: place).items
            } catch RouteError.notExecuted where roundCountMax < .max {
                // What was found already need not be asked for again.
                break
            }
        }
        items += Array(repeating: .deferred, count: names.count - items.count)
        return (items, zone)
    }

    /// Returns the first records of `names`: as many as one answer of their partition holds.
    private func piece(
        of names: [String], at place: ZonePlace, in room: AnswerRoom? = nil
    ) async throws -> (items: [LookupAnswer.Item], zone: ZoneSummary?) {
        let lookup = RecordLookup(database: place.database, zone: place.zone.name, names: names)
        var caller = self.exchange.caller
        caller.room = room ?? self.exchange.room
        guard
            case .lookup(let answer) = try await self.exchange.ask(
                .lookup(lookup), at: place.key, as: caller),
            answer.items.count == names.count
        else { throw RouteError.otherKind }
        let ready = answer.items.prefix { $0 != .deferred }
        guard !ready.isEmpty || names.isEmpty else {
            throw RouteError.refused("a record that never fits")
        }
        return (Array(ready), answer.zone)
    }
}
