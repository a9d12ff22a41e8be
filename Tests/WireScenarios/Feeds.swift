import Testing

/// Conversations with the feeds.
enum Feeds {
    static func run(_ caller: Caller) async throws {
        let made = try await caller.makeZone("Shelves")
        let zone: JSON = ["zoneName": "Shelves"]
        try await caller.create("a", fields: ["title": ["value": "1"]], in: zone)
        let b = try await caller.create("b", fields: ["title": ["value": "2"]], in: zone)
        try await caller.create("c", type: "Author", in: zone)

        let all = try await caller.changes("Shelves")
        #expect(all["records"].elements.map { $0["recordName"].text } == ["a", "b", "c"])
        #expect(all["records"][1] == b)
        #expect(all["moreComing"] == false)
        // The token of the zone's creation is the feed's beginning.
        let fromMade = try await caller.changes("Shelves", after: made["syncToken"].text)
        #expect(fromMade["records"] == all["records"])

        let token = try #require(all["syncToken"].text)
        let none = try await caller.changes("Shelves", after: token)
        #expect(none["records"] == [] && none["syncToken"].text == token)

        _ = try await caller.modify(
            [
                Operation.of("forceUpdate", "a", fields: ["title": ["value": "3"]]),
                Operation.of("forceDelete", "b"),
            ], in: zone)
        let later = try await caller.changes("Shelves", after: token)
        #expect(later["records"].elements.map { $0["recordName"].text } == ["a", "b"])
        #expect(later["records"][0]["fields"]["title"]["value"] == "3")
        #expect(later["records"][1]["deleted"] == true)
        // Only the latest state of each, at the place of its last change.
        let whole = try await caller.changes("Shelves")
        #expect(whole["records"].elements.map { $0["recordName"].text } == ["c", "a", "b"])
        // The same token gives the same answer, however often.
        #expect(try await caller.changes("Shelves", after: token) == later)

        let narrow = try await caller.changes(
            "Shelves", ["desiredKeys": ["pages"], "desiredRecordTypes": ["Author"]])
        #expect(narrow["records"].elements.map { $0["recordName"].text } == ["c", "b"])
        #expect(narrow["records"][0]["fields"] == [:])
        let reversed = try await caller.changes("Shelves", ["reverse": true])
        #expect(reversed["records"].elements.map { $0["recordName"].text } == ["b", "a", "c"])

        let empty = try await caller.changes("Shelves", after: "")
        #expect(empty["records"] == [] && empty["moreComing"] == false)
        #expect(empty["syncToken"].text == whole["syncToken"].text)

        // Two zones, one of them missing.
        let two = try await caller.ask(
            "private/changes/zone",
            [
                "zones": [["zoneID": ["zoneName": "Nope"]], ["zoneID": zone, "resultsLimit": 1]],
                "resultsLimit": 200,
            ])
        expectItem(two["zones"][0], failed: "ZONE_NOT_FOUND", reason: "Zone not found")
        #expect(two["zones"][1]["records"].elements.count == 1)
        #expect(two["zones"][1]["moreComing"] == true)

        let database = try await caller.ask("private/changes/database", [:])["syncToken"].text
        for (name, bad, reason) in [
            ("garbage", "garbage", "Unknown sync continuation type"),
            ("no base64", "!!!", "Unknown sync continuation type"),
            ("truncated", String(token.dropLast(4)), "Invalid continuation format"),
            ("cut in a group", String(token.dropLast()), "Invalid continuation format"),
            ("a database's", database ?? "", "Unknown sync continuation type"),
            ("forged", String(token.dropLast(4) + "AAAA"), "Unknown sync continuation type"),
        ] {
            let entry = try await caller.changes("Shelves", after: bad)
            expectItem(entry, failed: "BAD_REQUEST", reason: reason)
            #expect(entry["syncToken"] == nil && entry["moreComing"] == nil, "\(name)")
        }
        // A token of another zone, another user, and of a zone that was made anew.
        try await caller.makeZone("Other")
        expectItem(
            try await caller.changes("Other", after: token), failed: "BAD_REQUEST",
            reason: "Unknown sync continuation type")
        try await caller.deleteZone("Shelves")
        expectItem(
            try await caller.changes("Shelves", after: token), failed: "ZONE_NOT_FOUND")
        try await caller.makeZone("Shelves")
        expectItem(
            try await caller.changes("Shelves", after: token), failed: "BAD_REQUEST",
            reason: "Unknown sync continuation type")
        expectItem(
            try await caller.changes("_defaultZone"), failed: "BAD_REQUEST",
            reason: "cannot get changes in default zone")

        // records/changes is the same feed with its errors for the whole request.
        try await caller.create("z", in: zone)
        let older = try await caller.ask("private/records/changes", ["zoneID": zone])
        #expect(older.keys.sorted() == ["moreComing", "records", "syncToken"])
        #expect(older["records"].elements.map { $0["recordName"].text } == ["z"])
        expectFailure(
            try await caller.post("private/records/changes", [:]), 400, "BAD_REQUEST",
            reason: "cannot get changes in default zone")
        expectFailure(
            try await caller.post("private/records/changes", ["zoneID": ["zoneName": "Nope"]]),
            404, "ZONE_NOT_FOUND")
        expectFailure(
            try await caller.post(
                "private/records/changes", ["zoneID": zone, "syncToken": "garbage"]),
            400, "BAD_REQUEST", reason: "Unknown sync continuation type")
    }

    static func pages(_ caller: Caller) async throws {
        try await caller.makeZone("Many")
        let zone: JSON = ["zoneName": "Many"]
        for batch in [0..<200, 200..<400, 400..<450] {
            let records = try await caller.modify(
                batch.map { Operation.create("r\($0)") }, in: zone)
            #expect(records.allSatisfy { $0["serverErrorCode"] == nil })
        }
        var names: [String] = []
        var sizes: [Int] = []
        var token: String?
        var moreComing = true
        while moreComing, sizes.count < 10 {
            // More than the page's bound is that bound.
            let page = try await caller.changes("Many", after: token, ["resultsLimit": 1_000])
            sizes.append(page["records"].elements.count)
            names += page["records"].elements.map { $0["recordName"].text ?? "?" }
            token = page["syncToken"].text
            moreComing = page["moreComing"] == true
        }
        #expect(sizes == [200, 200, 50])
        #expect(names == (0..<450).map { "r\($0)" })
    }

    static func database(_ caller: Caller) async throws {
        func changes(after token: JSON? = nil) async throws -> (names: [String], JSON) {
            let body: JSON = token.map { ["syncToken": $0] } ?? [:]
            let answer = try await caller.ask("private/changes/database", body)
            return (
                answer["zones"].elements.map { $0["zoneID"]["zoneName"].text ?? "?" }.sorted(),
                answer
            )
        }
        #expect(try await changes().names == [])
        try await caller.makeZone("One")
        try await caller.makeZone("Two")
        // The default zone has no feed and never appears.
        try await caller.create("a")
        let (both, first) = try await changes()
        #expect(both == ["One", "Two"])
        let token = first["syncToken"]
        #expect(try await changes(after: token).names == [])

        try await caller.create("b", in: ["zoneName": "Two"])
        let (one, second) = try await changes(after: token)
        #expect(one == ["Two"])
        // The zone's token misses nothing that the database's told of.
        let inner = try await caller.changes(
            "Two", after: second["zones"][0]["syncToken"].text)
        #expect(inner["records"].elements.map { $0["recordName"].text } == ["b"])
        #expect(second["zones"][0]["deleted"] == false)

        try await caller.deleteZone("One")
        let (gone, third) = try await changes(after: second["syncToken"])
        #expect(gone == ["One"] && third["zones"][0]["deleted"] == true)
        #expect(third["zones"][0]["syncToken"] == "")
        #expect(try await changes(after: third["syncToken"]).names == [])
        let caughtUp = try await changes(after: "")
        #expect(caughtUp.names == [])
        #expect(try await changes(after: caughtUp.1["syncToken"]).names == [])

        for bad in ["garbage", inner["syncToken"].text ?? ""] {
            expectFailure(
                try await caller.post("private/changes/database", ["syncToken": .string(bad)]),
                400, "BAD_REQUEST", reason: "Unknown sync continuation type")
        }
        let mixed = try await caller.changes("Two", after: third["syncToken"].text)
        expectItem(mixed, failed: "BAD_REQUEST", reason: "Unknown sync continuation type")
        // A page holds one of two zones; a deleted zone may be reported again, a live one is never
        // missing.
        try await caller.makeZone("Three")
        let page = try await caller.ask("private/changes/database", ["resultsLimit": 1])
        #expect(page["zones"].elements.count == 1 && page["moreComing"] == true)
        let (rest, end) = try await changes(after: page["syncToken"])
        let seen = rest + page["zones"].elements.map { $0["zoneID"]["zoneName"].text ?? "?" }
        #expect(Set(seen).isSuperset(of: ["Two", "Three"]) && end["moreComing"] == false)
    }
}
