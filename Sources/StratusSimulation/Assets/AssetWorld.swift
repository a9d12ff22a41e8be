import StratusCoding
import StratusDoubles
import StratusModel
import StratusRecords

/// What a simulated cluster with assets knows beside its nodes: the bytes that were sent, what
/// entries did to bodies, and which copies each disk has acknowledged.
///
/// `Sendable` is unchecked: a simulation runs in one thread.
final class AssetWorld: @unchecked Sendable {
    struct Naming {
        var namedAt: LogIndex
        /// Zero: some entry dropped it, and nobody heard which.
        var droppedAt: LogIndex?
        var lostAt = LogIndex.zero
        /// A body that was found again is named anew.
        var isLost: Bool { self.lostAt > self.namedAt }
    }

    static let chunkSize: UInt32 = 64
    static let database = RecordWorld.privateDatabase
    static let key = WrappedKey {
        $0.wrapped = Bytes(repeating: 0xAB, count: 60)
        $0.wrappingVersion = 3
        $0.check = [1, 2, 3, 4]
    }
    static let orphanMilliseconds: Int64 = 3_000

    let executor: SimulatedExecutor
    var random: SeededGenerator
    private(set) var contents: [BodyID: Bytes] = [:]
    private(set) var namings: [GroupID: [BodyID: Naming]] = [:]
    /// The checksums of the copies that a disk has acknowledged and has not been told to remove.
    private(set) var disks: [NodeID: [GroupID: [CopyName: UInt32]]] = [:]
    /// Copies that damage took from a disk and that are not back yet.
    private(set) var struck: [NodeID: [GroupID: Set<CopyName>]] = [:]
    private(set) var counts: [String: Int] = [:]
    /// When uploads ended.
    var quietSince: Int64?

    init(seed: UInt64) {
        self.executor = SimulatedExecutor(world: SimulatedWorld(seed: seed), seed: seed)
        self.random = SeededGenerator(seed: seed ^ 0x4173_7365_7473_0001)
    }

    static let rules: AssetRules = {
        var rules = AssetRules()
        rules.pinMilliseconds = 2_000
        rules.graceMilliseconds = 500
        return rules
    }()

    /// How long a command may wait to be applied.
    static let commandLife = Duration.seconds(8)

    func draw(_ count: Int) -> Int { Int.random(in: 0..<count, using: &self.random) }
    func count(_ what: String) { self.counts[what, default: 0] += 1 }

    // MARK: Bytes

    /// A body of new bytes; one in four has those of one of few files, which are then shared.
    func newBody() -> (body: BodyID, content: Bytes, digest: AssetDigest?) {
        let body = BodyID(
            UInt128(self.random.next()) << 64 | UInt128(self.random.next()))
        let shared = self.draw(4) == 0 ? UInt64(self.draw(6)) : nil
        var bytes = SeededGenerator(seed: shared ?? self.random.next())
        let size = 1 + Int(bytes.next() % 700)
        let content = Bytes((0..<size).map { _ in UInt8(truncatingIfNeeded: bytes.next()) })
        self.contents[body] = content
        return (body, content, shared.map { AssetDigest(UInt128($0) + 1) })
    }

    /// A chunk as it is stored: its bytes behind a mark of 17 bytes that names its place, in the
    /// place of a seal.
    static func seal(_ plain: Bytes, _ name: CopyName) -> Bytes {
        var sealed = Bytes()
        withUnsafeBytes(of: name.body.raw.bigEndian) { sealed += Bytes($0) }
        sealed.append(UInt8(truncatingIfNeeded: name.ordinal))
        return sealed + plain
    }

    static func open(_ stored: Bytes, _ name: CopyName) -> Bytes? {
        let plain = Bytes(stored.dropFirst(17))
        return stored.count > 17 && Self.seal(plain, name) == stored ? plain : nil
    }

    /// A body of the same bytes, sealed anew.
    func newBody(of old: BodyID) -> (body: BodyID, content: Bytes)? {
        guard let content = self.contents[old] else { return nil }
        let body = BodyID(
            UInt128(self.random.next()) << 64 | UInt128(self.random.next()))
        self.contents[body] = content
        return (body, content)
    }

    // MARK: Keys

    /// The newest key of the database, as clients know it.
    private var keyVersions: [GroupID: UInt32] = [:]

    func keyVersion(of group: GroupID) -> UInt32 { self.keyVersions[group] ?? 1 }

    func noteKey(_ version: UInt32, of group: GroupID) {
        self.keyVersions[group] = max(version, self.keyVersion(of: group))
    }

    // MARK: What entries did

    func heard(_ changes: [BodyChange], of group: GroupID) {
        for change in changes {
            switch change {
            case .named(let body):
                if self.namings[group]?[body.body] == nil {
                    self.namings[group, default: [:]][body.body] = Naming(namedAt: body.namedAt)
                    self.count("bodies named")
                }
            case .dropped(let body, _, let index):
                if self.namings[group]?[body]?.droppedAt == nil { self.count("bodies dropped") }
                self.namings[group]?[body]?.droppedAt = index
            case .lost(let body, _, let index): self.namings[group]?[body]?.lostAt = index
            case .found(let body):
                if let naming = self.namings[group]?[body.body], body.namedAt > naming.namedAt {
                    self.namings[group]?[body.body]?.namedAt = body.namedAt
                    self.count("bodies found again")
                }
            case .unlisted: break
            }
        }
    }

    /// The bodies that the rows of a replica name which has applied as much as any.
    func compare(_ named: [BodyManifest], of group: GroupID) {
        self.heard(named.map { .named($0) }, of: group)
        let bodies = Set(named.map(\.body))
        for (body, naming) in self.namings[group] ?? [:]
        where naming.droppedAt == nil && !bodies.contains(body) {
            self.namings[group]?[body]?.droppedAt = .zero
        }
    }

    /// Bodies that rows name and do not call lost, as far as anybody has heard.
    func present(in group: GroupID) -> [BodyID] {
        (self.namings[group] ?? [:]).filter { $0.value.droppedAt == nil && !$0.value.isLost }
            .keys.sorted()
    }

    /// Whether rows as applied or rows as durable name the body.
    func isNamed(
        _ body: BodyID, in group: GroupID, applied: LogIndex, durable: LogIndex
    ) -> Bool {
        guard let naming = self.namings[group]?[body], naming.namedAt <= applied, !naming.isLost
        else { return false }
        return naming.droppedAt.map { $0 > durable } ?? true
    }

    // MARK: Disks

    func put(_ name: CopyName, _ crc: UInt32, of group: GroupID, on node: NodeID) {
        self.mayBeRemoved[node]?[group]?.remove(name)
        if self.disks[node]?[group]?[name] == nil {
            self.disks[node, default: [:]][group, default: [:]][name] = crc
        }
        self.struck[node]?[group]?.remove(name)
    }

    func has(_ name: CopyName, of group: GroupID, on node: NodeID) -> Bool {
        self.disks[node]?[group]?[name] != nil
    }

    func removed(_ name: CopyName, of group: GroupID, on node: NodeID, isSure: Bool) {
        guard isSure else {
            self.mayBeRemoved[node, default: [:]][group, default: []].insert(name)
            return
        }
        self.disks[node]?[group]?[name] = nil
        self.struck[node]?[group]?.remove(name)
    }

    /// - Returns: a copy that was acknowledged and is not there.
    func opened(_ sound: [CopyName: UInt32], of group: GroupID, on node: NodeID) -> CopyName? {
        var first: CopyName?
        for (name, crc) in (self.disks[node]?[group] ?? [:]).sorted(by: { $0.key < $1.key })
        where sound[name] != crc {
            if self.mayBeRemoved[node]?[group]?.contains(name) == true { continue }
            guard self.mayLack[node]?.contains(group) == true else {
                first = first ?? name
                continue
            }
            self.struck[node, default: [:]][group, default: []].insert(name)
        }
        self.mayLack[node]?.remove(group)
        self.mayBeRemoved[node]?[group] = nil
        self.disks[node, default: [:]][group] = sound
        return first
    }

    /// Copies whose removal failed since the packs were opened last.
    private var mayBeRemoved: [NodeID: [GroupID: Set<CopyName>]] = [:]

    /// Groups whose packs were damaged since they were opened last.
    private var mayLack: [NodeID: Set<GroupID>] = [:]

    func strike(_ node: NodeID, _ group: GroupID) {
        self.mayLack[node, default: []].insert(group)
        self.count("packs damaged")
    }

    /// Whether every copy that damage took is back, or is not wanted any more.
    var isWhole: Bool {
        self.mayLack.values.allSatisfy(\.isEmpty)
            && !self.struck.values.contains { groups in
                groups.contains { group, names in
                    names.contains { self.namings[group]?[$0.body]?.droppedAt == nil }
                }
            }
    }

    /// Whether a disk has all of a body, or had it before damage.
    func holds(_ body: BodyManifest, of group: GroupID, on node: NodeID) -> Bool {
        body.chunks.indices.allSatisfy { ordinal in
            let name = body.name(of: UInt32(ordinal))
            return self.disks[node]?[group]?[name] == body.chunks[ordinal].crc
                || self.struck[node]?[group]?.contains(name) == true
        }
    }

    /// The copies of which nobody knows what for, or that are missing at a voter.
    func problem(_ named: [BodyManifest], of group: GroupID, on node: NodeID) -> String? {
        let held = self.disks[node]?[group] ?? [:]
        var wanted: Set<CopyName> = []
        for body in named where !body.isLost {
            for (ordinal, chunk) in body.chunks.enumerated() {
                let name = body.name(of: UInt32(ordinal))
                wanted.insert(name)
                if held[name] != chunk.crc { return "\(group): \(node) lacks \(name)" }
            }
        }
        let bodies = Set(named.map(\.body))
        let extra = held.keys.filter { !wanted.contains($0) && !bodies.contains($0.body) }.min()
        return extra.map { "\(group): \(node) still has \($0)" }
    }
}
