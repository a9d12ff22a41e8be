import StratusConsensus
import StratusDoubles
import StratusModel
import StratusPush
import StratusRecords

/// What a simulated cluster with subscriptions knows beside its nodes: the model of each log, the
/// rows of devices and roles, the providers, and what everybody was told.
///
/// `Sendable` is unchecked: a simulation runs in one thread.
final class PushWorld: @unchecked Sendable {
    struct DeviceRow {
        var user: String
        /// Simulated milliseconds; nil: it is not registered.
        var registeredAt: Int64?
    }

    struct Provider {
        /// Simulated nanoseconds.
        var downUntil: Int64 = 0
        /// Until when no other outage takes the place of this one.
        var heldUntil: Int64 = 0
        /// It says that it is not available; otherwise it says nothing.
        var answersWhileDown = false
        /// When its devices went, simulated milliseconds, and until when it says so.
        var gone: [Bytes: (at: Int64, until: Int64)] = [:]
    }

    struct Telling: Hashable {
        var group: GroupID
        var follower: PushLedger.FollowerName
        var begun: LogIndex
    }

    struct Told: Hashable {
        var generation: Int
        var change: PushLedger.ChangeName
    }

    static let type = "Note"
    static let number = "n"
    static let filtered = "a"
    /// Who has it may read notes of the public database; who changes them has the other one.
    static let role = "member"
    static let writer = Principal(kind: .user, userRecordName: "_writer", roles: ["writer"])
    static let shelves = RecordWorld.shelves
    static let users = RecordWorld.users.map(\.userRecordName)
    static let providerCount = 3
    static let deviceCount = 5
    static let pollCount = 3
    /// The last seconds of a permission that nobody has any more: a second in which credentials are
    /// believed, two in which a permission is judged again, and clocks that are slow.
    static let staleness: Int64 = 4_000_000_000

    let executor: SimulatedExecutor
    let bugs: PlantedBugs
    let dispatcherBounds: PushDispatcher.Bounds
    var random: SeededGenerator
    var ledgers: [GroupID: PushLedger] = [:]
    var devices: [Bytes: DeviceRow] = [:]
    var providers = Array(repeating: Provider(), count: PushWorld.providerCount)
    /// Groups whose zone and schema are there.
    var prepared: Set<GroupID> = []
    /// Who holds the poll of a token: one page polls at one node at a time.
    var claims: [Bytes: ProcessLife] = [:]
    private var isMember: [String: Bool] = [:]
    /// Until when nobody gives them the role.
    private var suspendedUntil: [String: Int64] = [:]
    /// When each came to be a member, and ceased to be.
    private var flips: [String: [(at: Int64, isMember: Bool)]] = [:]
    private var told: [Telling: Set<Told>] = [:]
    private var toldOnce: [Telling: [Int: PushLedger.ChangeName]] = [:]
    private var identities: [Told: [Bytes: UInt64]] = [:]
    private var lastNumber = 0
    private(set) var counts: [String: Int] = [:]

    // The end.
    var quietSince: Int64?
    /// Since when all but the dead provider's devices must be told soon.
    var lastRoundAt: Int64?
    var lastRounds: Set<NodeID> = []
    /// Since when all have been told of all. The nodes then make one change after another, in turn.
    var calmSince: Int64?
    var calmChangeCount = 0
    static let calmChangesOfEach = 3

    init(seed: UInt64, groups: [GroupID], _ options: SimulationOptions, bugs: PlantedBugs) {
        self.executor = SimulatedExecutor(world: SimulatedWorld(seed: seed), seed: seed)
        self.random = SeededGenerator(seed: seed ^ 0x5075_7368_6573_0001)
        self.bugs = bugs
        var bounds = PushDispatcher.Bounds()
        bounds.activeCountMax = options.pushActiveCountMax
        bounds.restingCountMax = options.pushRestingCountMax
        bounds.askCountMax = options.pushAskCountMax
        bounds.retryMin = .milliseconds(200)
        bounds.retryMax = .seconds(2)
        bounds.laneWait = .seconds(5)
        self.dispatcherBounds = bounds
        for group in groups { self.ledgers[group] = PushLedger() }
        for user in Self.users { self.flip(user, at: 0) }
    }

    func draw(_ count: Int) -> Int { Int.random(in: 0..<count, using: &self.random) }
    func count(_ what: String) { self.counts[what, default: 0] += 1 }

    func nextNumber() -> Int {
        self.lastNumber += 1
        return self.lastNumber
    }

    static let schema: Schema = {
        let fields = [PushWorld.filtered, PushWorld.number].map {
            FieldDefinition(name: $0, type: FieldType(.int64), indexes: [.queryable])
        }
        let grants = [
            Grant(role: PushWorld.role, permissions: [.read]),
            Grant(role: "writer", permissions: [.create, .write]),
        ]
        return Schema(
            version: 1, types: [RecordType(name: PushWorld.type, fields: fields, grants: grants)],
            roles: [PushWorld.role, "writer"])
    }()

    // MARK: Who is who

    /// The token of a poll has a first byte of its own.
    static func token(_ number: Int, isPoll: Bool) -> Bytes {
        [isPoll ? 1 : 0, UInt8(number)] + Bytes(repeating: 0x5A, count: 14)
    }

    static func isPoll(_ token: Bytes) -> Bool { token[0] == 1 }
    static func user(of token: Bytes) -> String { Self.users[Int(token[1]) % Self.users.count] }
    static func provider(of token: Bytes) -> Int { Int(token[1]) % Self.providerCount }

    static func databases(of user: String) -> [DatabaseID] {
        user == RecordWorld.owner
            ? [RecordWorld.privateDatabase, RecordWorld.publicDatabase]
            : [RecordWorld.publicDatabase]
    }

    static func mayRead(_ database: DatabaseID, _ principal: Principal) -> Bool {
        database.scope != .public || principal.roles.contains(Self.role)
    }

    func principal(of user: String) -> Principal {
        Principal(
            kind: .user, userRecordName: user, roles: self.isMember[user] == true ? [Self.role] : []
        )
    }

    func flip(_ user: String, at now: Int64) {
        let isMember = self.isMember[user] != true
        self.isMember[user] = isMember
        self.flips[user, default: []].append((now, isMember))
        self.count(isMember ? "roles given" : "roles taken")
    }

    /// Takes a user's role, and nobody gives it back before `end`.
    func suspend(_ user: String, until end: Int64, at now: Int64) {
        if self.isMember[user] == true { self.flip(user, at: now) }
        self.suspendedUntil[user] = end
        self.count("users suspended")
    }

    func isSuspended(_ user: String, at now: Int64) -> Bool {
        now < self.suspendedUntil[user] ?? 0
    }

    func makeMembers(at now: Int64) {
        for user in Self.users where self.isMember[user] != true { self.flip(user, at: now) }
    }

    /// Whether a user was a member at some moment since `start`.
    private func wasMember(_ user: String, since start: Int64) -> Bool {
        let flips = self.flips[user] ?? []
        return flips.contains { $0.at > start && $0.isMember }
            || flips.last { $0.at <= start }?.isMember == true
    }

    /// Whether a user has been a member at every moment since `start`.
    private func isMember(_ user: String, since start: Int64) -> Bool {
        let flips = self.flips[user] ?? []
        return !flips.contains { $0.at > start && !$0.isMember }
            && flips.last { $0.at <= start }?.isMember == true
    }

    // MARK: What happens

    func apply(
        _ entry: Entry, _ outcome: Outcome, of group: GroupID, at now: Int64
    ) -> String? {
        self.ledgers[group]?.apply(entry, outcome, at: now)
    }

    /// - Returns: what should not be; nil: nothing.
    func leaves(_ hit: News.Hit, in database: DatabaseID, for user: String, at now: Int64)
        -> String?
    {
        guard database.scope == .public, !self.wasMember(user, since: now - Self.staleness) else {
            return nil
        }
        return "\(user) is told of what it may not read: \(hit.subscription.id)"
    }

    /// Somebody was told.
    ///
    /// - Returns: what should not be; nil: nothing.
    func tell(
        _ hit: News.Hit, _ follower: PushLedger.FollowerName, of group: GroupID,
        identity: UInt64
    ) -> String? {
        guard let begun = self.ledgers[group]?.followers[follower]?.begun else { return nil }
        let telling = Telling(group: group, follower: follower, begun: begun)
        let generation = PushLedger.number(of: hit.subscription)
        let change: PushLedger.ChangeName
        switch hit.event {
        case .zone(let zone, let tag):
            change = .init(database: follower.database, zone: zone, record: "", tag: tag)
        case .record(_, let record, _):
            change = .init(
                database: follower.database, zone: record.zone.name, record: record.name,
                tag: record.tag)
        }
        let told = Told(generation: generation, change: change)
        if self.told[telling, default: []].insert(told).inserted {
            self.count(PushWorld.isPoll(follower.token) ? "told by polls" : "told by providers")
        } else {
            self.count("told again")
        }
        if let known = self.identities[told]?[follower.token], known != identity {
            return "\(hit.subscription.id) is told again under another identity"
        }
        self.identities[told, default: [:]][follower.token] = identity
        if hit.subscription.firesOnce {
            // What was told of a zone and not settled is told again of its newest change.
            var once = change
            if case .zone = hit.event { once.tag = ChangeTag(0) }
            let first = self.toldOnce[telling]?[generation]
            if let first, first != once {
                return "\(hit.subscription.id) fires once, and told of \(first) and \(once)"
            }
            self.toldOnce[telling, default: [:]][generation] = once
            self.count("told once")
        }
        return nil
    }

    /// The push of a change was given up, as its bounds say.
    func giveUp(_ hit: News.Hit, _ follower: PushLedger.FollowerName, of group: GroupID) {
        self.count("given up")
        _ = self.tell(hit, follower, of: group, identity: Self.identity(of: hit, follower.token))
    }

    /// Equal for all repeats of one push.
    static func identity(of hit: News.Hit, _ token: Bytes) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        func add(_ bytes: some Sequence<UInt8>) {
            for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
        }
        add(hit.subscription.content)
        add(token)
        switch hit.event {
        case .zone(let zone, let tag): add((zone + tag.text).utf8)
        case .record(_, let record, _): add((record.name + record.tag.text).utf8)
        }
        return hash
    }

    // MARK: The end

    /// What somebody was not told; nil: nothing.
    func missing(isIn: (_ provider: Int?) -> Bool) -> String? {
        for (group, ledger) in self.ledgers.sorted(by: { $0.key < $1.key }) {
            let names = ledger.followers.keys.sorted {
                ($0.token[0], $0.token[1], $0.database.owner) < (
                    $1.token[0], $1.token[1], $1.database.owner
                )
            }
            for name in names {
                let isPoll = Self.isPoll(name.token)
                guard isIn(isPoll ? nil : Self.provider(of: name.token)),
                    let follower = ledger.followers[name],
                    isPoll || self.devices[name.token]?.registeredAt != nil
                else { continue }
                let telling = Telling(group: group, follower: name, begun: follower.begun)
                let problem = ledger.missing(
                    of: name,
                    isOwed: { change in
                        name.database.scope != .public
                            || self.isMember(follower.user, since: change.at - Self.staleness)
                    },
                    isTold: { generation, change in
                        self.told[telling]?.contains(Told(generation: generation, change: change))
                            ?? false
                    })
                if let problem {
                    let what = isPoll ? "poll" : "device"
                    return "\(group): \(what) \(name.token[1]) was not told of \(problem)"
                }
            }
        }
        return nil
    }
}
