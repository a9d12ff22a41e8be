import StratusConsensus
package import StratusModel
import StratusRecords

/// The make-up of one run: its cluster, its load, and what goes wrong. It is drawn from the seed
/// (swarm testing: each kind of fault is off in about half of the runs), then changed by hand if
/// wanted.
package struct SimulationOptions: Sendable, Equatable {
    package enum Fault: String, Sendable, CaseIterable {
        case loss, duplication, longDelay, partition, oneWayCut, processCrash, powerLoss, pause
        case clockDrift, clockJump, slowDisk, failedSync, failedApply, membership, transfer
        case tinyLimits, flappingLink, crashInCall, fullDisk
        // Drawn by mixes only.
        case deafNode, muteNode, bridge, crashOnRarePath, lostRows, rottenLog

        static let drawnBySeed: [Self] = [
            .loss, .duplication, .longDelay, .partition, .oneWayCut, .processCrash, .powerLoss,
            .pause, .clockDrift, .clockJump, .slowDisk, .failedSync, .failedApply, .membership,
            .transfer, .tinyLimits, .flappingLink, .crashInCall, .fullDisk,
        ]
    }

    package var nodeCount: Int
    package var groupCount: Int
    /// Voters of a group at the start.
    package var voterCount: Int
    package var clientCount: Int
    package var registerCount: Int
    /// How long faults strike, in simulated time; then the cluster must converge.
    package var safetyTime: Duration
    /// After the faults load goes on without any for so long at most, until every member streams;
    /// zero: not at all.
    package var steadyTime: Duration = .zero
    /// Rows of one member rot when the faults have ended.
    package var rotsRows = false
    /// Replicas add up the digest of their rows, again and again.
    package var checksRows = false
    /// The end of one member's log rots when the faults have ended.
    package var tearsTail = false
    /// When the faults have ended the disk of one member takes nothing for so long; zero: not at
    /// all.
    package var standstillTime: Duration = .zero
    /// It is full; otherwise it hangs.
    package var standsStillFull = false
    /// Replicas compare their digests at every index that this divides; 0: never.
    package var digestInterval: UInt64 = 0
    /// All nodes but one are lost for good at the end.
    package var losesMajority = false
    package var livenessTime: Duration = .seconds(60)
    package var faults: Set<Fault>
    /// How often something from the list above happens, apart from what strikes every message.
    package var faultInterval: Duration
    package var delayMin: Duration
    package var delayMax: Duration
    package var syncMin: Duration
    package var syncMax: Duration
    package var trailingEntryCount: UInt64
    package var checkpointInterval: Duration
    package var segmentSize: ByteCount
    package var batchSizeMax: ByteCount
    package var walSizeMax: ByteCount
    package var snapshotFrameSize: ByteCount
    /// The bytes of snapshots that one node moves in a second. The limit lets other things happen
    /// between the slices of a snapshot.
    package var snapshotRate: ByteCount
    /// A process is back after so long at most.
    package var restartMax: Duration = .seconds(2)
    /// Power comes and goes all the time, leadership with it: one election after the other.
    package var isStormy = false
    /// The limit for a node's log, and for one group in it. Beyond it, followers that are behind
    /// get a snapshot.
    package var retainedLogSizeMax = ByteCount(0)
    package var retainedSizeMax = ByteCount(0)
    /// Through the codec, as between real nodes.
    package var encodesMessages: Bool
    /// The log's reports reach the replicas so much later at most, as between two threads.
    package var reportDelayMax: Duration = .zero
    /// A value in a register is so long at most, and most of them are short.
    package var valueSizeMax: ByteCount = ByteCount(8)
    package var longValueOneIn: UInt64 = 3
    /// Between two operations of a client.
    package var thinkTimeMax: Duration = .milliseconds(60)
    /// A client that hears nothing asks again after so many milliseconds.
    package var patienceMilliseconds: ClosedRange<Int64> = 200...1_500
    package var spareSegmentMax = 2
    /// The work after which a read of records ends its page. Small bounds end every page.
    package var readTouchCountMax = RecordState.readTouchCountMax
    /// Half of the faults strike whoever leads.
    package var aimsAtLeaders = false
    /// Half of them strike a node whose disk is at work.
    package var aimsAtSyncs = false
    /// Every process is to end in the recovery of the log, or at a write of the log soon after.
    package var aimsAtStarts = false
    /// The number of nodes, counted from the first, that are aimed at. The others keep the cluster
    /// alive.
    package var aimedNodeCount = Int.max
    /// Half of the writes that are aimed at begin a segment of the log.
    package var aimsAtHeads = false
    /// A node killed inside a call is back as soon as any other node.
    package var isBackSoon = false
    /// The log makes its next segment before it is needed, as that of a node does when it has
    /// nothing to write.
    package var makesSparesAhead = false
    /// About one message in this many is late.
    package var lateMessageOneIn: UInt64 = 100
    /// One message in this many is copied, on a network that makes copies.
    package var copyOneIn: UInt64 = 20
    /// Half of the copies that the network makes come long after.
    package var copiesComeLate = false
    /// Reads in ten operations.
    package var readShare = 3
    /// Clients that only read, and so stay with whoever answers them.
    package var readerCount = 0
    /// Out of how many sets the voters of a change are drawn; 0 for any.
    package var memberSetCount = 0
    /// Groups are placed by the real table, and the real membership moves them.
    package var isPlaced = false
    /// Groups hold records, by the real state.
    package var holdsRecords = false
    /// Clients of records have documents too, and lock them.
    package var holdsDocuments = false
    /// Clients of records upload, save, delete and download files, and do nothing else.
    package var holdsAssets = false
    /// Clients subscribe, change records and hold polls, and do nothing else.
    package var holdsPushes = false
    /// The bounds of a sender.
    package var pushActiveCountMax = 8
    package var pushRestingCountMax = 64
    package var pushAskCountMax = 4
    /// A page of a browser may be open twice, at two nodes, over slow connections.
    package var opensTwoWindows = false
    /// Clients of files at each node.
    package var assetWorkerCount = 2
    /// Packs of one node at a time rot or go while it is down.
    package var rotsPacks = false
    /// All that nodes write is sealed.
    package var sealsFiles = false
    /// Files are made anew and logs expire now and then, as after erasures.
    package var rebuildsFiles = false
    /// The buckets of a public database that is spread over groups; 0 if there is none.
    package var bucketCount = 0
    /// The buckets that custom zones of a private database lie in; 0: all databases are whole.
    package var zoneBucketCount = 0
    /// The partitions of a placed cluster, beside the system's; a power of two.
    package var partitionCount = 4
    /// Nodes at once, with those that join.
    package var memberCountMax = 5
    /// 0: every node is one of its own.
    package var rackCount = 0
    /// A node that is silent for longer is no place for a newcomer any more.
    package var holdTime: Duration = .seconds(3)
    /// Nodes talk by the real links, over simulated streams of bytes.
    package var usesLinks = false
    /// Nodes find that a process has ended even without links, as they do where connections are
    /// refused.
    package var findsEnds = false
    package internal(set) var mix: Mix?
    /// With ``Fault/failedSync``: one sync of so many.
    package var failedSyncOneIn: UInt64 = 2_000
    /// Nodes of two builds, and a cluster that is raised; nil: all are of this one.
    package var levels: LevelPlan?
    package var bugs: [PlantedBug] = []

    /// - Parameters:
    ///   - drawsMix: one run in three is led by a ``Mix``. Without it a seed says what it said
    ///     before there were any.
    ///   - drawsPlaced: one run in twelve has a placement table.
    ///   - drawsRecords: in one run in eight groups hold records, and half of those are led by
    ///     their mix.
    ///   - drawsLinks: in one run in eight nodes talk by real links, and some of those are led by
    ///     their mix.
    ///   - drawsLevels: in two runs in five nodes are upgraded to the next level.
    ///   - drawsDigests: in every third run replicas compare their digests.
    ///   - drawsEnds: in every other run nodes find at once that a process has ended.
    ///   - drawsSteady: in one run in 64 load goes on after the faults, see ``Mix/steady``.
    ///   - drawsZones: in half of the runs that hold records a private database lies in buckets.
    package init(
        seed: UInt64, drawsMix: Bool = true, drawsPlaced: Bool = true, drawsRecords: Bool = true,
        drawsLinks: Bool = true, drawsLevels: Bool = true, drawsEnds: Bool = true,
        drawsDigests: Bool = true, drawsSteady: Bool = true, drawsZones: Bool = true
    ) {
        if drawsDigests, seed % 3 == 0 { self.digestInterval = [4, 32, 256][Int(seed / 3 % 3)] }
        self.findsEnds = drawsEnds && seed % 2 == 0
        // From a stream of its own: everything else stays what it was.
        var levels = SeededGenerator(seed: seed ^ 0x4D69_7865_7300_0006)
        if Int.random(in: 0..<5, using: &levels) < 2, drawsLevels {
            self.levels = LevelPlan(from: &levels)
        }
        var random = SeededGenerator(seed: seed ^ 0x5EED_0F0F_0F0F_0F0F)
        func draw(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }
        let sizes = [1, 2, 3, 3, 3, 3, 4, 5, 5, 5, 6, 7]
        self.nodeCount = sizes[draw(0...(sizes.count - 1))]
        self.groupCount = draw(0...7) == 0 ? draw(2...64) : draw(1...3)
        self.voterCount = min(self.nodeCount, [1, 2, 3, 3, 3, 3, 5, 5, 7][draw(0...8)])
        self.clientCount = draw(1...8)
        self.registerCount = draw(1...4)
        self.safetyTime = .seconds(self.groupCount > 8 ? draw(3...6) : draw(5...20))
        var faults: Set<Fault> = []
        for fault in Fault.drawnBySeed where draw(0...1) == 1 { faults.insert(fault) }
        self.faults = faults
        self.faultInterval = .milliseconds([50, 100, 200, 400, 1_000][draw(0...4)])
        self.delayMin = .microseconds([50, 200, 1_000][draw(0...2)])
        self.delayMax = self.delayMin + .microseconds([100, 1_000, 5_000, 30_000][draw(0...3)])
        self.syncMin = .microseconds([50, 150, 500][draw(0...2)])
        self.syncMax = self.syncMin + .microseconds([100, 1_000, 20_000][draw(0...2)])
        self.trailingEntryCount = UInt64([0, 1, 5, 50][draw(0...3)])
        self.checkpointInterval = .milliseconds([20, 100, 500, 2_000][draw(0...3)])
        self.encodesMessages = draw(0...3) == 0
        // The head of a segment holds three items for each group.
        self.segmentSize = .kibibytes([32, 32, 64, 256][draw(0...3)])
        self.batchSizeMax = .kibibytes([1, 4, 4_096][draw(0...2)])
        self.walSizeMax = .kibibytes([64, 256, 16_384][draw(0...2)])
        self.snapshotFrameSize = ByteCount([64, 512, 65_536][draw(0...2)])
        // Drawn beside the others, which stay what they were.
        self.snapshotRate = .kibibytes([48, 256, 1_024][Int(seed % 3)])
        if draw(0...3) == 0 {
            self.isStormy = true
            self.faults.formUnion([.powerLoss, .transfer])
            self.faultInterval = .milliseconds([10, 30][draw(0...1)])
            self.restartMax = .milliseconds([20, 200][draw(0...1)])
            self.groupCount = min(self.groupCount, 4)
            self.safetyTime = min(self.safetyTime, .seconds(8))
        }
        guard drawsMix else { return }
        self.drawRetention(seed: seed)
        var mixes = SeededGenerator(seed: seed ^ 0x4D69_7865_7300_0001)
        let number = Int.random(in: 0..<(3 * Mix.often.count), using: &mixes)
        if number < Mix.often.count {
            self.lead(by: Mix.often[number], seed: seed)
        } else if Int.random(in: 0..<8, using: &mixes) == 0 {
            self.lead(by: Mix.seldom[number % Mix.seldom.count], seed: seed)
        }
        var others = SeededGenerator(seed: seed ^ 0x4D69_7865_7300_0003)
        if Int.random(in: 0..<12, using: &others) == 0, drawsPlaced {
            self.lead(by: .membership, seed: seed)
        }
        var links = SeededGenerator(seed: seed ^ 0x4D69_7865_7300_0005)
        if drawsLinks, Int.random(in: 0..<8, using: &links) == 0 {
            if !self.isPlaced, Int.random(in: 0..<3, using: &links) == 0 {
                self.lead(by: .links, seed: seed)
            }
            self.usesLinks = true
        }
        var records = SeededGenerator(seed: seed ^ 0x4D69_7865_7300_0004)
        if drawsRecords, Int.random(in: 0..<8, using: &records) == 0 {
            if Int.random(in: 0..<2, using: &records) == 0 { self.bucketCount = 4 }
            if !self.isPlaced, Int.random(in: 0..<2, using: &records) == 0 {
                self.lead(by: .records, seed: seed)
            }
            self.holdsRecords = true
            self.groupCount = min(self.groupCount, 4)
            self.partitionCount = min(self.partitionCount, 4)
        }
        if drawsSteady { self.drawSteady(seed: seed) }
        if drawsZones { self.drawZones(seed: seed) }
    }

    /// Spreads a private database over the groups in half of the runs that hold records. It is
    /// drawn last, from a stream of its own, so that all other seeds stay what they were.
    package mutating func drawZones(seed: UInt64) {
        var random = SeededGenerator(seed: seed ^ 0x4D69_7865_7300_0009)
        guard self.holdsRecords, Int.random(in: 0..<2, using: &random) == 0 else { return }
        self.spreadZones()
    }

    /// Lets groups hold records, with a private database in zone buckets over several of them.
    package mutating func spreadZones() {
        self.holdsRecords = true
        self.zoneBucketCount = 4
        if !self.isPlaced { self.groupCount = max(self.groupCount, 3) }
    }

    /// Drawn last, from a stream of its own: all other seeds stay what they were. These runs take
    /// several times as long as others, so they are rare and short.
    private mutating func drawSteady(seed: UInt64) {
        var random = SeededGenerator(seed: seed ^ 0x4D69_7865_7300_0008)
        guard Int.random(in: 0..<64, using: &random) == 0, !self.isPlaced, !self.holdsRecords,
            !self.usesLinks
        else { return }
        let mix = Mix.steady[Int.random(in: 0..<Mix.steady.count, using: &random)]
        self.lead(by: mix, seed: seed)
        self.safetyTime = min(self.safetyTime, .seconds(2))
        // Ten minutes are for runs that name the mix.
        if mix == .standstill { self.standstillTime = .seconds(30) }
    }

    /// Drawn beside the others, which stay what they were: in a quarter of the runs the log keeps
    /// what followers need.
    private mutating func drawRetention(seed: UInt64) {
        var random = SeededGenerator(seed: seed ^ 0x4D69_7865_7300_0007)
        guard Int.random(in: 0..<4, using: &random) == 0 else { return }
        self.retainedSizeMax = .kibibytes([8, 64, 1_024][Int.random(in: 0..<3, using: &random)])
        self.retainedLogSizeMax = .kibibytes([256, 4_096][Int.random(in: 0..<2, using: &random)])
    }

    /// Makes the world one of `mix`, with details that the seed says.
    package mutating func lead(by mix: Mix, seed: UInt64) {
        var draw = MixDraw(seed: seed)
        self.mix = mix
        self.isStormy = false
        self.groupCount = draw(1...2)
        self.nodeCount = [3, 3, 4, 5, 5][draw(0...4)]
        self.voterCount = min(self.nodeCount, [3, 3, 5][draw(0...2)])
        self.clientCount = draw(3...8)
        self.registerCount = draw(1...2)
        self.safetyTime = .seconds(draw(5...12))
        self.restartMax = draw.milliseconds(20, 200, 2_000)
        self.reportDelayMax = draw.milliseconds(0, 2, 30)
        self.aimsAtLeaders = draw(0...3) > 0
        self.copiesComeLate = draw(0...1) == 1
        if draw(0...2) == 0 { self.faults.insert(.crashOnRarePath) }
        if draw(0...1) == 0 { self.faults.formUnion([.deafNode, .muteNode]) }
        mix.recipe.apply(&self, &draw)
        self.mix = mix
    }

    /// The bounds of consensus: the real ones, or so small that every one of them is met.
    func tuning(_ random: inout SeededGenerator) -> RaftTuning {
        var tuning = RaftTuning()
        if self.isStormy || Int.random(in: 0..<4, using: &random) == 0 {
            // All stand for election at nearly the same time: votes are split.
            tuning.electionDelayMin = .milliseconds(20)
            tuning.electionDelayMax = .milliseconds(20 + Int.random(in: 1...30, using: &random))
        }
        guard self.faults.contains(.tinyLimits) else { return tuning }
        tuning.appendCountMax = Int.random(in: 1...4, using: &random)
        tuning.appendSizeMax = Int.random(in: 64...512, using: &random)
        tuning.inFlightMessageCountMax = Int.random(in: 1...3, using: &random)
        tuning.inFlightSizeMax = 1_024
        tuning.tailSizeMax = Int.random(in: 0...1_024, using: &random)
        tuning.uncommittedSizeMax = 4_096
        tuning.waitingReadCountMax = 3
        tuning.heldMessageCountMax = 4
        tuning.electionDelayMin = .milliseconds(Int.random(in: 1...200, using: &random))
        tuning.electionDelayMax =
            tuning.electionDelayMin + .milliseconds(Int.random(in: 50...600, using: &random))
        tuning.resendDelay = .milliseconds(Int.random(in: 50...400, using: &random))
        return tuning
    }

    package var summary: String {
        let faults = Fault.allCases.filter(self.faults.contains).map(\.rawValue)
        return "nodes=\(self.nodeCount) groups=\(self.groupCount) voters=\(self.voterCount) "
            + "clients=\(self.clientCount) \(self.isStormy ? "stormy " : "")"
            + (self.mix.map { "mix=\($0.rawValue) " } ?? "")
            + (self.usesLinks ? "links " : "")
            + (self.levels == nil ? "" : "levels ")
            + (self.holdsRecords ? "records " : "")
            + (self.holdsDocuments ? "documents " : "")
            + (self.holdsAssets ? "assets " : "") + (self.holdsPushes ? "push " : "")
            + (self.sealsFiles ? "sealed " : "") + (self.rebuildsFiles ? "rebuilds " : "")
            + (self.bucketCount > 0 ? "buckets=\(self.bucketCount) " : "")
            + (self.zoneBucketCount > 0 ? "zones=\(self.zoneBucketCount) " : "")
            + (self.isPlaced ? "members≤\(self.memberCountMax) " : "") + "faults="
            + (faults.isEmpty ? "none" : faults.joined(separator: ","))
    }
}
