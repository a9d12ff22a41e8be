import StratusCoding
import StratusHTTP
import StratusModel
import StratusRecords

/// Reads the dictionary of a subscription and holds it against the rules of its database.
struct SubscriptionReader {
    let exchange: Exchange

    /// Filters of one query, and the bytes of all of it.
    private static let filterCountMax = 20
    private static let predicateSizeMax = 8 << 10

    private var scope: DatabaseScope { self.exchange.route.scope }

    func subscription(_ input: Input, id: String) async throws -> Subscription {
        guard input.object.contains(where: { $0.name != "subscriptionID" }) else {
            // One client means a deletion by this, another a save.
            throw ClientError(.badRequest, "the subscription has nothing but an ID")
        }
        let info = try NotificationInfo(input["notificationInfo"])
        var subscription: Subscription
        var query: QueryRequest?
        switch try input.requiredString("subscriptionType").lowercased() {
        case "query":
            (subscription, query) = try await self.query(input, id: id, info)
        case "zone": subscription = try self.zone(input, id: id)
        case "database": subscription = try self.database(input, id: id)
        default: throw InputRefusal.unexpectedInput(key: "subscriptionType")
        }
        if query == nil, info?.collapses == true {
            throw ClientError(.badRequest, "cannot add collapseId to this subscription type")
        }
        subscription.firesOnce = try input.flag("firesOnce") ?? false
        subscription.content = try self.content(of: subscription, input, query, info)
        return subscription
    }

    // MARK: Kinds

    private func zone(_ input: Input, id: String) throws -> Subscription {
        try self.requireNoQuery(input, "zone")
        guard let given = input["zoneID"] else { throw InputRefusal.missingKey("zoneID") }
        let address = try ZoneAddress(given, key: "zoneID")
        guard let place = self.exchange.place(address) else { throw InputRefusal.zoneNotFound }
        guard !place.zone.isDefault else {
            throw ClientError(
                .badRequest, "zone subscriptions are not supported in the default zone")
        }
        return Subscription(id, .zone, zone: place.zone.name, content: [])
    }

    private func database(_ input: Input, id: String) throws -> Subscription {
        try self.requireNoQuery(input, "database")
        return Subscription(id, .database, content: [])
    }

    private func requireNoQuery(_ input: Input, _ kind: String) throws(ClientError) {
        guard self.scope != .public else {
            throw ClientError(
                .badRequest, "\(kind) subscriptions are not supported in the public database")
        }
        guard self.scope != .shared else {
            throw ClientError(
                .badRequest, "\(kind) subscriptions are not supported in the shared database")
        }
        guard input["query"] == nil else {
            throw ClientError(.badRequest, "a \(kind) subscription has no query")
        }
    }

    private func query(
        _ input: Input, id: String, _ info: NotificationInfo?
    ) async throws -> (Subscription, QueryRequest) {
        guard self.scope != .shared else {
            throw ClientError(
                .badRequest, "query subscriptions are not supported in the shared database")
        }
        var request = try QueryRequest(input, limits: self.exchange.kernel.limits)
        // A zone that is named limits, whatever zoneWide says; without one all zones are meant.
        request.zoneWide = request.zone == nil
        guard request.filters.count <= Self.filterCountMax else {
            throw InputRefusal.tooMany(
                key: "filterBy", count: request.filters.count, limit: Self.filterCountMax)
        }
        let reasons = try self.reasons(input)
        let (predicate, zone, type) = try await QueryService(exchange: self.exchange)
            .subscribed(request)
        var writer = ByteWriter()
        writer.write(predicate)
        guard writer.bytes.count <= Self.predicateSizeMax else {
            throw ClientError(
                .badRequest, "the filters are larger than \(Self.predicateSizeMax) bytes")
        }
        let fields = info?.fields ?? []
        for field in fields {
            guard let definition = type.field(named: field) else {
                throw ClientError(RecordRefusal(.fieldUnknown, field))
            }
            guard NotificationInfo.mayCarry(definition.type) else {
                throw ClientError(
                    .badRequest,
                    "field '\(ClientError.quoted(field))' cannot be part of a notification")
            }
        }
        let subscription = Subscription(
            id, .query, zone: zone, predicate: predicate, reasons: reasons, fields: fields,
            content: [])
        return (subscription, request)
    }

    private func reasons(_ input: Input) throws -> Subscription.Reasons {
        var reasons: Subscription.Reasons = []
        for element in try input.requiredElements("firesOn", limit: 3) {
            switch element.string {
            case "create": reasons.insert(.created)
            case "update": reasons.insert(.updated)
            case "delete": reasons.insert(.deleted)
            default: throw InputRefusal.unexpectedInput(key: "firesOn")
            }
        }
        guard !reasons.isEmpty else { throw InputRefusal.missingKey("firesOn") }
        return reasons
    }

    // MARK: What answers repeat

    private func content(
        of subscription: Subscription, _ input: Input, _ query: QueryRequest?,
        _ info: NotificationInfo?
    ) throws -> Bytes {
        var writer = JSONWriter()
        writer.object { object in
            switch subscription.kind {
            case .query: object.member("subscriptionType", "query")
            case .zone: object.member("subscriptionType", "zone")
            case .database: object.member("subscriptionType", "database")
            }
            if let query {
                object.key("query")
                object.object {
                    $0.member("recordType", query.recordType)
                    $0.key("filterBy")
                    $0.array { array in for filter in query.filters { array.writeFilter(filter) } }
                    $0.key("sortBy")
                    $0.array { array in for sort in query.sorts { array.writeSort(sort) } }
                }
                object.key("firesOn")
                object.array {
                    if subscription.reasons.contains(.created) { $0.write("create") }
                    if subscription.reasons.contains(.updated) { $0.write("update") }
                    if subscription.reasons.contains(.deleted) { $0.write("delete") }
                }
            }
            object.member("firesOnce", subscription.firesOnce)
            if let zone = subscription.zone {
                object.key("zoneID")
                object.writeZoneID(ZoneID(name: zone, owner: self.exchange.holder.database.owner))
            }
            if query != nil { object.member("zoneWide", subscription.zone == nil) }
            if let info {
                object.key("notificationInfo")
                object.write(raw: info.text)
            }
        }
        let content = writer.finish()
        // Filters are repeated as they came.
        guard (try? JSONDocument(parsing: content)) != nil else {
            throw InputRefusal.unexpectedInput(key: "query")
        }
        guard content.count <= Subscription.sizeMax else {
            throw ClientError(
                .badRequest, "the subscription is larger than \(Subscription.sizeMax) bytes")
        }
        return content
    }
}

extension JSONWriter {
    fileprivate mutating func writeFilter(_ filter: Input) {
        self.object {
            for key in ["fieldName", "systemFieldName", "comparator", "distance"] {
                guard let value = filter[key] else { continue }
                $0.key(key)
                $0.write(raw: value.source)
            }
            $0.key("fieldValue")
            $0.object { operand in
                for key in ["value", "type"] {
                    guard let value = filter["fieldValue"]?[key] else { continue }
                    operand.key(key)
                    operand.write(raw: value.source)
                }
            }
        }
    }

    fileprivate mutating func writeSort(_ sort: Input) {
        self.object {
            for key in ["fieldName", "systemFieldName", "ascending", "relativeLocation"] {
                guard let value = sort[key] else { continue }
                $0.key(key)
                $0.write(raw: value.source)
            }
        }
    }

    /// A subscription as answers have it.
    mutating func writeSubscription(_ subscription: Subscription) {
        var head = JSONWriter()
        head.object { $0.member("subscriptionID", subscription.id) }
        var whole = head.finish()
        // Two objects become one.
        whole[whole.count - 1] = UInt8(ascii: ",")
        whole += subscription.content.dropFirst()
        self.write(raw: whole)
    }

    mutating func writeFailure(_ error: ClientError, subscriptionID: String) {
        self.object {
            $0.member("subscriptionID", subscriptionID)
            $0.writeMembers(of: error)
        }
    }
}
