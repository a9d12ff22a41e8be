import StratusAdminModel
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
        ) { try await Self.change($0, $0.body()) },
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
                id, in: try await exchange.container(), try exchange.directory)
        else { throw AdminRefusal.missing("user") }
        return store
    }

    private static func list(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let content = try await Self.store(exchange).content()
        return AdminAnswer.json(
            try KeyValuesAnswer {
                $0.values = try content.values.map { key, value in
                    var json = JSONWriter()
                    json.write(try PropertyListValue(decoding: value))
                    var row = KeyValueRow()
                    row.key = key
                    row.value = RawJSON(json.finish())
                    return row
                }
                $0.keys = Int64(clamping: content.use.keyCount)
                $0.bytes = Int64(clamping: content.use.size)
                $0.removedKeys = Int64(clamping: content.use.removedCount)
                $0.devices = Int64(clamping: content.use.deviceCount)
            })
    }

    private static func devices(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let devices = try await Self.store(exchange).devices()
        return AdminAnswer.json(
            Listing(
                devices.map { device in
                    DeviceRow {
                        $0.device = device.device
                        $0.lastBatch = Int64(clamping: device.lastBatch)
                        $0.lastSeen = WallTime.text(device.lastSeenMilliseconds)
                    }
                }))
    }

    private static func change(
        _ exchange: AdminExchange, _ body: KeyValueBody
    ) async throws -> HTTPResponse {
        guard let key = body.key, KeyValueStore.isKey(key) else {
            throw AdminRefusal.bad("'key' is missing, or has not 1 to 64 bytes")
        }
        var value: Bytes?
        if !body.isRemoved {
            guard let given = body.value else {
                throw AdminRefusal.bad("'value' is missing, and 'removed' is not true")
            }
            let document: JSONDocument
            do throws(JSONError) { document = try JSONDocument(parsing: given.bytes) } catch {
                throw AdminRefusal.bad("'value' is not JSON")
            }
            do throws(PropertyListReader.Refusal) {
                value = try PropertyListReader.value(document.root).encoded()
            } catch {
                throw AdminRefusal.bad(error.reason)
            }
        }
        let store = try await Self.store(exchange)
        let container = try await exchange.container()
        switch try await store.change(key, to: value) {
        case nil: break
        case .keyInvalid: throw AdminRefusal.bad("a key has 1 to 64 bytes")
        case .valueTooLarge, .storeFull:
            throw AdminRefusal(413, .quotaExceeded, "the store has no room for this value")
        case .tooManyKeys:
            throw AdminRefusal(413, .quotaExceeded, "the store has as many keys as it may")
        }
        return await exchange.done(
            value == nil ? "key-value remove" : "key-value set", exchange.parameter("email"),
            container)
    }
}
