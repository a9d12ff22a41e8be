import StratusCoding
import StratusContainers
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRuntime

/// People's key-value stores.
enum KeyValuePages {
    static let routes: [AdminRoute] = [
        AdminRoute(
            "GET",
            "/v1/containers/{container}/environments/{environment}/users/{email}/key-values",
            answer: "every key of the person's key-value store, with its value"
        ) { try await Self.list($0) },
        AdminRoute(
            "POST",
            "/v1/containers/{container}/environments/{environment}/users/{email}/key-values",
            body: "key, value or removed", answer: "nothing"
        ) { try await Self.change($0, $0.json()) },
        AdminRoute(
            "GET",
            "/v1/containers/{container}/environments/{environment}/users/{email}"
                + "/key-values/devices",
            answer: "the devices that have sent changes"
        ) { try await Self.devices($0) },
    ]

    private static func store(_ exchange: AdminExchange) async throws -> UserKeyValues {
        let id = try await UserPages.account(exchange, exchange.parameter("email"))
        guard
            let store = try await UserKeyValues(
                id, in: try exchange.container(), try exchange.directory)
        else { throw AdminRefusal.missing("user") }
        return store
    }

    private static func list(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let content = try await Self.store(exchange).content()
        var json = JSONWriter()
        try json.object { (object) throws in
            object.key("values")
            try object.array { (array) throws in
                for (key, value) in content.values {
                    try array.object { (item) throws in
                        item.member("key", key)
                        item.key("value")
                        item.write(try PropertyListValue(decoding: value))
                    }
                }
            }
            object.member("keys", Int64(clamping: content.use.keyCount))
            object.member("bytes", Int64(clamping: content.use.size))
            object.member("removedKeys", Int64(clamping: content.use.removedCount))
            object.member("devices", Int64(clamping: content.use.deviceCount))
        }
        return AdminAnswer.json(json.finish())
    }

    private static func devices(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let devices = try await Self.store(exchange).devices()
        var json = JSONWriter()
        json.object {
            $0.member("devices", objects: devices) { json, device in
                json.member("device", device.device)
                json.member("lastBatch", Int64(clamping: device.lastBatch))
                json.member("lastSeen", WallTime.text(device.lastSeenMilliseconds))
            }
        }
        return AdminAnswer.json(json.finish())
    }

    private static func change(
        _ exchange: AdminExchange, _ body: JSONValue
    ) async throws -> HTTPResponse {
        guard let key = body["key"]?.string, KeyValueStore.isKey(key) else {
            throw AdminRefusal.bad("'key' is missing, or has not 1 to 64 bytes")
        }
        var value: Bytes?
        if body["removed"]?.bool != true {
            guard let given = body["value"] else {
                throw AdminRefusal.bad("'value' is missing, and 'removed' is not true")
            }
            do throws(PropertyListReader.Refusal) {
                value = try PropertyListReader.value(given).encoded()
            } catch {
                throw AdminRefusal.bad(error.reason)
            }
        }
        let store = try await Self.store(exchange)
        let container = try exchange.container()
        switch try await store.change(key, to: value) {
        case nil: break
        case .keyInvalid: throw AdminRefusal.bad("a key has 1 to 64 bytes")
        case .valueTooLarge, .storeFull:
            throw AdminRefusal(413, "QUOTA_EXCEEDED", "the store has no room for this value")
        case .tooManyKeys:
            throw AdminRefusal(413, "QUOTA_EXCEEDED", "the store has as many keys as it may")
        }
        return await exchange.done(
            value == nil ? "key-value remove" : "key-value set", exchange.parameter("email"),
            container)
    }
}
