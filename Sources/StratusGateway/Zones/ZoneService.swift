import StratusCluster
import StratusHTTP
import StratusModel
import StratusRecords

extension Exchange {
    /// `zones/list`: all of them in one answer.
    func listZones() async throws -> Bytes {
        try await self.requireUser()
        var zones: [ZoneAnswer] = []
        if self.route.scope != .shared {
            zones = try await self.zones(names: nil)
        }
        return self.zonesAnswer { array in
            for case .zone(let zone) in zones {
                array.writeZone(zone, id: self.id(zone), token: self.zoneToken(zone))
            }
        }
    }

    /// `zones/lookup`.
    func lookUpZones(_ input: Input) async throws -> Bytes {
        try await self.requireUser()
        let addresses = try input.requiredElements(
            "zones", limit: self.handler.limits.operationCountMax
        ).map { element throws(InputRefusal) in
            // The elements are zone IDs; one that is wrapped like elsewhere is understood.
            try ZoneAddress(element["zoneID"] ?? element, key: "zones")
        }
        let places = addresses.map { self.place($0) }
        let found = try await self.zones(names: places.compactMap { $0?.zone.name })
        var next = found.makeIterator()
        return self.zonesAnswer { array in
            for (address, place) in zip(addresses, places) {
                guard let place, let answer = next.next() else {
                    array.writeFailure(ClientError(ZoneRefusal.notFound), zone: self.echo(address))
                    continue
                }
                switch answer {
                case .zone(let zone):
                    array.writeZone(zone, id: place.zone, token: self.zoneToken(zone))
                case .refused(let refusal):
                    array.writeFailure(ClientError(refusal), zone: place.zone)
                }
            }
        }
    }

    /// `zones/modify`: in order, all attempted.
    func modifyZones(_ input: Input) async throws -> Bytes {
        try await self.requireUser()
        var draws = self.draws()
        var names: Set<String> = []
        var requests: [(address: ZoneAddress, place: Place?)] = []
        var operations: [ModifyZones.Operation] = []
        for element in try input.requiredElements(
            "operations", limit: self.handler.limits.operationCountMax)
        {
            let item = try Input(element, at: "operations")
            let kind: ModifyZones.Kind
            switch try item.requiredString("operationType") {
            case "create": kind = .create
            case "delete": kind = .delete
            default: throw InputRefusal.unexpectedInput(key: "operationType")
            }
            guard let given = item["zone"]?["zoneID"] ?? item["zoneID"] ?? item["zone"] else {
                throw InputRefusal.missingKey("zone")
            }
            let address = try ZoneAddress(given, key: "zoneID")
            guard names.insert(address.name).inserted else {
                throw InputRefusal.repeatedZone(address.name)
            }
            let place = self.place(address)
            requests.append((address, place))
            guard place != nil else { continue }
            operations.append(
                ModifyZones.Operation(
                    kind, zone: address.name, drawnIncarnation: draws.incarnation()))
        }
        guard !requests.isEmpty else { throw InputRefusal.missingKey("operations") }
        var results: [ZoneResult] = []
        if operations.contains(where: { $0.kind == .create }) { try await self.teachSchema() }
        if !operations.isEmpty {
            let outcome = try await self.submit(
                .modifyZones(
                    ModifyZones(
                        database: self.ownDatabase, rules: self.rules, operations: operations)),
                to: self.ownDatabase, schema: Schema()
            ).outcome
            guard case .zones(let answered) = outcome, answered.count == operations.count else {
                throw RouteError.refused("an outcome of another kind")
            }
            results = answered
        }
        var next = results.makeIterator()
        return self.zonesAnswer { array in
            for (address, place) in requests {
                guard let place, let result = next.next() else {
                    array.writeFailure(ClientError(ZoneRefusal.notFound), zone: self.echo(address))
                    continue
                }
                switch result {
                case .created(let zone):
                    array.writeZone(zone, id: place.zone, token: self.zoneToken(zone))
                case .deleted: array.writeDeletedZone(place.zone)
                case .refused(let refusal):
                    array.writeFailure(ClientError(refusal), zone: place.zone)
                }
            }
        }
    }

    // MARK: Parts

    /// A partition that learns the schema before it holds anything has all indexes at once; one that
    /// learns it later has to fill them first.
    private func teachSchema() async throws {
        let key = ShardKey.database(self.ownDatabase)
        let schema = try await self.schema()
        if try await self.isBehind(schema, at: key) { try await self.install(schema, at: key) }
    }

    private func zones(names: [String]?) async throws -> [ZoneAnswer] {
        if names?.isEmpty == true { return [] }
        guard
            case .zones(let zones) = try await self.read(
                .zones(self.ownDatabase, names: names), at: .database(self.ownDatabase)),
            names == nil || zones.count == names?.count
        else { throw RouteError.refused("an answer of another kind") }
        return zones
    }

    func id(_ zone: ZoneSummary) -> ZoneID {
        ZoneID(name: zone.name, owner: self.ownDatabase.owner)
    }

    /// Default zones have no feed, and clients conclude that from the missing token.
    func zoneToken(_ zone: ZoneSummary) -> String? {
        zone.isDefault ? nil : self.token(zone.position, in: self.id(zone))
    }

    private func zonesAnswer(_ elements: (inout JSONWriter) -> Void) -> Bytes {
        var writer = JSONWriter()
        writer.object {
            $0.key("zones")
            $0.array(elements)
        }
        return writer.finish()
    }
}

extension JSONWriter {
    /// A live zone, with what clients read its capabilities from.
    mutating func writeZone(_ zone: ZoneSummary, id: ZoneID, token: String?) {
        self.object {
            $0.key("zoneID")
            $0.writeZoneID(id)
            if let token { $0.member("syncToken", token) }
            $0.member("atomic", !zone.isDefault)
            $0.member("isEligibleForZoneShare", !zone.isDefault)
            $0.member("isEligibleForHierarchicalShare", !zone.isDefault)
            $0.member("deleted", false)
        }
    }

    mutating func writeDeletedZone(_ id: ZoneID) {
        self.object {
            $0.key("zoneID")
            $0.writeZoneID(id)
            $0.member("deleted", true)
        }
    }
}
