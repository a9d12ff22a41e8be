import StratusCluster
import StratusHTTP
import StratusModel
import StratusRecords

/// Zones of a database: listed, looked up, made and deleted.
struct ZoneService: Sendable {
    let exchange: Exchange

    static let operations = [
        // Clients send it with and without a body.
        GatewayOperation("zones/list", methods: [.get, .post], in: .all, needs: .user) {
            exchange, _ in try await ZoneService(exchange: exchange).list()
        },
        GatewayOperation("zones/lookup", in: .all, needs: .user) {
            try await ZoneService(exchange: $0).lookUp($1)
        },
        GatewayOperation("zones/modify", in: .all, needs: .user) {
            try await ZoneService(exchange: $0).modify($1)
        },
    ]

    /// `zones/list`: all of them in one answer.
    func list() async throws -> Bytes {
        var zones: [ZoneAnswer] = []
        if self.exchange.route.scope != .shared {
            zones = try await self.allZones()
        }
        return self.zonesAnswer { array in
            for case .zone(let zone) in zones {
                array.writeZone(
                    zone, id: self.exchange.id(zone), token: self.exchange.zoneToken(zone))
            }
        }
    }

    /// `zones/lookup`.
    func lookUp(_ input: Input) async throws -> Bytes {
        let addresses = try input.requiredElements(
            "zones", limit: self.exchange.handler.limits.operationCountMax
        ).map { element throws(InputRefusal) in
            // The elements are zone IDs; one that is wrapped like elsewhere is understood.
            try ZoneAddress(element["zoneID"] ?? element, key: "zones")
        }
        let places = addresses.map { self.exchange.place($0) }
        let found = try await self.zones(names: places.compactMap { $0?.zone.name })
        var next = found.makeIterator()
        return self.zonesAnswer { array in
            for (address, place) in zip(addresses, places) {
                guard let place, let answer = next.next() else {
                    array.writeFailure(
                        ClientError(ZoneRefusal.notFound), zone: self.exchange.echo(address))
                    continue
                }
                switch answer {
                case .zone(let zone):
                    array.writeZone(zone, id: place.zone, token: self.exchange.zoneToken(zone))
                case .refused(let refusal):
                    array.writeFailure(ClientError(refusal), zone: place.zone)
                }
            }
        }
    }

    /// `zones/modify`: in order, all attempted.
    func modify(_ input: Input) async throws -> Bytes {
        var draws = self.exchange.draws()
        var names: Set<String> = []
        var requests: [(address: ZoneAddress, place: ZonePlace?)] = []
        var operations: [ModifyZones.Operation] = []
        for element in try input.requiredElements(
            "operations", limit: self.exchange.handler.limits.operationCountMax)
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
            let place = self.exchange.place(address)
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
            let outcome = try await self.exchange.submit(
                .modifyZones(
                    ModifyZones(
                        database: self.exchange.ownDatabase, rules: self.exchange.rules,
                        operations: operations)),
                to: self.exchange.ownDatabase, schema: Schema()
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
                    array.writeFailure(
                        ClientError(ZoneRefusal.notFound), zone: self.exchange.echo(address))
                    continue
                }
                switch result {
                case .created(let zone):
                    array.writeZone(zone, id: place.zone, token: self.exchange.zoneToken(zone))
                case .deleted: array.writeDeletedZone(place.zone)
                case .refused(let refusal):
                    array.writeFailure(ClientError(refusal), zone: place.zone)
                }
            }
        }
    }

    // MARK: Parts

    /// A partition that learns the schema before it holds anything has all indexes at once; one
    /// that learns it later has to fill them first.
    private func teachSchema() async throws {
        let key = ShardKey.database(self.exchange.ownDatabase)
        let schema = try await self.exchange.schema()
        if try await self.exchange.isBehind(schema, at: key) {
            try await self.exchange.install(schema, at: key)
        }
    }

    /// Asks for them in pages: a database may have a hundred thousand, and a partition's storage
    /// thread reads no more of them at once than a page holds.
    private func allZones() async throws -> [ZoneAnswer] {
        guard self.exchange.handler.router.level.allows(.two) else {
            return try await self.zones(names: nil)
        }
        let database = self.exchange.ownDatabase
        var zones: [ZoneAnswer] = []
        var after: String?
        while true {
            guard
                case .zonePage(let page, let next) = try await self.exchange.read(
                    .zonePage(database, after: after, limit: 2_000), at: .database(database))
            else { throw RouteError.refused("an answer of another kind") }
            zones += page
            guard let next else { return zones }
            after = next
        }
    }

    private func zones(names: [String]?) async throws -> [ZoneAnswer] {
        if names?.isEmpty == true { return [] }
        guard
            case .zones(let zones) = try await self.exchange.read(
                .zones(self.exchange.ownDatabase, names: names),
                at: .database(self.exchange.ownDatabase)),
            names == nil || zones.count == names?.count
        else { throw RouteError.refused("an answer of another kind") }
        return zones
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
