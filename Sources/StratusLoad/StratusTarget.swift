import StratusHTTP
package import StratusModel
package import StratusRuntime

/// A node of Stratus, or anything else that speaks CloudKit Web Services.
package struct StratusTarget: LoadTarget {
    package struct Place: Sendable {
        package var container: String
        package var environment: String
        package var database: String
        package var apiToken: String
        /// Clients are spread over them: each is somebody with a private database of their own.
        package var webAuthTokens: [String]
        package var valueSize: Int

        package init(
            container: String, environment: String, database: String, apiToken: String,
            webAuthTokens: [String], valueSize: Int
        ) {
            self.container = container
            self.environment = environment
            self.database = database
            self.apiToken = apiToken
            self.webAuthTokens = webAuthTokens
            self.valueSize = valueSize
        }
    }

    package let place: Place
    package let name = "stratus"

    package init(_ place: Place) { self.place = place }

    package func supports(_ kind: Step.Kind) -> Bool {
        kind != .sync || self.place.database == "private"
    }

    /// The types that the container's schema must have.
    package static let schema = """
        DEFINE SCHEMA
            RECORD TYPE LoadItem (
                "___recordID" REFERENCE QUERYABLE,
                number        INT64 QUERYABLE SORTABLE,
                team          STRING QUERYABLE SORTABLE,
                body          STRING,
                GRANT READ, CREATE, WRITE TO "_icloud"
            );

        """

    private var zone: String { self.place.database == "private" ? "load" : "_defaultZone" }

    private func target(_ operation: String, _ client: Int) -> String {
        let place = self.place
        var target = "/database/1/\(place.container)/\(place.environment)/\(place.database)/"
        target += operation + "?ckAPIToken=" + place.apiToken
        if !place.webAuthTokens.isEmpty {
            target += "&ckWebAuthToken=" + PercentCoding.encode(self.token(of: client))
        }
        return target
    }

    private func token(of client: Int) -> String {
        self.place.webAuthTokens[client % self.place.webAuthTokens.count]
    }

    private func post(
        _ operation: String, _ client: Int, _ write: (inout JSONWriter) -> Void
    ) -> HTTPClientRequest {
        var json = JSONWriter(reserving: 512)
        json.object { write(&$0) }
        return HTTPClientRequest(
            method: "POST", target: self.target(operation, client), headers: Self.json,
            body: .bytes(json.finish()))
    }

    package func preparations() -> [HTTPClientRequest] {
        if self.place.database != "private" { return [] }
        return (0..<max(1, self.place.webAuthTokens.count)).map { client in
            self.post("zones/modify", client) {
                $0.key("operations")
                $0.array {
                    $0.object {
                        $0.member("operationType", "create")
                        $0.key("zone")
                        $0.object { self.writeZone(to: &$0) }
                    }
                }
            }
        }
    }

    package func isPrepared(by status: Int, _ body: Bytes) -> Bool {
        status == 200 && !body.contains("serverErrorCode")
    }

    package func insertion(
        of keys: Range<Int>, by client: inout LoadClient
    ) -> [HTTPClientRequest] {
        var requests: [HTTPClientRequest] = []
        // Whole batches, as a migration would send them.
        var rest = keys
        while !rest.isEmpty {
            let batch = Array(rest.prefix(100))
            rest = rest.dropFirst(batch.count)
            requests.append(self.save(batch, of: &client))
        }
        return requests
    }

    package func request(for step: Step, of client: inout LoadClient) -> HTTPClientRequest {
        switch step {
        case .save(let key): self.save([key], of: &client)
        case .batch(let keys): self.save(keys, of: &client)
        case .lookup(let key), .readModifyWrite(let key):
            self.post("records/lookup", client.number) {
                self.writeZone(to: &$0)
                $0.key("records")
                $0.array { $0.object { $0.member("recordName", Self.recordName(key)) } }
            }
        case .query(let number, let limit):
            self.post("records/query", client.number) {
                self.writeZone(to: &$0)
                $0.member("resultsLimit", limit)
                $0.key("query")
                $0.object {
                    $0.member("recordType", "LoadItem")
                    $0.key("filterBy")
                    $0.array {
                        $0.object {
                            $0.member("fieldName", "number")
                            $0.member("comparator", "GREATER_THAN_OR_EQUALS")
                            $0.key("fieldValue")
                            $0.object { $0.member("value", number) }
                        }
                    }
                    $0.key("sortBy")
                    $0.array {
                        $0.object {
                            $0.member("fieldName", "number")
                            $0.member("ascending", true)
                        }
                    }
                }
            }
        case .sync:
            self.post("changes/zone", client.number) { json in
                json.key("zones")
                json.array {
                    $0.object {
                        self.writeZone(to: &$0)
                        $0.member("resultsLimit", 200)
                        if let token = client.syncToken { $0.member("syncToken", token) }
                    }
                }
            }
        }
    }

    package func judge(
        _ step: Step, status: Int, body: Bytes, of client: inout LoadClient
    ) -> Verdict {
        if status == 200, !body.contains("serverErrorCode") {
            if step == .sync, let zone = (try? JSONDocument(parsing: body))?.root["zones"],
                let token = zone.array?.first(where: { _ in true })?["syncToken"]?.string
            {
                client.syncToken = token
            }
            return .done
        }
        guard let root = (try? JSONDocument(parsing: body))?.root else {
            return status >= 500 ? .again(after: nil) : .failed("status \(status)")
        }
        let error =
            root["serverErrorCode"] != nil
            ? root : root["records"]?.array?.first { $0["serverErrorCode"] != nil } ?? root
        let code = error["serverErrorCode"]?.string ?? "status \(status)"
        switch code {
        case "TRY_AGAIN_LATER", "THROTTLED", "INTERNAL_ERROR":
            return .again(after: error["retryAfter"]?.double.map { .seconds($0) })
        default: return .failed(code)
        }
    }

    private func save(_ keys: [Int], of client: inout LoadClient) -> HTTPClientRequest {
        let texts = keys.map { _ in client.text(self.place.valueSize) }
        return self.post("records/modify", client.number) {
            self.writeZone(to: &$0)
            if keys.count > 1, self.zone != "_defaultZone" { $0.member("atomic", true) }
            $0.key("operations")
            $0.array { array in
                for (key, text) in zip(keys, texts) {
                    array.object {
                        $0.member("operationType", "forceUpdate")
                        $0.key("record")
                        $0.object { Self.write(key, text, to: &$0) }
                    }
                }
            }
        }
    }

    private static func write(_ key: Int, _ text: String, to json: inout JSONWriter) {
        json.member("recordName", Self.recordName(key))
        json.member("recordType", "LoadItem")
        json.key("fields")
        json.object {
            for (name, value) in [("team", "team-\(key % 16)"), ("body", text)] {
                $0.key(name)
                $0.object { $0.member("value", value) }
            }
            $0.key("number")
            $0.object { $0.member("value", key) }
        }
    }

    // MARK: Registers

    func registerRead(_ name: String) -> HTTPClientRequest {
        self.post("records/lookup", 0) {
            self.writeZone(to: &$0)
            $0.key("records")
            $0.array { $0.object { $0.member("recordName", name) } }
        }
    }

    /// - Parameter tag: of the state that is to be changed; nil: whatever is there.
    func registerWrite(_ name: String, _ value: Int, over tag: String?) -> HTTPClientRequest {
        self.post("records/modify", 0) {
            self.writeZone(to: &$0)
            $0.member("atomic", false)
            $0.key("operations")
            $0.array {
                $0.object {
                    $0.member("operationType", tag == nil ? "forceUpdate" : "update")
                    $0.key("record")
                    $0.object { json in
                        json.member("recordName", name)
                        json.member("recordType", "LoadItem")
                        if let tag { json.member("recordChangeTag", tag) }
                        json.key("fields")
                        json.object {
                            $0.key("number")
                            $0.object { $0.member("value", value) }
                        }
                    }
                }
            }
        }
    }

    private func writeZone(to json: inout JSONWriter) {
        json.key("zoneID")
        json.object { $0.member("zoneName", self.zone) }
    }

    static func recordName(_ key: Int) -> String { "load-\(key)" }
}
