import StratusCluster
import StratusHTTP
import StratusModel
import StratusRecords

extension Exchange {
    /// `records/lookup`.
    func lookUpRecords(_ input: Input) async throws -> Bytes {
        let shape = try AnswerShape(input)
        var names: [String] = []
        var shapes: [AnswerShape] = []
        for element in try input.requiredElements(
            "records", limit: self.handler.limits.operationCountMax)
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
        let place = try self.requiredPlace(address ?? .defaultZone)
        let (items, zone) = try await self.lookUp(
            names, at: place, roundCountMax: Self.answerRoundCountMax)
        var writer = JSONWriter(reserving: 512 * items.count)
        writer.object {
            $0.key("records")
            $0.array { array in
                for (position, item) in items.enumerated() {
                    switch item {
                    case .found(let record): array.writeRecord(record, shapes[position])
                    case .refused(let refusal):
                        array.writeFailure(ClientError(refusal), recordName: names[position])
                    case .deferred:
                        array.writeFailure(
                            ClientError(RouteError.notExecuted(retryAfter: .seconds(1))),
                            recordName: names[position])
                    }
                }
            }
            self.writeSyncToken(of: zone, in: place.zone, to: &$0)
        }
        return writer.finish()
    }

    /// Messages of a partition that one answer is made of: with 16 MiB in each, what a request may make
    /// this node hold. 200 records of the largest size would be three times as much.
    private static let answerRoundCountMax = 4

    /// Looks names up, in order. A partition answers as much as fits one message; the rest is asked for
    /// again, `roundCountMax` times at most: what is left then stays deferred.
    func lookUp(
        _ names: [String], at place: Place, roundCountMax: Int = .max
    ) async throws -> ([LookupAnswer.Item], ZoneSummary?) {
        if let buckets = place.buckets {
            return try await self.lookUp(
                names, in: buckets, at: place, roundCountMax: roundCountMax)
        }
        if place.database.scope == .public, let schema = await self.schemaToReadBy() {
            try await self.teach(schema, to: place.database)
        }
        var items: [LookupAnswer.Item] = []
        var zone: ZoneSummary?
        var roundCount = 0
        while true {
            roundCount += 1
            let rest = Array(names[items.count...])
            let read: RecordAnswer
            do {
                read = try await self.read(
                    .lookup(
                        RecordLookup(database: place.database, zone: place.zone.name, names: rest)),
                    at: place.key)
            } catch RouteError.notExecuted where !items.isEmpty && roundCountMax < .max {
                // What was found already need not be asked for again.
                items += Array(repeating: .deferred, count: rest.count)
                return (items, zone)
            }
            guard case .lookup(let answer) = read, answer.items.count == rest.count else {
                throw RouteError.refused("an answer of another kind")
            }
            zone = answer.zone
            let ready = answer.items.prefix { $0 != .deferred }
            items += ready
            if items.count == names.count { return (items, answer.zone) }
            guard !ready.isEmpty else { throw RouteError.refused("a record that never fits") }
            if roundCount == roundCountMax {
                items += Array(repeating: .deferred, count: names.count - items.count)
                return (items, answer.zone)
            }
        }
    }

    /// The zone as it is; nil for one never written. Not found is the whole request's error.
    func summary(of place: Place) async throws -> ZoneSummary? {
        guard
            case .zones(let zones) = try await self.read(
                .zones(place.home, names: [place.zone.name]), at: place.key)
        else { throw RouteError.refused("an answer of another kind") }
        switch zones.first {
        case .zone(let zone): return zone
        case .refused(let refusal): throw ClientError(refusal)
        case nil: return nil
        }
    }
}
