import StratusModel
import Testing

@testable import WireScenarios

/// Bodies that nobody would write, made from bodies that people do.
@Suite struct HostileInputTests {
    static let bodies: [(operation: String, body: JSON)] = [
        (
            "records/modify",
            [
                "zoneID": ["zoneName": "Shelves", "ownerRecordName": nil], "atomic": true,
                "desiredKeys": ["title"], "numbersAsStrings": false,
                "operations": [
                    Operation.create(
                        "a",
                        [
                            "title": ["value": "t", "type": "STRING"], "pages": ["value": 1],
                            "place": ["value": ["latitude": 1.5, "longitude": 2.5]],
                            "author": ["value": ["recordName": "b", "action": "NONE"]],
                            "tags": ["value": ["x", "y"], "type": "STRING_LIST"],
                        ]),
                    Operation.of("update", "a", tag: "1", fields: ["pages": nil]),
                    Operation.of("forceDelete", "b"),
                ],
            ]
        ),
        (
            "records/query",
            [
                "zoneID": ["zoneName": "Shelves"], "zoneWide": false, "resultsLimit": 10,
                "continuationMarker": nil,
                "query": [
                    "recordType": "Book",
                    "filterBy": [
                        [
                            "fieldName": "pages", "comparator": "GREATER_THAN", "distance": nil,
                            "fieldValue": ["value": 4, "type": "INT64"],
                        ],
                        [
                            "systemFieldName": "recordName", "comparator": "IN",
                            "fieldValue": ["value": [["recordName": "a"]]],
                        ],
                    ],
                    "sortBy": [
                        [
                            "fieldName": "place", "ascending": true,
                            "relativeLocation": ["latitude": 1.5, "longitude": 2.5],
                        ]
                    ],
                ],
            ]
        ),
        (
            "records/lookup",
            [
                "records": [["recordName": "a", "desiredKeys": ["x"]], "b"],
                "zoneID": ["zoneName": "Shelves"],
            ]
        ),
        (
            "changes/zone",
            [
                "zones": [
                    [
                        "zoneID": ["zoneName": "Shelves"], "syncToken": "", "resultsLimit": 3,
                        "reverse": true, "desiredRecordTypes": ["Book"],
                    ]
                ]
            ]
        ),
        ("changes/database", ["syncToken": "", "resultsLimit": 1]),
        ("zones/lookup", ["zones": [["zoneName": "Shelves"], "_defaultZone"]]),
        (
            "zones/modify",
            [
                "operations": [
                    ["operationType": "create", "zone": ["zoneID": ["zoneName": "Other"]]],
                    ["operationType": "delete", "zone": ["zoneID": ["zoneName": "Gone"]]],
                ]
            ]
        ),
        ("records/resolve", ["shortGUIDs": [["value": "x", "shouldFetchRootRecord": true]]]),
    ]

    @Test(arguments: 0..<8 as Range<UInt64>)
    func `G-33 X-22 every mutation of a request gets a documented answer`(seed: UInt64) async throws
    {
        let wire = InProcess()
        let caller = Caller(wire: wire, container: try await wire.makeContainer())
        try await caller.makeZone("Shelves")
        var random = SeededGenerator(seed: seed)
        for round in 0..<150 {
            let (operation, body) = Self.bodies.randomElement(using: &random)!
            var mutant = body
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                mutant = mutant.mutated(using: &random)
            }
            let database = operation == "records/resolve" ? "public" : "private"
            let answer = try await caller.post("\(database)/\(operation)", mutant)
            let context = "seed \(seed), round \(round), \(operation) \(mutant): \(answer)"
            #expect(answer.status < 500, "\(context)")
            #expect(answer.json != nil, "\(context)")
            #expect(answer.json.codes.allSatisfy { documentedCodes.contains($0) }, "\(context)")
        }
        // Whatever that was, the server is as it was.
        try await caller.create("still", fields: ["title": ["value": "here"]])
    }

    @Test(arguments: 0..<4 as Range<UInt64>)
    func `every mutation of a request's bytes gets a documented answer`(seed: UInt64) async throws {
        let wire = InProcess()
        let caller = Caller(wire: wire, container: try await wire.makeContainer())
        var random = SeededGenerator(seed: seed)
        for round in 0..<150 {
            let (operation, body) = Self.bodies.randomElement(using: &random)!
            var bytes = Array(body.description.utf8)
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let position = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes[position] = .random(in: .min ... .max, using: &random)
                case 1: bytes.remove(at: position)
                default: bytes.insert(.random(in: .min ... .max, using: &random), at: position)
                }
            }
            let answer = try await wire.send(
                WireRequest(
                    method: "POST", target: caller.target("private/\(operation)"), body: bytes))
            #expect(
                answer.status < 500 && answer.json != nil,
                "seed \(seed), round \(round), \(String(decoding: bytes, as: UTF8.self)): \(answer)"
            )
        }
    }
}

extension JSON {
    private static let strangers: [JSON] = [
        nil, true, 0, -1, 1.5, "", "x", [], [:], [nil], ["value": nil], .number("1e300"),
        .number("-9223372036854775808"), .number("99999999999999999999"), "_defaultZone", "\u{0}",
        .string(String(repeating: "n", count: 300)), "___recordID", [[[[]]]], "STRING", "ASSETID",
        "NEAR", "Users", "cloudkit.share", ["recordName": "a"], "ÄÖ😀",
    ]

    /// One value somewhere inside replaced by something else, removed, or repeated.
    func mutated(using random: inout SeededGenerator) -> JSON {
        if Int.random(in: 0..<4, using: &random) == 0 {
            return Self.strangers.randomElement(using: &random)!
        }
        switch self {
        case .array(var elements) where !elements.isEmpty:
            let position = Int.random(in: 0..<elements.count, using: &random)
            switch Int.random(in: 0..<6, using: &random) {
            case 0: elements.remove(at: position)
            case 1: elements.append(elements[position])
            default: elements[position] = elements[position].mutated(using: &random)
            }
            return .array(elements)
        case .object(var members) where !members.isEmpty:
            let position = Int.random(in: 0..<members.count, using: &random)
            switch Int.random(in: 0..<6, using: &random) {
            case 0: members.remove(at: position)
            case 1: members.append(members[position])
            default:
                members[position].value = members[position].value.mutated(using: &random)
            }
            return .object(members)
        case .null, .bool, .number, .string, .array, .object:
            return Self.strangers.randomElement(using: &random)!
        }
    }
}
