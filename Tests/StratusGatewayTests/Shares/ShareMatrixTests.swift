import StratusGateway
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime
import Testing

@testable import WireScenarios

/// Everybody by every route to the zones of one owner: the zone that is shared, another one of the
/// same owner, and a zone of their own. What is not for somebody answers as what was never there.
@Suite struct ShareMatrixTests {
    private enum Who: String, CaseIterable {
        case owner, reader, writer, former, left, invited, stranger, anonymous, serverKey

        /// Whether the shared zone is there for them, in the shared database.
        var isIn: Bool { self == .reader || self == .writer }
    }

    private enum Zone: CaseIterable { case shared, other, own, unknown, reserved }

    /// One way to ask about a zone.
    private struct Route {
        enum Kind { case reads, writes, leaves }

        var name: String
        var operation: String
        var kind: Kind
        /// The list of the answer, where each zone has an entry.
        var entries: String?
        var body: @Sendable (JSON) -> JSON
    }

    private static let routes: [Route] = [
        Route(name: "lookup", operation: "records/lookup", kind: .reads) {
            ["zoneID": $0, "records": [["recordName": "a"]]]
        },
        Route(name: "lookup of the share", operation: "records/lookup", kind: .reads) {
            ["zoneID": $0, "records": [["recordName": "cloudkit.zoneshare"]]]
        },
        Route(name: "query", operation: "records/query", kind: .reads) {
            ["zoneID": $0, "query": ["recordType": "Book"]]
        },
        Route(name: "changes", operation: "records/changes", kind: .reads) { ["zoneID": $0] },
        Route(name: "caught up", operation: "records/changes", kind: .reads) {
            ["zoneID": $0, "syncToken": ""]
        },
        Route(name: "zone changes", operation: "changes/zone", kind: .reads, entries: "zones") {
            ["zones": [["zoneID": $0]]]
        },
        Route(name: "zone lookup", operation: "zones/lookup", kind: .reads, entries: "zones") {
            ["zones": [$0]]
        },
        Route(name: "nothing", operation: "records/modify", kind: .reads) {
            ["zoneID": $0, "operations": []]
        },
        Route(name: "create", operation: "records/modify", kind: .writes) {
            ["zoneID": $0, "operations": [Operation.create("new")]]
        },
        Route(name: "update", operation: "records/modify", kind: .writes) {
            ["zoneID": $0, "operations": [Operation.of("forceUpdate", "a", recordType: "Book")]]
        },
        Route(name: "delete", operation: "records/modify", kind: .writes) {
            ["zoneID": $0, "operations": [Operation.of("forceDelete", "b")]]
        },
        Route(name: "a new type", operation: "records/modify", kind: .writes) {
            ["zoneID": $0, "operations": [Operation.create("odd", type: "Odd")]]
        },
        Route(name: "a secret", operation: "records/modify", kind: .writes) {
            [
                "zoneID": $0,
                "operations": [
                    Operation.create("s", ["secret": ["value": "x", "isEncrypted": true]])
                ],
            ]
        },
        Route(name: "leave", operation: "zones/modify", kind: .leaves, entries: "zones") {
            ["operations": [["operationType": "delete", "zone": ["zoneID": $0]]]]
        },
        Route(name: "leave by the share", operation: "records/modify", kind: .leaves) {
            ["zoneID": $0, "operations": [Operation.of("delete", "cloudkit.zoneshare")]]
        },
    ]

    private struct Street {
        let wire: InProcess
        let owner: Caller
        let zones: SharedShelves
        let guid: JSON

        func caller(_ who: Who) -> Caller {
            switch who {
            case .owner: self.owner
            case .anonymous: self.owner.acting(as: .anonymous)
            default: self.owner.acting(as: .other(who.rawValue))
            }
        }

        func address(_ zone: Zone) -> JSON {
            let owner = JSON.string(self.zones.ownerName)
            return switch zone {
            case .shared: self.zones.theirs
            case .other: ["zoneName": "Other", "ownerRecordName": owner]
            case .own: ["zoneName": "Own"]
            case .unknown: ["zoneName": "Unknown", "ownerRecordName": owner]
            case .reserved: ["zoneName": "_kv", "ownerRecordName": owner]
            }
        }
    }

    /// A street where everybody has come to their place in the share.
    private static func street(buckets: Int) async throws -> Street {
        let wire = InProcess(
            authenticator: KeyedUsers(ContainerLayout(zoneBucketCount: buckets)))
        let owner = Caller(wire: wire, container: try await wire.makeContainer())
        let zones = try await SharedShelves(owner, friend: "writer")
        try await owner.makeZone("Other")
        try await owner.create("a", in: ["zoneName": "Other"])
        var people: [JSON] = []
        for who in [Who.reader, .writer, .former, .left, .invited] {
            let name = try await SharedShelves.name(of: owner.acting(as: .other(who.rawValue)))
            people.append(
                SharedShelves.invitation(name, who == .reader ? "READ_ONLY" : "READ_WRITE"))
        }
        let share = try await zones.modify(
            SharedShelves.operation("create", ["participants": .array(people)]))
        let street = Street(
            wire: wire, owner: owner, zones: zones, guid: share["shortGUID"] ?? .null)
        for who in [Who.reader, .writer, .former, .left] {
            try await street.caller(who).makeZone("Own")
            let answer = try await zones.resolve(share, as: street.caller(who), "accept")
            #expect(answer.status == 200, "\(answer)")
        }
        _ = try await street.caller(.left).ask(
            "shared/zones/modify",
            ["operations": [["operationType": "delete", "zone": ["zoneID": zones.theirs]]]])
        let current = try await zones.current()
        let former = try await SharedShelves.name(of: street.caller(.former))
        let kept = current["participants"].elements.filter {
            $0["userIdentity"]["userRecordName"].text != former
        }
        let removed = try await zones.modify(
            SharedShelves.operation(
                "update", ["participants": .array(kept)], tag: current["recordChangeTag"]))
        #expect(removed["recordChangeTag"] != nil, "\(removed)")
        return street
    }

    @Test(arguments: [1, 4])
    func `X-01: every route of the shared database, for everybody`(buckets: Int) async throws {
        for route in Self.routes {
            let street = try await Self.street(buckets: buckets)
            let before = try await street.owner.changes("Shelves")
            // Whoever is in comes last: what they change is not counted.
            for who in Who.allCases.filter({ !$0.isIn }) {
                for zone in Zone.allCases {
                    try await Self.expectNothing(route, who, zone, street)
                }
            }
            #expect(try await street.owner.changes("Shelves") == before, "\(route.name)")
            for who in [Who.reader, .writer] {
                for zone in Zone.allCases where zone != .shared {
                    try await Self.expectNothing(route, who, zone, street)
                }
                try await Self.expectServed(route, who, street)
            }
        }
    }

    private static func ask(
        _ route: Route, _ who: Who, _ zone: Zone, _ street: Street
    ) async throws -> WireAnswer {
        try await street.caller(who).post(
            "shared/" + route.operation, route.body(street.address(zone)))
    }

    private static func expectNothing(
        _ route: Route, _ who: Who, _ zone: Zone, _ street: Street
    ) async throws {
        let answer = try await Self.ask(route, who, zone, street)
        let what = Comment(rawValue: "\(who.rawValue), \(route.name), \(zone): \(answer)")
        switch who {
        case .anonymous: #expect(answer.status == 421, what)
        // Keys are good for public databases.
        case .serverKey: #expect(answer.status == 401, what)
        default:
            let told = route.entries.map { answer.json[$0][0] } ?? answer.json
            #expect(answer.status == (route.entries == nil ? 404 : 200), what)
            #expect(told["serverErrorCode"] == "ZONE_NOT_FOUND", what)
            #expect(told["reason"] == "Zone not found", what)
        }
    }

    private static func expectServed(
        _ route: Route, _ who: Who, _ street: Street
    ) async throws {
        let answer = try await Self.ask(route, who, .shared, street)
        let what = Comment(rawValue: "\(who.rawValue), \(route.name): \(answer)")
        #expect(answer.status == 200, what)
        let entry = answer.json[route.entries ?? "records"][0]
        guard route.name != "nothing", route.name != "caught up" else { return }
        if route.name == "a new type" {
            #expect(entry["serverErrorCode"] == "NOT_FOUND", what)
        } else if route.kind == .writes, who == .reader {
            #expect(entry["serverErrorCode"] == "ACCESS_DENIED", what)
            #expect(entry["reason"] == "WRITE operation not permitted", what)
        } else {
            #expect(entry != nil && entry["serverErrorCode"] == nil, what)
        }
    }

    @Test(arguments: [1, 4])
    func `X-04: lists and links, for everybody`(buckets: Int) async throws {
        let street = try await Self.street(buckets: buckets)
        let link: JSON = ["shortGUIDs": [["value": street.guid]]]
        for who in Who.allCases {
            let caller = street.caller(who)
            for operation in ["zones/list", "changes/database", "zones/changes"] {
                let answer = try await caller.post("shared/" + operation, [:])
                let what = Comment(rawValue: "\(who.rawValue), \(operation): \(answer)")
                switch who {
                case .anonymous: #expect(answer.status == 421, what)
                case .serverKey: #expect(answer.status == 401, what)
                default: #expect(answer.json["zones"].elements.count == (who.isIn ? 1 : 0), what)
                }
            }
            for verb in ["resolve", "accept"] {
                let answer = try await caller.post("public/records/" + verb, link)
                let what = Comment(rawValue: "\(who.rawValue), \(verb): \(answer)")
                switch who {
                case .anonymous: expectFailure(answer, 421, "AUTHENTICATION_REQUIRED")
                case .serverKey: expectFailure(answer, 401, "AUTHENTICATION_FAILED")
                case .owner, .reader, .writer, .invited:
                    #expect(answer.json["results"][0]["participantType"] != nil, what)
                case .former, .left, .stranger:
                    expectFailure(
                        answer, 404, "NOT_FOUND", reason: "no share has this short GUID")
                }
            }
        }
    }

    @Test func `the owner's private database is the owner's alone, whoever is in a share`()
        async throws
    {
        let street = try await Self.street(buckets: 1)
        for who in Who.allCases where who != .owner {
            for route in Self.routes {
                let answer = try await street.caller(who).post(
                    "private/" + route.operation, route.body(street.zones.theirs))
                let what = Comment(rawValue: "\(who.rawValue), \(route.name): \(answer)")
                switch who {
                case .anonymous: #expect(answer.status == 421, what)
                case .serverKey: #expect(answer.status == 401, what)
                default:
                    let told = route.entries.map { answer.json[$0][0] } ?? answer.json
                    #expect(told["serverErrorCode"] == "ZONE_NOT_FOUND", what)
                }
            }
        }
    }
}

/// The development users. The one named `serverKey` is what a server-to-server key is.
private struct KeyedUsers: Authenticator {
    private let development: LayoutAuthenticator

    init(_ layout: ContainerLayout) { self.development = LayoutAuthenticator(layout) }

    func needsBody(_ head: RequestHead) -> Bool { false }

    func authenticate(_ request: PresentedRequest) async throws(AuthenticationRefusal)
        -> Authentication
    {
        var authentication = try await self.development.authenticate(request)
        if request.head.query?.contains("stratus-user-serverKey") == true {
            if request.scope != .public { throw .wrong }
            authentication.principal.kind = .serverKey
        }
        return authentication
    }

    func refusalWithoutUser(_ request: PresentedRequest) async -> AuthenticationRefusal {
        await self.development.refusalWithoutUser(request)
    }

    func layout(of container: ContainerReference) async throws -> ContainerLayout {
        try await self.development.layout(of: container)
    }
}
