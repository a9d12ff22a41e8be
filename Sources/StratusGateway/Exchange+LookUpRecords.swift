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
        let (items, zone) = try await self.lookUp(names, at: place)
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
                        preconditionFailure("a deferred record was not asked for again")
                    }
                }
            }
            self.writeSyncToken(of: zone, in: place.zone, to: &$0)
        }
        return writer.finish()
    }

    /// Looks names up, in order. A partition answers as much as fits one message; the rest is asked for
    /// again.
    func lookUp(
        _ names: [String], at place: Place
    ) async throws -> ([LookupAnswer.Item], ZoneSummary?) {
        var items: [LookupAnswer.Item] = []
        while true {
            let rest = Array(names[items.count...])
            guard
                case .lookup(let answer) = try await self.read(
                    .lookup(
                        RecordLookup(database: place.database, zone: place.zone.name, names: rest)),
                    at: place.key), answer.items.count == rest.count
            else { throw RouteError.refused("an answer of another kind") }
            let ready = answer.items.prefix { $0 != .deferred }
            items += ready
            if items.count == names.count { return (items, answer.zone) }
            guard !ready.isEmpty else { throw RouteError.refused("a record that never fits") }
        }
    }

    /// The zone as it is; nil for one never written. Not found is the whole request's error.
    func summary(of place: Place) async throws -> ZoneSummary? {
        guard
            case .zones(let zones) = try await self.read(
                .zones(place.database, names: [place.zone.name]), at: place.key)
        else { throw RouteError.refused("an answer of another kind") }
        switch zones.first {
        case .zone(let zone): return zone
        case .refused(let refusal): throw ClientError(refusal)
        case nil: return nil
        }
    }
}
