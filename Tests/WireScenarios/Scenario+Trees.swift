import Testing

extension EngineShelf {
    /// A save of a record below another one.
    static func child(
        _ name: JSON, of parent: JSON, _ kind: JSON = "create", title: JSON = "Low Tide"
    ) -> JSON {
        [
            "operationType": kind,
            "record": [
                "recordName": name, "recordType": "Book", "parent": ["recordName": parent],
                "fields": ["title": ["value": title]],
            ],
        ]
    }

    /// A save that the server itself refuses, before any partition is asked.
    static func broken(_ name: JSON) -> JSON {
        [
            "operationType": "create",
            "record": [
                "recordName": name, "recordType": "Book", "fields": ["pages": ["value": "x"]],
            ],
        ]
    }
}

/// Parents and children in custom zones.
extension Scenario {
    static let trees: [Scenario] = [
        Scenario("engines: a parent must exist, or be made in the same batch") { caller in
            let shelf = try await EngineShelf(caller)
            let missing = try await shelf.modify(EngineShelf.child("c", of: "p"))
            expectItem(
                missing[0], failed: "VALIDATING_REFERENCE_ERROR",
                reason: "the parent 'p' does not exist", recordName: "c")
            #expect(missing[0]["stratus"] == nil)
            for isAtomic in [false, true] as [JSON] {
                let name = JSON.string(isAtomic == true ? "q" : "p")
                let kid = JSON.string(isAtomic == true ? "d" : "c")
                let made = try await shelf.modify(
                    EngineShelf.child(kid, of: name), Operation.create(name.text ?? ""),
                    atomic: isAtomic)
                #expect(made[0]["parent"]["recordName"] == name, "\(made)")
            }
            // A child's save leaves its parent as it is.
            let before = try await caller.lookUp(["p"], in: shelf.zone)[0]
            _ = try await shelf.modify(EngineShelf.child("c", of: "p", "forceUpdate"))
            #expect(try await caller.lookUp(["p"], in: shelf.zone)[0] == before)
        },
        Scenario("engines: a child whose parent is refused in the batch says why") { caller in
            let shelf = try await EngineShelf(caller)
            let refused = try await shelf.modify(
                EngineShelf.child("g", of: "c"), EngineShelf.child("c", of: "p"),
                EngineShelf.broken("p"), Operation.create("a"))
            expectItem(refused[2], failed: "BAD_REQUEST", recordName: "p")
            let why = refused[2]["reason"].text ?? ""
            for (item, parent) in [(refused[1], "p"), (refused[0], "c")] {
                expectItem(
                    item, failed: "BAD_REQUEST",
                    reason: "the parent '\(parent)' was refused: \(why)")
                #expect(
                    item["stratus"] == ["code": "PARENT_REFUSED", "recordName": .string(parent)])
            }
            #expect(refused[3]["recordChangeTag"] != nil, "\(refused)")
            // The partition refuses it: another code.
            let stale = try await shelf.modify(
                Operation.of("update", "p", tag: "1"), EngineShelf.child("c", of: "p"))
            expectItem(stale[0], failed: "NOT_FOUND")
            expectItem(stale[1], failed: "NOT_FOUND")
            #expect(stale[1]["stratus"]["code"] == "PARENT_REFUSED", "\(stale)")
            // In an atomic batch the child is innocent, whoever refuses the parent.
            for parent in [EngineShelf.broken("p"), Operation.of("update", "p", tag: "1")] {
                let atomic = try await shelf.modify(
                    EngineShelf.child("c", of: "p"), parent, atomic: true)
                expectItem(atomic[0], failed: "ATOMIC_ERROR")
                #expect(atomic[0]["stratus"] == nil && atomic[1]["serverErrorCode"] != nil)
            }
            // Two that wait for each other are nobody's cause.
            let pair = try await shelf.modify(
                EngineShelf.child("x", of: "y"), EngineShelf.child("y", of: "x"))
            for item in pair { expectItem(item, failed: "VALIDATING_REFERENCE_ERROR") }
        },
        Scenario("engines: a parent whose children stay is not deleted") { caller in
            let shelf = try await EngineShelf(caller)
            let made = try await shelf.modify(
                Operation.create("p"), EngineShelf.child("k", of: "p"),
                EngineShelf.child("l", of: "k"))
            #expect(made.allSatisfy { $0["recordChangeTag"] != nil }, "\(made)")
            for delete in [
                Operation.of("forceDelete", "p"),
                Operation.of("delete", "p", tag: made[0]["recordChangeTag"]),
            ] {
                expectItem(
                    try await shelf.modify(delete)[0], failed: "VALIDATING_REFERENCE_ERROR",
                    reason: "record 'p' is the parent of 'k'", recordName: "p")
            }
            // In one batch, the parent first, some of them and all.
            let some = try await shelf.modify(
                Operation.of("forceDelete", "p"), Operation.of("forceDelete", "k"))
            expectItem(some[0], failed: "VALIDATING_REFERENCE_ERROR")
            expectItem(
                some[1], failed: "VALIDATING_REFERENCE_ERROR",
                reason: "record 'k' is the parent of 'l'")
            let all = try await shelf.modify(
                Operation.of("forceDelete", "p"), Operation.of("forceDelete", "k"),
                Operation.of("forceDelete", "l"), atomic: true)
            #expect(all.allSatisfy { $0["deleted"] == true }, "\(all)")
            // Or the child moves elsewhere.
            _ = try await shelf.modify(
                Operation.create("p"), Operation.create("q"), EngineShelf.child("k", of: "p"))
            let moved = try await shelf.modify(
                Operation.of("forceDelete", "p"), EngineShelf.child("k", of: "q", "forceUpdate"))
            #expect(moved[0]["deleted"] == true, "\(moved)")
            #expect(moved[1]["parent"]["recordName"] == "q", "\(moved)")
        },
        Scenario("engines: children that refer to their parent by DELETE_SELF go with it") {
            caller in
            let shelf = try await EngineShelf(caller)
            let up: JSON = [
                "value": ["recordName": "p", "action": "DELETE_SELF"], "type": "REFERENCE",
            ]
            _ = try await shelf.modify(
                Operation.create("p"),
                [
                    "operationType": "create",
                    "record": [
                        "recordName": "k", "recordType": "Book", "parent": ["recordName": "p"],
                        "fields": ["author": up],
                    ],
                ])
            let gone = try await shelf.modify(Operation.of("forceDelete", "p"))
            #expect(gone[0]["deleted"] == true, "\(gone)")
            expectItem(try await caller.lookUp(["k"], in: shelf.zone)[0], failed: "NOT_FOUND")
        },
        Scenario("engines: no record comes to stand below itself") { caller in
            let shelf = try await EngineShelf(caller)
            _ = try await shelf.modify(
                Operation.create("a"), EngineShelf.child("b", of: "a"),
                EngineShelf.child("c", of: "b"))
            for parent in ["a", "b", "c"] as [JSON] {
                expectItem(
                    try await shelf.modify(EngineShelf.child("a", of: parent, "forceUpdate"))[0],
                    failed: "BAD_REQUEST")
            }
        },
        Scenario("engines: participants of a share meet the rule of parents too") { caller in
            let shelves = try await SharedShelves(caller)
            try await shelves.accept(try await shelves.share())
            func modify(_ operations: [JSON]) async throws -> [JSON] {
                try await shelves.friend.modify(
                    operations, in: shelves.theirs, database: "shared", atomic: false)
            }
            let made = try await modify([EngineShelf.child("k", of: "a")])
            #expect(made[0]["parent"]["recordName"] == "a", "\(made)")
            expectItem(
                try await modify([Operation.of("forceDelete", "a")])[0],
                failed: "VALIDATING_REFERENCE_ERROR", reason: "record 'a' is the parent of 'k'")
            let conflict = try await modify([Operation.create("a")])
            expectItem(conflict[0], failed: "CONFLICT")
            #expect(conflict[0]["serverRecord"]["recordName"] == "a", "\(conflict)")
        },
    ]
}
