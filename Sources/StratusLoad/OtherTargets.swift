import StratusHTTP
package import StratusModel
package import StratusRuntime

/// etcd by its JSON gateway: single keys only.
package struct EtcdTarget: LoadTarget {
    package let name = "etcd"
    private let valueSize: Int

    package init(valueSize: Int) { self.valueSize = valueSize }

    package func supports(_ kind: Step.Kind) -> Bool {
        kind == .save || kind == .lookup || kind == .readModifyWrite
    }
    package func preparations() -> [HTTPClientRequest] { [] }
    package func isPrepared(by status: Int, _ body: Bytes) -> Bool { status == 200 }

    package func request(for step: Step, of client: inout LoadClient) -> HTTPClientRequest {
        var json = JSONWriter()
        let target: String
        switch step {
        case .save(let key):
            target = "/v3/kv/put"
            let text = client.text(self.valueSize)
            json.object {
                $0.member("key", base64: Bytes(StratusTarget.recordName(key).utf8))
                $0.member("value", base64: Bytes(text.utf8))
            }
        case .lookup(let key), .readModifyWrite(let key):
            target = "/v3/kv/range"
            json.object { $0.member("key", base64: Bytes(StratusTarget.recordName(key).utf8)) }
        case .batch, .query, .sync: preconditionFailure("'\(step)' is not supported")
        }
        return HTTPClientRequest(
            method: "POST", target: target, headers: Self.json, body: .bytes(json.finish()))
    }

    package func judge(
        _ step: Step, status: Int, body: Bytes, of client: inout LoadClient
    ) -> Verdict {
        if status == 503 { return .again(after: nil) }
        guard status == 200 else { return .failed("status \(status)") }
        // A lookup that finds nothing is answered 200 too.
        if step.kind == .lookup, !body.contains("\"kvs\"") { return .failed("not found") }
        return .done
    }
}

/// PocketBase: a collection `items` with a text `body`, a number `number` and open rules.
package struct PocketBaseTarget: LoadTarget {
    package let name = "pocketbase"
    private let valueSize: Int
    private static let records = "/api/collections/items/records"

    package init(valueSize: Int) { self.valueSize = valueSize }

    package func supports(_ kind: Step.Kind) -> Bool {
        kind == .save || kind == .lookup || kind == .query || kind == .readModifyWrite
    }
    package func preparations() -> [HTTPClientRequest] { [] }
    /// Whether the place exists: one that an earlier load left serves this one too.
    package func isPrepared(by status: Int, _ body: Bytes) -> Bool {
        status == 200 || body.contains("validation_not_unique")
    }

    package func insertion(
        of keys: Range<Int>, by client: inout LoadClient
    ) -> [HTTPClientRequest] {
        keys.map { key in
            var request = self.request(for: .save(key), of: &client)
            request.method = "POST"
            request.target = Self.records
            return request
        }
    }

    /// Names of 15 characters, as it wants them.
    private static func identifier(_ key: Int) -> String {
        let digits = String(key)
        return "load" + String(repeating: "0", count: max(0, 11 - digits.count)) + digits
    }

    package func request(for step: Step, of client: inout LoadClient) -> HTTPClientRequest {
        switch step {
        case .save(let key):
            let text = client.text(self.valueSize)
            var json = JSONWriter()
            json.object {
                $0.member("id", Self.identifier(key))
                $0.member("number", key)
                $0.member("body", text)
            }
            return HTTPClientRequest(
                method: "PATCH", target: Self.records + "/" + Self.identifier(key),
                headers: Self.json, body: .bytes(json.finish()))
        case .lookup(let key), .readModifyWrite(let key):
            return HTTPClientRequest(target: Self.records + "/" + Self.identifier(key))
        case .query(let number, let limit):
            let filter = PercentCoding.encode("number >= \(number)")
            return HTTPClientRequest(
                target: Self.records + "?filter=\(filter)&sort=number&perPage=\(limit)&skipTotal=1")
        case .batch, .sync: preconditionFailure("'\(step)' is not supported")
        }
    }

    package func judge(
        _ step: Step, status: Int, body: Bytes, of client: inout LoadClient
    ) -> Verdict {
        switch status {
        case 200: .done
        case 429, 503: .again(after: nil)
        default: .failed("status \(status)")
        }
    }
}
