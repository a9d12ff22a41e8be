import StratusDoubles
import StratusModel
import StratusRecords
import Testing

/// Roles and grants in the public database, and the schema the state holds.
@Suite struct AccessTests {
    static let stranger = Principal(kind: .user, userRecordName: "_stranger")
    static let anonymous = Principal(kind: .anonymous)
    static let editor = Principal(
        kind: .user, userRecordName: "_editor", roles: ["editors"])

    private static let title = FieldDefinition(name: "title", type: FieldType(.string))
    static let schema = Schema(
        version: 3,
        types: [
            RecordType(name: "Book", fields: [Self.title]),
            RecordType(
                name: "Diary", fields: [Self.title],
                grants: [
                    Grant(role: "_creator", permissions: [.read, .write]),
                    Grant(role: "_icloud", permissions: [.create]),
                    Grant(role: "editors", permissions: [.write]),
                ]),
        ], roles: ["editors"])

    private func bench() throws -> Bench {
        var bench = Bench()
        #expect(
            try bench.apply(.schema(.install(Self.schema)), as: Bench.system)
                == .schema(version: 3))
        return bench
    }

    private func modify(
        _ bench: inout Bench, as principal: Principal, _ operation: RecordOperation
    ) throws -> RecordRefusal.Reason? {
        try bench.modify(
            in: ZoneID.defaultName, of: Bench.publicDatabase, as: principal, operation)[0].refusal
    }

    private func sees(_ bench: Bench, _ name: String, as principal: Principal) throws -> Bool {
        try bench.lookup(
            name, in: ZoneID.defaultName, database: Bench.publicDatabase, as: principal) != nil
    }

    @Test func `by default everybody reads, users create, creators write`() throws {
        var bench = try self.bench()
        let create = RecordOperation.create("book", [text("title", "Low Tide")])
        #expect(try self.modify(&bench, as: Self.anonymous, create) == .createDenied)
        #expect(try self.modify(&bench, as: Bench.user, create) == nil)
        let update = RecordOperation(.forceUpdate, recordName: "book")
        #expect(try self.modify(&bench, as: Self.stranger, update) == .writeDenied)
        #expect(try self.modify(&bench, as: Self.anonymous, update) == .writeDenied)
        #expect(try self.modify(&bench, as: Self.stranger, .delete("book")) == .writeDenied)
        #expect(try self.modify(&bench, as: Bench.user, update) == nil)
        #expect(try self.sees(bench, "book", as: Self.anonymous))
        #expect(try self.modify(&bench, as: Bench.system, .delete("book")) == nil)
    }

    @Test func `what one may not read does not exist`() throws {
        var bench = try self.bench()
        #expect(try self.modify(&bench, as: Bench.user, .create("d", type: "Diary")) == nil)
        let update = RecordOperation(.forceUpdate, recordName: "d")
        // Whatever is wrong besides, the answer is the one for a name that is not there.
        let attempts = [
            update, RecordOperation(.update, recordName: "d"),
            RecordOperation(.update, recordName: "d", changeTag: "stale"),
            RecordOperation(.replace, recordName: "d", recordType: "Book", changeTag: "1"),
            RecordOperation(.delete, recordName: "d"),
            RecordOperation(.delete, recordName: "d", changeTag: "stale"),
            RecordOperation(.forceDelete, recordName: "d", recordType: "Book"),
        ]
        for principal in [Self.stranger, Self.anonymous] {
            #expect(try !self.sees(bench, "d", as: principal))
            for attempt in attempts {
                let refusal = try self.modify(&bench, as: principal, attempt)
                #expect(refusal == (attempt.kind == .forceDelete ? nil : .notFound))
            }
        }
        #expect(try self.sees(bench, "d", as: Bench.user))
        #expect(try self.sees(bench, "d", as: Bench.user))
        #expect(try self.sees(bench, "d", as: Self.editor), "who may write may read")
        #expect(try self.modify(&bench, as: Self.editor, update) == nil)
    }

    @Test func `references tell nobody of records they may not read`() throws {
        var bench = try self.bench()
        let loan = FieldDefinition(name: "r", type: FieldType(.reference))
        var schema = Self.schema
        schema.version = 4
        for position in schema.types.indices { schema.types[position].fields.insert(loan, at: 0) }
        _ = try bench.apply(.schema(.install(schema)), as: Bench.system)
        func pointing(_ name: String, at target: String, type: String) -> RecordOperation {
            .create(
                name, [reference("r", to: target, .validate, zone: ZoneID.defaultName, owner: "")],
                type: type)
        }
        #expect(try self.modify(&bench, as: Bench.user, .create("d", type: "Diary")) == nil)
        #expect(
            try self.modify(
                &bench, as: Self.stranger, pointing("b", at: "d", type: "Book"))
                == .referenceTargetMissing)
        #expect(try self.modify(&bench, as: Self.stranger, .create("book")) == nil)
        #expect(
            try self.modify(&bench, as: Bench.user, pointing("secret", at: "book", type: "Diary"))
                == nil)
        let result = try bench.modify(
            in: ZoneID.defaultName, of: Bench.publicDatabase, as: Self.stranger, .delete("book"))[0]
        #expect(result == .refused(RecordRefusal(.referenced)))
    }

    @Test func `a user's own record is theirs to save, and nobody else's`() throws {
        var bench = try self.bench()
        let own = RecordOperation(.forceUpdate, recordName: Bench.owner, recordType: "Users")
        #expect(try self.modify(&bench, as: Self.stranger, own) == .nameInvalid)
        #expect(try self.modify(&bench, as: Bench.user, own) == nil)
        #expect(
            try bench.modify(in: ZoneID.defaultName, .create(Bench.owner, type: "Users"))[0]
                .refusal == .nameInvalid)
        #expect(
            try self.modify(&bench, as: Bench.user, .create("_other", type: "Users"))
                == .nameInvalid)
    }

    @Test func `share records are not for anybody to make yet`() throws {
        var bench = try self.bench()
        #expect(
            try self.modify(&bench, as: Bench.user, .create("s", type: "cloudkit.share"))
                == .typeReserved)
    }

    // MARK: Schema

    @Test func `a type or field that the schema does not have is refused`() throws {
        var bench = try self.bench()
        let zone = ZoneID.defaultName
        let results = try bench.modify(
            in: zone, .create("a", type: "Ghost"), .create("b", [text("subtitle", "x")]),
            .create("c", [number("title", 1)]),
            RecordOperation(
                .create, recordName: "d", recordType: "Book", clearedFields: ["ghost"]),
            .create("e", [text("title", "x")]))
        let expected: [RecordRefusal?] = [
            RecordRefusal(.typeUnknown, "Ghost"), RecordRefusal(.fieldUnknown, "subtitle"),
            RecordRefusal(.fieldTypeMismatch, "title"), RecordRefusal(.fieldUnknown, "ghost"), nil,
        ]
        let found = results.map { result -> RecordRefusal? in
            if case .refused(let refusal) = result { refusal } else { nil }
        }
        #expect(found == expected)
    }

    @Test func `a command compiled for a newer schema waits for it`() throws {
        var bench = try self.bench()
        let modify = RecordCommand.modifyRecords(
            ModifyRecords(
                database: Bench.privateDatabase, drawnIncarnation: ZoneIncarnation(1),
                operations: [.create("a")]))
        #expect(
            try bench.apply(modify, schemaVersion: 4)
                == .refused(RequestRefusal(.schemaBehind, "3")))
        guard case .records = try bench.apply(modify, schemaVersion: 2) else {
            Issue.record("an older command is checked against what is held")
            return
        }
    }

    @Test func `an older schema never replaces a newer one`() throws {
        var bench = try self.bench()
        #expect(
            try bench.apply(.schema(.install(Schema(version: 2))), as: Bench.system)
                == .schema(version: 3))
        #expect(try bench.ask(.schema(Bench.container)) == .schema(Self.schema))
    }

    @Test func `indexed fields get index rows in the same commit, and lose them`() throws {
        var bench = Bench()
        let title = FieldDefinition(
            name: "title", type: FieldType(.string), indexes: [.queryable, .sortable])
        let schema = Schema(version: 1, types: [RecordType(name: "Book", fields: [title])])
        _ = try bench.apply(.schema(.install(schema)), as: Bench.system)
        try bench.zones(.create, "Shelves")
        try bench.modify(.create("a", [text("title", "Sea Roads")]))
        let count = bench.rows.count(.index)
        #expect(count > 0)
        let predicate = RecordPredicate(
            recordType: "Book",
            filters: [
                RecordFilter(
                    field: .field("title"), comparator: .equals,
                    operand: .scalar(.string("sea roads")))
            ])
        let ask = QueryPageAsk(
            database: Bench.privateDatabase, zone: "Shelves", predicate: predicate)
        guard case .page(let page) = try bench.ask(.page(ask)) else {
            Issue.record("no page")
            return
        }
        #expect(page.records.map(\.name) == ["a"])
        try bench.modify(.delete("a"))
        #expect(bench.rows.count(.index) == 0)
        try bench.modify(.create("a", [text("title", "Low Tide")]))
        try bench.zones(.delete, "Shelves")
        try bench.finishJobs()
        #expect(bench.rows.count(.index) == 0)
    }
}
