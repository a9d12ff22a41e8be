import Testing

/// Expects a complete zone ID.
func expectZoneID(
    _ zone: JSON?, name: String, at location: SourceLocation = #_sourceLocation
) {
    #expect(
        zone.keys.sorted() == ["ownerRecordName", "zoneName", "zoneType"], "\(zone ?? .null)",
        sourceLocation: location)
    #expect(zone["zoneName"].text == name, sourceLocation: location)
    #expect(
        zone["zoneType"].text == (name == "_defaultZone" ? "DEFAULT_ZONE" : "REGULAR_CUSTOM_ZONE"),
        sourceLocation: location)
    #expect(zone["ownerRecordName"].text?.hasPrefix("_") == true, sourceLocation: location)
}

extension Caller {
    /// A token of every kind there is.
    func everyToken() async throws -> [String] {
        try await self.makeZone("Tokens")
        let zone: JSON = ["zoneName": "Tokens"]
        for name in ["a", "b"] { try await self.create(name, in: zone) }
        let page = try await self.ask(
            "private/records/query",
            ["zoneID": zone, "query": ["recordType": "Book"], "resultsLimit": 1],
            query: "getCurrentSyncToken=true")
        let database = try await self.ask("private/changes/database", [:])
        let meta = try await self.ask("private/zones/changes", [:])
        let list = try await self.ask("private/zones/list", [:])
        let tokens = [
            page["continuationMarker"], page["syncToken"], database["syncToken"],
            database["zones"][0]["syncToken"], meta["metaSyncToken"],
            list["zones"].elements.first { $0["zoneID"]["zoneName"] == "Tokens" }["syncToken"],
            try await self.changes("Tokens")["syncToken"],
        ]
        return try tokens.map { try #require($0.text) }
    }
}
