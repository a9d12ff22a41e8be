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
        if self.exchange.isShared { return try await self.listShared() }
        var zones: [ZoneAnswer] = []
        if let database = self.exchange.holder.spread {
            zones = try await self.zones(of: database).map { .zone($0) }
        } else {
            zones = try await self.allZones(in: self.exchange.holder.database)
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
            "zones", limit: self.exchange.kernel.limits.operationCountMax
        ).map { element throws(InputRefusal) in
            // The elements are zone IDs; one that is wrapped like elsewhere is understood.
            try ZoneAddress(element["zoneID"] ?? element, key: "zones")
        }
        let places = addresses.map { self.exchange.place($0) }
        let names = places.compactMap { $0?.zone.name }
        let found: [Result<ZoneAnswer, ClientError>]
        if self.exchange.isShared {
            found = try await self.sharedZones(at: places.compactMap { $0 })
        } else if let database = self.exchange.holder.spread {
            found = await self.zones(named: names, of: database)
        } else {
            found = try await self.zones(names: names, in: self.exchange.holder.database).map {
                .success($0)
            }
        }
        var next = found.makeIterator()
        return self.zonesAnswer { array in
            for (address, place) in zip(addresses, places) {
                guard let place, let answer = next.next() else {
                    array.writeFailure(
                        ClientError(ZoneRefusal.notFound), zone: self.exchange.echo(address))
                    continue
                }
                switch answer {
                case .success(.zone(let zone)):
                    array.writeZone(
                        zone, id: place.zone,
                        token: self.exchange.zoneToken(zone, in: place.zone),
                        isShared: self.exchange.isShared)
                case .success(.refused(let refusal)):
                    array.writeFailure(ClientError(refusal), zone: place.zone)
                case .failure(let error): array.writeFailure(error, zone: place.zone)
                }
            }
        }
    }

    /// `zones/modify`: in order, all attempted.
    func modify(_ input: Input) async throws -> Bytes {
        var draws = self.exchange.draws()
        var names: Set<String> = []
        var requests: [(address: ZoneAddress, place: ZonePlace?, refusal: ClientError?)] = []
        var operations: [ModifyZones.Operation] = []
        for element in try input.requiredElements(
            "operations", limit: self.exchange.kernel.limits.operationCountMax)
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
            // Of two owners each may have a zone of the name.
            let owner = self.exchange.isShared ? address.owner ?? "" : ""
            guard names.insert(owner + "/" + address.name).inserted else {
                throw InputRefusal.repeatedZone(address.name)
            }
            let place = self.exchange.place(address)
            var refusal = place == nil ? ClientError(ZoneRefusal.notFound) : nil
            var operation = ModifyZones.Operation(
                kind, zone: address.name, drawnIncarnation: draws.incarnation())
            switch kind {
            case .create:
                do throws(InputRefusal) {
                    operation.scope = try Self.scope(of: item["zone"])
                } catch { refusal = ClientError(error) }
            case .delete:
                do throws(InputRefusal) {
                    operation.reason = try Self.reason(item["deletionReason"])
                } catch { refusal = ClientError(error) }
            }
            if kind == .create, self.exchange.isShared {
                refusal = ClientError(
                    .badRequest, "zones are created in the private database of their owner")
            }
            requests.append((address, place, refusal))
            if refusal == nil { operations.append(operation) }
        }
        let results =
            self.exchange.isShared
            ? await self.leave(requests.compactMap { $0.refusal == nil ? $0.place : nil })
            : try await self.modify(operations)
        var next = results.makeIterator()
        return self.zonesAnswer { array in
            for (address, place, refusal) in requests {
                if let refusal {
                    array.writeFailure(refusal, zone: place?.zone ?? self.exchange.echo(address))
                    continue
                }
                guard let place, let result = next.next() else { continue }
                switch result {
                case .success(.created(let zone)):
                    array.writeZone(zone, id: place.zone, token: self.exchange.zoneToken(zone))
                case .success(.deleted): array.writeDeletedZone(place.zone)
                case .success(.refused(let refusal)):
                    array.writeFailure(ClientError(refusal), zone: place.zone)
                case .failure(let error): array.writeFailure(error, zone: place.zone)
                }
            }
        }
    }

    /// The encryption scope of a new zone; nil: the client did not say. Of this key clients believe
    /// that it holds, so a value that nobody knows is refused.
    private static func scope(of zone: JSONValue?) throws(InputRefusal) -> EncryptionScope? {
        for value in [zone?["encryptionScope"], zone?["zoneID"]?["encryptionScope"]] {
            guard let value, !value.isNull else { continue }
            switch value.string?.lowercased().filter(\.isLetter) {
            case "perrecord": return .perRecord
            case "perzone": return .perZone
            default: throw .keyUnavailable("encryptionScope")
            }
        }
        return nil
    }

    /// Of a reason that is none, devices would bring back what was to be gone.
    private static func reason(_ value: JSONValue?) throws(InputRefusal) -> DeletionReason {
        guard let value, !value.isNull else { return .deleted }
        switch value.string?.uppercased() {
        case DeletionReason.deleted.word: return .deleted
        case DeletionReason.purged.word: return .purged
        default: throw .keyUnavailable("deletionReason")
        }
    }

    // MARK: Parts

    /// A partition that learns the schema before it holds anything has all indexes at once; one
    /// that learns it later has to fill them first.
    func teachSchema(to database: DatabaseID) async throws {
        let key = ShardKey.database(database)
        let schema = try await self.exchange.schema()
        if try await self.exchange.isBehind(schema, at: key) {
            try await self.exchange.install(schema, at: key)
        }
    }

    private func modify(
        _ operations: [ModifyZones.Operation]
    ) async throws -> [Result<ZoneResult, ClientError>] {
        if operations.isEmpty { return [] }
        if let database = self.exchange.holder.spread {
            return await self.modify(operations, of: database)
        }
        let database = self.exchange.holder.database
        if operations.contains(where: { $0.kind == .create }) {
            try await self.teachSchema(to: database)
        }
        return try await self.submit(operations, to: database).map { .success($0) }
    }

    func submit(
        _ operations: [ModifyZones.Operation], to database: DatabaseID
    ) async throws -> [ZoneResult] {
        let modify = ModifyZones(
            database: database, rules: self.exchange.rules, operations: operations)
        let outcome = try await self.exchange.submit(
            .modifyZones(modify), to: database, schema: Schema(),
            part: database.bucket.map { [3, $0.number] } ?? []
        ).outcome
        guard case .zones(let answered) = outcome, answered.count == operations.count else {
            throw RouteError.otherKind
        }
        return answered
    }

    /// Asks for them in pages: a database may have a hundred thousand, and a partition's storage
    /// thread reads no more of them at once than a page holds.
    func allZones(in database: DatabaseID) async throws -> [ZoneAnswer] {
        var zones: [ZoneAnswer] = []
        var after: String?
        while true {
            guard
                case .zonePage(let page, let next) = try await self.exchange.ask(
                    .zonePage(database, after: after, limit: 2_000), at: .database(database))
            else { throw RouteError.otherKind }
            zones += page
            guard let next else { return zones }
            after = next
        }
    }

    func zones(names: [String], in database: DatabaseID) async throws -> [ZoneAnswer] {
        if names.isEmpty { return [] }
        guard
            case .zones(let zones) = try await self.exchange.ask(
                .zones(database, names: names), at: .database(database)),
            zones.count == names.count
        else { throw RouteError.otherKind }
        return zones
    }

    func zonesAnswer(_ elements: (inout JSONWriter) -> Void) -> Bytes {
        var writer = self.exchange.writer()
        writer.object {
            $0.key("zones")
            $0.array(elements)
        }
        return writer.finish()
    }
}

extension JSONWriter {
    /// A live zone, with what clients read its capabilities from.
    ///
    /// - Parameter isShared: with the reader, who cannot share it again.
    mutating func writeZone(
        _ zone: ZoneSummary, id: ZoneID, token: String?, isShared: Bool = false,
        deletedBefore: DeletionReason? = nil
    ) {
        let mayBeShared = !zone.isDefault && !isShared
        self.object {
            $0.key("zoneID")
            $0.writeZoneID(id)
            if let token { $0.member("syncToken", token) }
            $0.member("atomic", !zone.isDefault)
            $0.member("isEligibleForZoneShare", mayBeShared)
            $0.member("isEligibleForHierarchicalShare", mayBeShared && zone.scope != .perZone)
            if zone.scope == .perZone, $0.hasExtensions {
                $0.member("encryptionScope", "PER_ZONE")
            }
            $0.member("deleted", false)
            $0.writeReason(deletedBefore, "deletedBefore")
        }
    }

    /// - Parameter reason: nil where the reader deletes it.
    mutating func writeDeletedZone(_ id: ZoneID, _ reason: DeletionReason? = nil) {
        self.object {
            $0.key("zoneID")
            $0.writeZoneID(id)
            $0.member("deleted", true)
            $0.writeReason(reason, "deletionReason")
        }
    }

    /// The key `reason` it never is: clients take that for an error.
    mutating func writeReason(_ reason: DeletionReason?, _ key: String) {
        guard let reason, self.hasExtensions else { return }
        self.member(key, reason.word)
    }
}

extension DeletionReason {
    var word: String {
        switch self {
        case .deleted: "DELETED"
        case .purged: "PURGED"
        case .encryptedDataReset: "ENCRYPTED_DATA_RESET"
        case .removed: "REMOVED"
        }
    }
}
