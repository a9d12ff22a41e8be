import StratusCoding
import StratusDoubles
import StratusModel
import StratusRows
import Testing

@testable import StratusRecords

/// A partition with a zone of `_owner`, and short words to share it. The lists of participants lie
/// in the same partition.
struct ShareBench {
    static let zone = "Shelves"
    static let owner = Bench.owner

    var bench = Bench()
    /// Every save of the share draws from here.
    private(set) var drawnCount: UInt128 = 0
    private var notes: [String: SharedZoneNote] = [:]

    /// With the zone and a record in it.
    init(bugs: PlantedBugs = PlantedBugs(), in database: DatabaseID = Bench.privateDatabase) {
        self.bench.state = DataState(bugs: bugs)
        self.database = database
        do {
            try self.bench.zones(.create, Self.zone, in: database)
            try self.bench.modify(of: database, .create("a", [text("title", "Sea Roads")]))
        } catch { Issue.record(error) }
    }

    let database: DatabaseID

    static func user(_ name: String) -> Principal { Principal(kind: .user, userRecordName: name) }

    static func home(of user: String) -> DatabaseID {
        DatabaseID(container: Bench.container, scope: .private, owner: user)
    }

    // MARK: The owner

    /// Draws for one save, with a list of people where one is given.
    mutating func draft(_ people: [ShareIdentity]? = nil, _ permission: SharePermission? = nil)
        -> ShareDraft
    {
        self.drawnCount += 1_000
        let base = self.drawnCount
        return ShareDraft {
            $0.drawnLink = ShareLink(drawn: base, part: 0, owner: 1)
            $0.drawnOwnerID = base + 1
            $0.statesInvitations = people != nil
            $0.invitations = (people ?? []).enumerated().map { place, identity in
                ShareInvitation {
                    $0.drawnID = base + 2 + UInt128(place)
                    $0.identity = identity
                    $0.permission = permission
                }
            }
        }
    }

    /// Saves the share, over the tag that it has.
    @discardableResult
    mutating func save(
        _ draft: ShareDraft, _ kind: RecordOperation.Kind = .update, fields: [Field] = [],
        tag: String? = nil, as principal: Principal = Bench.user
    ) throws -> ModifiedRecords.Result {
        let current = try self.record()?.tag.text
        return try self.bench.modify(
            of: self.database, as: principal,
            RecordOperation(
                kind, recordName: ShareNames.zoneWide, recordType: ShareNames.type,
                changeTag: tag ?? (kind == .create ? nil : current), fields: fields,
                share: draft))[0]
    }

    mutating func share(
        people: [ShareIdentity] = [], permission: SharePermission? = nil,
        isPublic: SharePermission? = nil
    ) throws {
        var draft = self.draft(people, permission)
        draft.publicPermission = isPublic
        let result = try self.save(draft, .create)
        #expect(result.saved != nil, "\(result)")
    }

    func record(as principal: Principal = Bench.user) throws -> Record? {
        try self.bench.lookup(
            ShareNames.zoneWide, in: Self.zone, database: self.database, as: principal)
    }

    func link() throws -> ShareLink {
        try #require(try self.currentLink())
    }

    /// Nil: nothing is shared.
    func currentLink() throws -> ShareLink? {
        try self.record()?.shortGUID.flatMap { ShareLink(text: $0) }
    }

    // MARK: Everybody else

    @discardableResult
    mutating func join(_ user: String, by link: ShareLink? = nil) throws -> Bool {
        self.drawnCount += 1_000
        let join = JoinShare(self.database) {
            $0.link = ShareLink()
            $0.drawnID = self.drawnCount
            $0.deviceID = "2"
        }
        var asked = join
        asked.link = try link ?? self.link()
        let result = try self.bench.apply(asked, as: Self.user(user))
        guard case .success(let joined) = result else { return false }
        self.notes[user] = joined.note
        return true
    }

    @discardableResult
    mutating func leave(_ user: String) throws -> Bool {
        let leave = LeaveShares(self.database) {
            $0.zone = Self.zone
            $0.deviceID = "2"
        }
        let result = try self.bench.apply(leave, as: Self.user(user))
        guard case .success(let note) = result else { return false }
        self.notes[user] = note
        return true
    }

    /// Tells a participant's list what the last answer said.
    @discardableResult
    mutating func note(_ user: String, _ note: SharedZoneNote? = nil) throws -> Bool {
        let told = try #require(note ?? self.notes[user])
        let noting = NoteSharedZone(Self.home(of: user)) {
            $0.owner = Self.owner
            $0.note = told
        }
        return try self.bench.apply(noting).get().isNews
    }

    func lastNote(of user: String) -> SharedZoneNote? { self.notes[user] }

    func listed(_ user: String) throws -> [String] {
        let ask = SharedZonesAsk(Self.home(of: user)) { $0.limit = 200 }
        return try self.ask(ask, as: Self.user(user)).get().zones.map(\.name.zone)
    }

    func ask<Question: PartitionQuestion>(
        _ question: Question, as principal: Principal
    ) throws -> Result<Question.Answer, Question.State.Refusal> {
        var state = self.bench.state
        let query = Query(kind: .records, body: question.encoded(as: principal))
        return try Question.result(
            decoding: state.answer(query, over: self.bench.rows.view).body)
    }

    func detail(as principal: Principal) throws -> ShareDetail? {
        let ask = ShareDetailAsk(self.database) { $0.zone = Self.zone }
        guard case .success(let detail) = try self.ask(ask, as: principal) else { return nil }
        return detail
    }

    func byLink(_ link: ShareLink? = nil, as principal: Principal) throws -> SharedLink? {
        let link = try link ?? self.link()
        return try self.ask(ShareByLinkAsk(self.database) { $0.link = link }, as: principal).get()
    }

    func reads(_ user: String, _ name: String = "a") throws -> Bool {
        try self.bench.lookup(
            name, in: Self.zone, database: self.database, as: Self.user(user)) != nil
    }

    mutating func writes(_ user: String) throws -> Bool {
        let operation = RecordOperation(
            .forceUpdate, recordName: "a", fields: [text("title", user)])
        let outcome = try self.bench.apply(
            .modifyRecords(
                ModifyRecords(
                    database: self.database, zone: Self.zone,
                    drawnIncarnation: ZoneIncarnation(1), operations: [operation])),
            as: Self.user(user))
        guard case .records(let modified) = outcome else { return false }
        return modified.results[0].saved != nil
    }
}

extension ShareBench {
    /// Somebody's own zone, with a record in it.
    mutating func makeOwnZone(in home: DatabaseID) throws {
        let owner = Self.user(home.owner)
        _ = try self.bench.apply(
            .modifyZones(
                ModifyZones(
                    database: home,
                    operations: [
                        ModifyZones.Operation(
                            .create, zone: "Own", drawnIncarnation: ZoneIncarnation(5))
                    ])), as: owner)
        try self.bench.modify(in: "Own", of: home, as: owner, .create("a"))
    }
}
