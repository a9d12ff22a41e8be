import Testing

/// Somebody who uses one container through a wire: what a client library would be.
package struct Caller: Sendable {
    package enum Identity: Sendable, Hashable {
        /// The API token and no user.
        case anonymous
        case user
        /// Another user, by name.
        case other(String)
        case nobody
    }

    package let wire: any Wire
    package let container: String
    package var identity = Identity.user
    package var environment = "development"

    package static let apiToken = String(repeating: "5c0f17e1", count: 8)

    package init(wire: any Wire, container: String) {
        self.wire = wire
        self.container = container
    }

    func acting(as identity: Identity) -> Caller {
        var other = self
        other.identity = identity
        return other
    }

    // MARK: Requests

    func target(_ operation: String, query: String = "") -> String {
        var parameters: [String] = []
        switch self.identity {
        case .nobody: break
        case .anonymous: parameters = ["ckAPIToken=\(Self.apiToken)"]
        case .user: parameters = ["ckAPIToken=\(Self.apiToken)", "ckWebAuthToken=84__31__t%2Bk"]
        case .other(let name):
            parameters = ["ckAPIToken=\(Self.apiToken)", "ckWebAuthToken=stratus-user-\(name)"]
        }
        if !query.isEmpty { parameters.append(query) }
        return "/database/1/\(self.container)/\(self.environment)/\(operation)"
            + (parameters.isEmpty ? "" : "?" + parameters.joined(separator: "&"))
    }

    /// Posts a body to `private/records/query` and the like.
    func post(
        _ operation: String, _ body: JSON, query: String = "", contentType: String? = "text/plain"
    ) async throws -> WireAnswer {
        try await self.post(
            operation, text: body.description, query: query, contentType: contentType)
    }

    func post(
        _ operation: String, text: String, query: String = "", contentType: String? = "text/plain"
    ) async throws -> WireAnswer {
        try await self.wire.send(
            WireRequest(
                method: "POST", target: self.target(operation, query: query),
                headers: contentType.map { [("Content-Type", $0)] } ?? [],
                body: Array(text.utf8)))
    }

    /// Posts, and expects success: the body of the answer.
    func ask(
        _ operation: String, _ body: JSON, query: String = "",
        at location: SourceLocation = #_sourceLocation
    ) async throws -> JSON {
        let answer = try await self.post(operation, body, query: query)
        try #require(answer.status == 200, "\(answer)", sourceLocation: location)
        let json = try #require(answer.json, sourceLocation: location)
        for key in ["reason", "error", "errorMessage", "serverErrorCode"] {
            #expect(
                !json.keys.contains(key), "a success with '\(key)': \(json)",
                sourceLocation: location)
        }
        return json
    }

    // MARK: Records

    /// The entries that `records/modify` answers for these operations.
    func modify(
        _ operations: [JSON], in zone: JSON? = nil, database: String = "private",
        atomic: JSON? = nil, query: String = "", at location: SourceLocation = #_sourceLocation
    ) async throws -> [JSON] {
        var body: JSON = ["operations": .array(operations)]
        if let zone { body = body.setting("zoneID", zone) }
        if let atomic { body = body.setting("atomic", atomic) }
        let answer = try await self.ask(
            "\(database)/records/modify", body, query: query, at: location)
        #expect(
            answer["records"].elements.count == operations.count, "\(answer)",
            sourceLocation: location)
        return answer["records"].elements
    }

    /// Creates one record, and expects that to work.
    @discardableResult
    func create(
        _ name: String?, type: String = "Book", fields: JSON = [:], in zone: JSON? = nil,
        database: String = "private", at location: SourceLocation = #_sourceLocation
    ) async throws -> JSON {
        var record: JSON = ["recordType": .string(type), "fields": fields]
        if let name { record = record.setting("recordName", .string(name)) }
        let records = try await self.modify(
            [["operationType": "create", "record": record]], in: zone, database: database,
            at: location)
        let saved = try #require(records.first, sourceLocation: location)
        #expect(
            saved["serverErrorCode"] == nil && saved["recordChangeTag"] != nil, "\(saved)",
            sourceLocation: location)
        return saved
    }

    func lookUp(
        _ names: [String], in zone: JSON? = nil, database: String = "private",
        at location: SourceLocation = #_sourceLocation
    ) async throws -> [JSON] {
        var body: JSON = ["records": .array(names.map { ["recordName": .string($0)] })]
        if let zone { body = body.setting("zoneID", zone) }
        return try await self.ask("\(database)/records/lookup", body, at: location)["records"]
            .elements
    }

    /// The names a query answers, in order, over all of its pages.
    func query(
        _ query: JSON, in zone: JSON? = nil, database: String = "private",
        at location: SourceLocation = #_sourceLocation
    ) async throws -> [String] {
        var names: [String] = []
        var marker: JSON?
        for _ in 0..<1_000 {
            var body: JSON = ["query": query]
            if let zone { body = body.setting("zoneID", zone) }
            if let marker { body = body.setting("continuationMarker", marker) }
            let page = try await self.ask("\(database)/records/query", body, at: location)
            names += page["records"].elements.map { $0["recordName"].text ?? "?" }
            marker = page["continuationMarker"]
            if marker == nil { return names }
        }
        Issue.record("a query without an end", sourceLocation: location)
        return names
    }

    // MARK: Zones

    @discardableResult
    func makeZone(
        _ name: String, at location: SourceLocation = #_sourceLocation
    ) async throws -> JSON {
        let answer = try await self.ask(
            "private/zones/modify",
            [
                "operations": [
                    ["operationType": "create", "zone": ["zoneID": ["zoneName": .string(name)]]]
                ]
            ], at: location)
        let zone = try #require(answer["zones"][0], sourceLocation: location)
        #expect(zone["syncToken"].text != nil, "\(zone)", sourceLocation: location)
        return zone
    }

    func deleteZone(
        _ name: String, at location: SourceLocation = #_sourceLocation
    ) async throws {
        let answer = try await self.ask(
            "private/zones/modify",
            [
                "operations": [
                    ["operationType": "delete", "zone": ["zoneID": ["zoneName": .string(name)]]]
                ]
            ], at: location)
        #expect(answer["zones"][0]["deleted"] == true, "\(answer)", sourceLocation: location)
    }

    /// The entry of `changes/zone` for one zone.
    func changes(
        _ zone: String, after token: String? = nil, _ more: JSON = [:],
        at location: SourceLocation = #_sourceLocation
    ) async throws -> JSON {
        var entry: JSON = ["zoneID": ["zoneName": .string(zone)]]
        if let token { entry = entry.setting("syncToken", .string(token)) }
        for key in more.keys { entry = entry.setting(key, more[key]) }
        let answer = try await self.ask("private/changes/zone", ["zones": [entry]], at: location)
        return try #require(answer["zones"][0], sourceLocation: location)
    }
}

/// Expects a whole request to have failed so, in the full form.
func expectFailure(
    _ answer: WireAnswer, _ status: Int, _ code: String, reason: String? = nil,
    at location: SourceLocation = #_sourceLocation
) {
    #expect(answer.status == status, "\(answer)", sourceLocation: location)
    let json = answer.json
    #expect(json["serverErrorCode"].text == code, "\(answer)", sourceLocation: location)
    #expect(json["uuid"].text?.count == 36, "\(answer)", sourceLocation: location)
    #expect(json["reason"].text?.isEmpty == false, "\(answer)", sourceLocation: location)
    if let reason {
        #expect(json["reason"].text == reason, "\(answer)", sourceLocation: location)
    }
}

/// Expects an item to have failed so: a record by its name, or a zone by its ID.
func expectItem(
    _ item: JSON?, failed code: String, reason: String? = nil, recordName: String? = nil,
    at location: SourceLocation = #_sourceLocation
) {
    #expect(item["serverErrorCode"].text == code, "\(item ?? .null)", sourceLocation: location)
    #expect(item["reason"].text?.isEmpty == false, "\(item ?? .null)", sourceLocation: location)
    #expect(
        item["recordName"].text != nil || item["zoneID"] != nil, "\(item ?? .null)",
        sourceLocation: location)
    for key in ["fields", "recordType", "recordChangeTag"] {
        #expect(item[key] == nil, "an error with '\(key)'", sourceLocation: location)
    }
    if let reason { #expect(item["reason"].text == reason, sourceLocation: location) }
    if let recordName { #expect(item["recordName"].text == recordName, sourceLocation: location) }
}
