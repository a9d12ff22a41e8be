import StratusDoubles
import StratusGateway
import StratusHTTP
import StratusModel
import Testing

@testable import WireScenarios

/// What somebody who meant harm has tried with the zones of others.
@Suite struct ShareAttackTests {
    private static func shelves(_ wire: InProcess) async throws -> SharedShelves {
        try await SharedShelves(
            Caller(wire: wire, container: try await wire.makeContainer()))
    }

    @Test func `a link that is asked for again and again fills no answer`() async throws {
        let wire = InProcess()
        let shelves = try await Self.shelves(wire)
        let picture = Base64.encode(Bytes(repeating: 9, count: 500_000))
        let share = try await shelves.modify(
            SharedShelves.operation(
                "create",
                [
                    "publicPermission": "READ_ONLY",
                    "fields": [
                        "cloudkit.thumbnailImageData": ["value": .string(picture), "type": "BYTES"]
                    ],
                ]))
        let link = ["value": share["shortGUID"] ?? .null] as JSON
        let links = JSON.array(Array(repeating: link, count: 40))
        for verb in ["resolve", "accept"] {
            let answer = try await shelves.friend.post(
                "public/records/\(verb)", ["shortGUIDs": links])
            #expect(answer.status == 200 && answer.body.count < 6 << 20)
            let codes = answer.json["results"].elements.map { $0["serverErrorCode"].text }
            #expect(codes.count == 40 && codes.first == .some(nil), "\(codes)")
            #expect(codes.last == "TRY_AGAIN_LATER", "\(codes)")
        }
        #expect(try await SharedShelves.list(shelves.friend).count == 1)
    }

    @Test func `more zones than a token has room for are told, and the feed ends`() async throws {
        let wire = InProcess()
        let shelves = try await Self.shelves(wire)
        var wanted: Set<String> = []
        for number in 0..<60 {
            let name = String(repeating: "z", count: 200) + "\(number)"
            wanted.insert(name)
            try await shelves.owner.makeZone(name)
            let share = try await shelves.owner.modify(
                [
                    SharedShelves.operation(
                        "create",
                        ["participants": [SharedShelves.invitation(shelves.friendName)]])
                ], in: ["zoneName": .string(name)])
            try await shelves.accept(share[0])
        }
        var (told, token, more, pages) = (Set<String>(), JSON?.none, true, 0)
        while more, pages < 100 {
            var body: JSON = ["resultsLimit": 5]
            if let token { body = body.setting("syncToken", token) }
            let page = try await shelves.friend.ask("shared/changes/database", body)
            told.formUnion(page["zones"].elements.compactMap { $0["zoneID"]["zoneName"].text })
            token = page["syncToken"]
            more = page["moreComing"] == true
            pages += 1
        }
        #expect(!more && told == wanted, "\(pages) pages")
        // A change of the last one is told as well.
        let last = String(repeating: "z", count: 200) + "9"
        try await shelves.owner.create("new", in: ["zoneName": .string(last)])
        let page = try await shelves.friend.ask(
            "shared/changes/database", ["resultsLimit": 5, "syncToken": token ?? .null])
        let names = page["zones"].elements.compactMap { $0["zoneID"]["zoneName"].text }
        #expect(names.contains(last) && page["moreComing"] == false)
    }

    @Test func `nothing hangs on a share, so its owner can end it`() async throws {
        let wire = InProcess()
        let shelves = try await Self.shelves(wire)
        try await shelves.accept(try await shelves.share())
        for action in ["VALIDATE", "DELETE_SELF"] as [JSON] {
            let record: JSON = [
                "recordName": "trap", "recordType": "Book",
                "fields": [
                    "author": [
                        "value": ["recordName": "cloudkit.zoneshare", "action": action],
                        "type": "REFERENCE",
                    ]
                ],
            ]
            let items = try await shelves.friend.modify(
                [["operationType": "create", "record": record]], in: shelves.theirs,
                database: "shared")
            expectItem(items[0], failed: "VALIDATING_REFERENCE_ERROR")
        }
        let child: JSON = [
            "recordName": "trap", "recordType": "Book",
            "parent": ["recordName": "cloudkit.zoneshare"],
        ]
        let items = try await shelves.friend.modify(
            [["operationType": "create", "record": child]], in: shelves.theirs, database: "shared")
        #expect(items[0]["serverErrorCode"] != nil, "\(items)")
        let gone = try await shelves.modify(Operation.of("forceDelete", SharedShelves.name))
        #expect(gone["deleted"] == true, "\(gone)")
        try await shelves.expectClosed(to: shelves.friend)
    }

    @Test func `a share names its owner as who changed it, whoever came or left`() async throws {
        let wire = InProcess()
        let shelves = try await Self.shelves(wire)
        let other = shelves.owner.acting(as: .other("sue"))
        let sue = try await SharedShelves.name(of: other)
        let share = try await shelves.modify(
            SharedShelves.operation(
                "create",
                [
                    "participants": [
                        SharedShelves.invitation(shelves.friendName),
                        SharedShelves.invitation(sue),
                    ]
                ]))
        try await shelves.accept(share)
        let seen = try await shelves.resolve(share, as: other)
        #expect(seen.status == 200 && !seen.text.contains(shelves.friendName), "\(seen.text)")
        _ = try await shelves.friend.modify(
            [Operation.of("forceDelete", SharedShelves.name)], in: shelves.theirs,
            database: "shared")
        let later = try await shelves.resolve(share, as: other)
        #expect(later.status == 200 && !later.text.contains(shelves.friendName), "\(later.text)")
    }

    @Test func `whoever left and came again by the link is told of the zone`() async throws {
        let wire = InProcess()
        let shelves = try await Self.shelves(wire)
        let share = try await shelves.modify(
            SharedShelves.operation("create", ["publicPermission": "READ_WRITE"]))
        let friend = shelves.friend
        try await shelves.accept(share)
        let first = try await friend.ask("shared/changes/database", [:])
        _ = try await friend.ask(
            "shared/zones/modify",
            ["operations": [["operationType": "delete", "zone": ["zoneID": shelves.theirs]]]])
        try await shelves.accept(share)
        let again = try await friend.ask(
            "shared/changes/database", ["syncToken": first["syncToken"] ?? .null])
        #expect(again["zones"].elements.count == 1 && again["zones"][0]["deleted"] == false)
        let rest = try await friend.ask(
            "shared/changes/database", ["syncToken": again["syncToken"] ?? .null])
        #expect(rest["zones"] == [])
    }

    @Test func `a list that means somebody else than it says removes nobody`() async throws {
        let wire = InProcess()
        let shelves = try await Self.shelves(wire)
        let sue = try await SharedShelves.name(of: shelves.owner.acting(as: .other("sue")))
        try await shelves.accept(try await shelves.share())
        let id = try #require(
            try await shelves.current()["participants"].elements.last?["participantId"])
        let entries: [JSON] = [
            SharedShelves.invitation(shelves.friendName).setting("type", "OWNER"),
            SharedShelves.invitation(sue).setting("participantId", id),
            SharedShelves.invitation(sue).setting("type", "PUBLIC_USER"),
        ]
        for entry in entries {
            let tag = try await shelves.current()["recordChangeTag"]
            let item = try await shelves.modify(
                SharedShelves.operation("update", ["participants": [entry]], tag: tag))
            expectItem(item, failed: "BAD_REQUEST")
            #expect(try await SharedShelves.list(shelves.friend).count == 1)
        }
        // What says nothing of itself stays as it is.
        let tag = try await shelves.current()["recordChangeTag"]
        let same = try await shelves.modify(
            SharedShelves.operation(
                "update",
                [
                    "publicPermission": "UNKNOWN",
                    "participants": [
                        SharedShelves.invitation(shelves.friendName, "UNKNOWN").setting(
                            "type", "PUBLIC_USER")
                    ],
                ], tag: tag))
        #expect(same["publicPermission"] == "NONE", "\(same)")
        #expect(same["participants"].elements.last?["permission"] == "READ_WRITE", "\(same)")
        #expect(try await SharedShelves.list(shelves.friend).count == 1)
    }

    @Test func `a named request is repeated in vain once its sender was removed`() async throws {
        let wire = InProcess()
        let shelves = try await Self.shelves(wire)
        try await shelves.accept(try await shelves.share())
        let body: JSON = [
            "zoneID": shelves.theirs,
            "operations": [
                [
                    "operationType": "forceUpdate",
                    "record": [
                        "recordName": "a", "recordType": "Book",
                        "fields": ["title": ["value": "Mine"]],
                    ],
                ]
            ],
        ]
        func send() async throws -> WireAnswer {
            try await wire.send(
                WireRequest(
                    method: "POST", target: shelves.friend.target("shared/records/modify"),
                    headers: [("X-Stratus-Request-ID", "once")],
                    body: Array(body.description.utf8)))
        }
        #expect(try await send().status == 200)
        let tag = try await shelves.current()["recordChangeTag"]
        _ = try await shelves.modify(
            SharedShelves.operation("update", ["participants": []], tag: tag))
        expectFailure(try await send(), 404, "ZONE_NOT_FOUND")
    }
}
