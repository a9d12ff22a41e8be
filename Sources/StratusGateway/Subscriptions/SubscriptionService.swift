import StratusCluster
import StratusHTTP
import StratusModel
import StratusRecords
import StratusRows

/// Subscriptions of one user to one database: listed, looked up, saved and deleted.
struct SubscriptionService: Sendable {
    let exchange: Exchange

    /// Those that one user may have in one database.
    static let countMax = 1_000

    static let operations = [
        // Clients send it with and without a body.
        GatewayOperation("subscriptions/list", methods: [.get, .post], in: .all, needs: .user) {
            exchange, _ in try await SubscriptionService(exchange: exchange).list()
        },
        GatewayOperation("subscriptions/lookup", in: .all, needs: .user) {
            try await SubscriptionService(exchange: $0).lookUp($1)
        },
        GatewayOperation("subscriptions/modify", in: .all, needs: .user) {
            try await SubscriptionService(exchange: $0).modify($1)
        },
    ]

    /// `subscriptions/list`: all of them in one answer.
    func list() async throws -> Bytes {
        let found = try await self.found(nil)
        return self.answer { array in
            for case let subscription? in found { array.writeSubscription(subscription) }
        }
    }

    /// `subscriptions/lookup`: IDs in objects or as plain strings.
    func lookUp(_ input: Input) async throws -> Bytes {
        let ids = try input.requiredElements(
            "subscriptions", limit: self.exchange.kernel.limits.operationCountMax
        ).map { element throws(InputRefusal) in try Self.id(element) }
        let found = try await self.found(ids)
        return self.answer { array in
            for (id, subscription) in zip(ids, found) {
                if let subscription {
                    array.writeSubscription(subscription)
                } else {
                    array.writeFailure(Self.notFound, subscriptionID: id)
                }
            }
        }
    }

    /// `subscriptions/modify`: in order, all attempted.
    func modify(_ input: Input) async throws -> Bytes {
        let elements = try input.requiredElements(
            "operations", limit: self.exchange.kernel.limits.operationCountMax)
        var draws = self.exchange.draws()
        var items: [(id: String, read: Result<ModifySubscriptions.Operation, ClientError>)] = []
        for element in elements {
            items.append(try await self.item(try Input(element, at: "operations"), &draws))
        }
        let operations = items.compactMap { try? $0.read.get() }
        let results: [SubscriptionResult]
        if let parts = self.parts {
            results = try await self.modify(operations, of: parts)
        } else {
            results = try await self.submit(operations, to: self.exchange.holder.database)
        }
        var next = results.makeIterator()
        return self.answer { array in
            for item in items {
                switch item.read {
                case .failure(let error): array.writeFailure(error, subscriptionID: item.id)
                case .success(let operation):
                    guard let result = next.next() else { continue }
                    array.write(result, of: operation)
                }
            }
        }
    }

    /// One operation, or the error in its place. What is wrong with the service is the request's.
    private func item(
        _ item: Input, _ draws: inout Draws
    ) async throws -> (id: String, read: Result<ModifySubscriptions.Operation, ClientError>) {
        var id = ""
        do {
            guard let given = item["subscription"] else {
                throw InputRefusal.missingKey("subscription")
            }
            let kind = try item.requiredString("operationType")
            if given.string == nil, try Input(given, at: "subscription")["subscriptionID"] == nil {
                guard kind == "create" else { throw InputRefusal.missingKey("subscriptionID") }
                id = draws.recordName()
            } else {
                id = try Self.id(given)
            }
            switch kind {
            case "delete": return (id, .success(.delete(id)))
            case "create", "update":
                let read = try await SubscriptionReader(exchange: self.exchange)
                    .subscription(try Input(given, at: "subscription"), id: id)
                return (id, .success(kind == "create" ? .create(read) : .update(read)))
            default: throw InputRefusal.unexpectedInput(key: "operationType")
            }
        } catch let error as RouteError {
            throw error
        } catch {
            return (id, .failure(ClientError(error)))
        }
    }

    // MARK: Parts

    private static func id(_ value: JSONValue) throws(InputRefusal) -> String {
        let id: String
        if let text = value.string {
            id = text
        } else {
            id = try Input(value, at: "subscriptions").requiredString("subscriptionID")
        }
        guard (1...Subscription.idLengthMax).contains(id.utf8.count),
            !id.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F })
        else { throw .unexpectedInput(key: "subscriptionID") }
        return id
    }

    /// Equal for one that is not there and one that is somebody else's.
    static let notFound = ClientError(.notFound, "subscription not found")

    func submit(
        _ operations: [ModifySubscriptions.Operation], to database: DatabaseID, part: Bytes = []
    ) async throws -> [SubscriptionResult] {
        if operations.isEmpty { return [] }
        let modify = ModifySubscriptions(database) {
            $0.isShared = self.exchange.isShared
            $0.countMax = UInt32(Self.countMax)
            $0.operations = operations
        }
        let results = try await self.exchange.submit(modify, part: part).results
        guard results.count == operations.count else { throw RouteError.otherKind }
        return results
    }

    private func found(_ ids: [String]?) async throws -> [Subscription?] {
        if ids?.isEmpty == true { return [] }
        guard let parts = self.parts else {
            return try await self.found(ids, in: self.exchange.holder.database)
        }
        return try await self.found(ids, of: parts)
    }

    func found(_ ids: [String]?, in database: DatabaseID) async throws -> [Subscription?] {
        let ask = SubscriptionsAsk(database) {
            $0.isShared = self.exchange.isShared
            $0.names = ids
        }
        let found = try await self.exchange.ask(ask, at: .database(database)).found
        guard ids == nil || found.count == ids?.count else { throw RouteError.otherKind }
        return found
    }

    private func answer(_ elements: (inout JSONWriter) -> Void) -> Bytes {
        var writer = JSONWriter()
        writer.object {
            $0.key("subscriptions")
            $0.array(elements)
        }
        return writer.finish()
    }
}

extension JSONWriter {
    fileprivate mutating func write(
        _ result: SubscriptionResult, of operation: ModifySubscriptions.Operation
    ) {
        switch (result, operation) {
        case (.saved, .create(let subscription)), (.saved, .update(let subscription)):
            self.writeSubscription(subscription)
        case (.deleted, _), (.saved, .delete):
            self.object {
                $0.member("subscriptionID", operation.id)
                $0.member("deleted", true)
            }
        case (.notFound, _):
            self.writeFailure(SubscriptionService.notFound, subscriptionID: operation.id)
        case (.zoneNotFound, _):
            self.writeFailure(
                ClientError(InputRefusal.zoneNotFound), subscriptionID: operation.id)
        case (.tooMany, _):
            self.writeFailure(
                ClientError(
                    .quotaExceeded,
                    "a user may have \(SubscriptionService.countMax) subscriptions to a database,"
                        + " \(Subscription.ownSizeMax) bytes of them and"
                        + " \(Subscription.ownOperandCountMax) operands in their filters"),
                subscriptionID: operation.id)
        }
    }
}
