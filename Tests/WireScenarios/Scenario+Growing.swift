import Testing

/// Containers whose schema grows just in time: a batch ends there as it does where its types exist.
extension Scenario {
    static let newParents = Scenario(
        "promise: a batch of a new parent type and a known child type is saved, in any order"
    ) { caller in
        try await caller.makeZone("Shelves")
        var round = 0
        for place in Growth.places {
            _ = try await place.modify(
                caller, [Operation.create("known\(place.database)", type: "Leaf")])
            for childFirst in [false, true] {
                for byReference in [false, true] {
                    round += 1
                    let parent: JSON = ["recordName": .string("p\(round)")]
                    var child: JSON = [
                        "recordName": .string("c\(round)"), "recordType": "Leaf", "fields": [:],
                    ]
                    child =
                        byReference
                        ? child.setting(
                            "fields",
                            ["of": ["value": parent.setting("action", "VALIDATE")]])
                        : child.setting("parent", parent)
                    let operations: [JSON] = [
                        // Clients clear fields that they do not have yet: it clears nothing.
                        Operation.create(
                            "p\(round)", type: "Branch\(round)", ["later": ["value": nil]]),
                        ["operationType": "create", "record": child],
                    ]
                    let items = try await place.modify(
                        caller, childFirst ? operations.reversed() : operations)
                    #expect(
                        items.allSatisfy { $0["recordChangeTag"] != nil },
                        "\(place.database) \(childFirst) \(byReference): \(items)")
                }
            }
        }
    }

    static let grownLikeKnown = Scenario(
        "promise: a batch ends where its types are new as where they are known"
    ) { caller in
        for seed in [3, 41, 59] as [UInt64] {
            for place in Growth.places {
                let (fresh, known) = (
                    Caller(wire: caller.wire, container: try await caller.wire.makeContainer()),
                    Caller(wire: caller.wire, container: try await caller.wire.makeContainer())
                )
                for caller in [fresh, known] { try await caller.makeZone("Shelves") }
                for type in Growth.types {
                    let warm = Operation.create("w", type: .init(type), Growth.fields(.max))
                    _ = try await place.modify(known, [warm])
                    _ = try await place.modify(known, [Operation.of("forceDelete", "w")])
                }
                // In public buckets a deletion may meet a VALIDATE reference that is being made:
                // who is faster differs from run to run.
                var growth = Growth(seed: seed, validates: place.database == "private")
                for batch in 1...12 {
                    let operations = growth.batch()
                    let (one, two) = (
                        try await place.modify(fresh, operations),
                        try await place.modify(known, operations)
                    )
                    #expect(
                        one.map(Growth.outcome) == two.map(Growth.outcome),
                        "seed \(seed), \(place.database), batch \(batch): \(operations)")
                }
            }
        }
    }
}

/// Random batches over few names and types, so that they meet.
private struct Growth {
    struct Place: Sendable {
        var database: String
        var zone: JSON?
        var atomic: JSON?

        func modify(_ caller: Caller, _ operations: [JSON]) async throws -> [JSON] {
            try await caller.modify(
                operations, in: self.zone, database: self.database, atomic: self.atomic)
        }
    }

    /// A default zone's batches are never atomic. The public one may lie in buckets.
    static let places = [
        Place(database: "private", zone: ["zoneName": "Shelves"], atomic: true),
        Place(database: "private", zone: ["zoneName": "Shelves"], atomic: false),
        Place(database: "public"),
    ]
    static let types = ["Root", "Branch", "Leaf", "Fruit"]

    private var state: UInt64
    private let validates: Bool

    init(seed: UInt64, validates: Bool) {
        self.state = seed
        self.validates = validates
    }

    private mutating func draw(_ bound: Int) -> Int {
        self.state = self.state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return Int((self.state >> 33) % UInt64(bound))
    }

    /// Every field has one type, whatever record it is of.
    static func fields(_ mask: Int) -> JSON {
        var fields: JSON = [:]
        if mask & 1 != 0 { fields = fields.setting("title", ["value": "t"]) }
        if mask & 2 != 0 { fields = fields.setting("count", ["value": 7]) }
        return fields
    }

    private mutating func name() -> String { "r\(self.draw(9))" }

    mutating func batch() -> [JSON] {
        var operations: [JSON] = []
        var names: Set<String> = []
        for _ in 0...self.draw(4) {
            let name = self.name()
            guard names.insert(name).inserted else { continue }
            if self.draw(7) == 0 {
                operations.append(Operation.of(self.draw(2) == 0 ? "delete" : "forceDelete", name))
                continue
            }
            let kinds = ["create", "create", "forceUpdate", "forceReplace", "update"]
            let kind = kinds[self.draw(kinds.count)]
            var fields = Self.fields(self.draw(4))
            if self.draw(3) == 0 {
                let action: JSON = self.validates ? "VALIDATE" : "NONE"
                fields = fields.setting(
                    "of", ["value": ["recordName": .string(self.name()), "action": action]])
            }
            var record: JSON = [
                "recordName": .string(name), "recordType": .string(Self.types[self.draw(4)]),
                "fields": fields,
            ]
            // No record here comes to this tag.
            if kind == "update" { record = record.setting("recordChangeTag", "zzzz") }
            if self.draw(3) == 0 {
                record = record.setting("parent", ["recordName": .string(self.name())])
            }
            operations.append(["operationType": .string(kind), "record": record])
        }
        return operations
    }

    /// What became of an operation, without what differs from server to server.
    static func outcome(_ item: JSON) -> String {
        guard let code = item["serverErrorCode"].text else {
            return "\(item["recordName"].text ?? "?") \(item["fields"].keys)"
        }
        return "\(item["recordName"].text ?? "?") \(code) \(item["reason"].text ?? "")"
    }
}
