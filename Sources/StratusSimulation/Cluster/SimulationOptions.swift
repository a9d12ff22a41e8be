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

    /// A world that leads where chance seldom goes: some faults often, the others as the seed says.
    package enum Mix: String, Sendable, CaseIterable {
        /// Candidates meet in one term, on disks that are slower than their patience, and crash.
        case elections
        /// Leaders are cut off with entries that nobody else has, and their successors follow each
        /// other.
        case conflicts
        /// Leaders that hear nobody, or whom nobody hears, are asked for what they hold.
        case reads
        /// Voters come and go at random, as no controller would have it.
        case configurations
        /// Groups are placed by the real table; nodes join, leave, die and are replaced.
        case membership
        /// The log lets go of everything at once: whoever is behind gets a snapshot.
        case snapshots
        /// Batches of many sectors in tiny segments, and the power goes while they are written.
        case logs
        /// Rows disappear and logs rot, on one node at a time.
        case damage
        /// Groups hold records, by the real state, and clients do with them what clients of records
        /// do.
        case records
        /// The log's report of a write comes when another leader has already replaced it.
        case lateReports
        /// Leaders are cut off with more than the others commit meanwhile, and get a snapshot for
        /// it.
        case strandedTails
        /// Nodes talk by the real links, over connections that stall, break and are left half open.
        case links
        /// Processes end while they make durable what their predecessors left, or write a little
        /// later, with the power or without it; and the log has groups that are quiet for longer
        /// than its segments last.
        case recoveries
        /// One node alone is aimed at, life after life, while its log is written: at the first
        /// batch of a segment, of which a few entries fill one, and inside the next start, with the
        /// power.
        case tears
        /// Many clients who hardly pause, and a fault now and then: as many operations as a core
        /// can simulate.
        case crowds
        /// A member that has lost its rows comes back while load goes on and nothing else happens:
        /// it must catch up.
        case catchingUp
        /// Rows of a member that leads nothing rot, and nothing says so but the digests that
        /// replicas compare.
        case divergence
        /// The end of one member's log rots while it is down, so that its start drops what it had
        /// acknowledged, and the only other holder ends as soon as it has said so.
        case tornTail
        /// The disk of a member that leads nothing is full, or takes nothing, for minutes, while
        /// load goes on.
        case standstill
        /// All nodes but one are lost for good when everything else is over, and the survivor is
        /// recovered.
        case lostMajority
        /// Records name files: nodes keep their copies, as members come and go and packs rot.
        case assets
        /// Clients subscribe, change records and wait; leaders send to simulated providers, and
        /// polls are held.
        case push

        static let often: [Self] = [
            .elections, .conflicts, .reads, .configurations, .snapshots, .logs, .damage,
        ]
        static let seldom: [Self] = [.lateReports, .strandedTails, .recoveries]
        /// Something happens after the faults: load goes on, or a majority is lost.
        static let steady: [Self] = [
            .catchingUp, .divergence, .standstill, .lostMajority, .tornTail,
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
    /// Clients of files at each node.
    package var assetWorkerCount = 2
    /// Packs of one node at a time rot or go while it is down.
    package var rotsPacks = false
    /// All that nodes write is sealed.
    package var sealsFiles = false
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
    package private(set) var mix: Mix?
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
    ///   - drawsLevels: in two runs in five nodes begin as builds of level 1 and are upgraded.
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
        var random = SeededGenerator(seed: seed ^ 0x4D69_7865_7300_0002)
        func draw(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }
        func milliseconds(_ choices: Int...) -> Duration {
            .milliseconds(choices[draw(0...(choices.count - 1))])
        }
        self.mix = mix
        self.isStormy = false
        self.groupCount = draw(1...2)
        self.nodeCount = [3, 3, 4, 5, 5][draw(0...4)]
        self.voterCount = min(self.nodeCount, [3, 3, 5][draw(0...2)])
        self.clientCount = draw(3...8)
        self.registerCount = draw(1...2)
        self.safetyTime = .seconds(draw(5...12))
        self.restartMax = milliseconds(20, 200, 2_000)
        self.reportDelayMax = milliseconds(0, 2, 30)
        self.aimsAtLeaders = draw(0...3) > 0
        self.copiesComeLate = draw(0...1) == 1
        if draw(0...2) == 0 { self.faults.insert(.crashOnRarePath) }
        if draw(0...1) == 0 { self.faults.formUnion([.deafNode, .muteNode]) }
        switch mix {
        case .elections:
            self.isStormy = true
            self.faults.formUnion([.powerLoss, .processCrash, .slowDisk])
            self.faultInterval = milliseconds(10, 20, 40)
            self.restartMax = milliseconds(5, 20, 60)
            self.syncMax = self.syncMin + milliseconds(5, 20, 60)
            self.safetyTime = .seconds(draw(3...6))
        case .conflicts:
            self.faults.formUnion([.partition, .transfer])
            self.faults.subtract([.fullDisk, .failedSync])
            self.clientCount = 8
            self.faultInterval = milliseconds(100, 300, 600)
            if draw(0...1) == 0 { self.faults.insert(.tinyLimits) }
        case .reads:
            self.faults = [.deafNode, .muteNode, .partition, .longDelay]
            if draw(0...1) == 0 { self.faults.formUnion([.transfer, .pause]) }
            self.clientCount = 8
            self.registerCount = 1
            self.readShare = 6
            self.readerCount = 4
            self.lateMessageOneIn = [100, 15][draw(0...1)] as UInt64
            self.aimsAtLeaders = true
            self.faultInterval = milliseconds(600, 1_200)
            self.safetyTime = .seconds(draw(10...20))
        case .configurations:
            self.faults.formUnion([.membership, .transfer])
            self.memberSetCount = draw(2...3)
            self.faultInterval = milliseconds(30, 100, 300)
            self.nodeCount = draw(4...7)
        case .membership:
            self.isPlaced = true
            self.faults.insert(.membership)
            if draw(0...1) == 0 { self.faults.formUnion([.partition, .processCrash, .longDelay]) }
            self.nodeCount = [3, 3, 4, 5][draw(0...3)]
            // Replicas of a partition.
            self.voterCount = [3, 3, 3, 2, 5][draw(0...4)]
            self.partitionCount = [1, 2, 4, 8][draw(0...3)]
            self.groupCount = self.partitionCount + 1
            self.memberCountMax = [5, 5, 7][draw(0...2)]
            self.rackCount = [0, 0, 2, 3][draw(0...3)]
            self.holdTime = .milliseconds([500, 3_000][draw(0...1)])
            self.faultInterval = milliseconds(30, 100, 300)
            self.trailingEntryCount = UInt64([0, 5, 50][draw(0...2)])
            self.registerCount = 1
            self.livenessTime = .seconds(240)
            self.safetyTime = .seconds(draw(6...15))
        case .records:
            self.holdsRecords = true
            self.clientCount = draw(4...8)
            self.registerCount = draw(2...4)
            self.thinkTimeMax = milliseconds(5, 20)
            // Whoever is down most of the time decides little.
            self.restartMax = milliseconds(20, 200, 600)
            self.faultInterval = milliseconds(150, 400, 1_000)
            self.trailingEntryCount = UInt64([0, 5, 50][draw(0...2)])
            self.checkpointInterval = milliseconds(20, 200, 1_000)
            self.valueSizeMax = ByteCount([8, 64, 2_048][draw(0...2)])
            if draw(0...1) == 0 {
                self.bucketCount = 4
                self.groupCount = [3, 3, 5][draw(0...2)]
            }
        case .links:
            self.usesLinks = true
            self.faults.formUnion([.loss, .partition, .oneWayCut])
            self.faults.subtract([.fullDisk, .failedSync, .failedApply])
            if draw(0...1) == 0 { self.faults.formUnion([.powerLoss, .pause, .flappingLink]) }
            self.nodeCount = [2, 3, 3, 4, 5][draw(0...4)]
            self.voterCount = min(self.nodeCount, 3)
            self.valueSizeMax = ByteCount([8, 512, 4_096][draw(0...2)])
            self.thinkTimeMax = milliseconds(2, 5, 20)
            self.trailingEntryCount = UInt64([0, 5, 50][draw(0...2)])
            self.checkpointInterval = milliseconds(20, 200)
            self.snapshotFrameSize = ByteCount([512, 65_536][draw(0...1)])
            self.faultInterval = milliseconds(300, 900, 2_000)
            self.restartMax = milliseconds(20, 200, 600)
        case .snapshots:
            self.faults.formUnion([.partition, .pause, .duplication])
            self.trailingEntryCount = 0
            self.checkpointInterval = milliseconds(5, 20)
            self.copiesComeLate = true
            self.snapshotFrameSize = ByteCount([256, 65_536, 65_536][draw(0...2)])
            self.faultInterval = milliseconds(100, 300)
        case .logs:
            self.faults = [.powerLoss, .processCrash, .crashInCall]
            if draw(0...1) == 0 { self.faults.formUnion([.failedSync, .slowDisk]) }
            self.nodeCount = [1, 1, 1, 3][draw(0...3)]
            self.voterCount = self.nodeCount
            self.aimsAtSyncs = true
            self.segmentSize = .kibibytes([16, 32][draw(0...1)])
            self.valueSizeMax = ByteCount(2_048)
            self.longValueOneIn = 1
            self.thinkTimeMax = .milliseconds(4)
            self.spareSegmentMax = draw(0...1)
            self.trailingEntryCount = 0
            self.checkpointInterval = milliseconds(5, 20)
            self.faultInterval = milliseconds(30, 100)
            self.restartMax = milliseconds(5, 20)
            self.syncMax = self.syncMin + milliseconds(5, 20)
            self.safetyTime = .seconds(draw(3...5))
            self.clientCount = 8
        case .damage:
            self.faults.formUnion([.processCrash, .powerLoss, .partition, .lostRows, .rottenLog])
            self.faults.subtract([.membership, .failedSync, .fullDisk, .tinyLimits])
            self.nodeCount = [3, 3, 5][draw(0...2)]
            self.voterCount = [3, self.nodeCount][draw(0...1)]
            self.valueSizeMax = ByteCount([8, 2_048][draw(0...1)])
            self.trailingEntryCount = UInt64([0, 5, 50][draw(0...2)])
            self.checkpointInterval = milliseconds(20, 200, 5_000)
            self.restartMax = milliseconds(100, 1_000)
            self.faultInterval = milliseconds(50, 150)
            self.clientCount = 8
        case .lateReports:
            self.faults.formUnion([.transfer, .powerLoss, .bridge])
            self.faults.subtract([.fullDisk, .failedSync, .tinyLimits])
            self.clientCount = 8
            self.thinkTimeMax = milliseconds(4, 20)
            self.aimsAtLeaders = true
            self.reportDelayMax = milliseconds(200, 600, 1_500)
            self.faultInterval = milliseconds(100, 300)
            // What is late says too much only while the disk is still busy with what came after it.
            self.syncMax = self.syncMin + milliseconds(20, 200, 400)
        case .strandedTails:
            self.faults = [.partition, .oneWayCut, .pause, .bridge]
            if draw(0...1) == 0 { self.faults.formUnion([.processCrash, .longDelay]) }
            self.nodeCount = [3, 5][draw(0...1)]
            self.voterCount = self.nodeCount
            self.clientCount = 8
            self.registerCount = 2
            self.thinkTimeMax = milliseconds(2, 20)
            self.aimsAtLeaders = true
            self.trailingEntryCount = 0
            self.checkpointInterval = milliseconds(5, 20)
            self.snapshotFrameSize = 65_536
            self.faultInterval = milliseconds(300, 900)
        case .recoveries:
            // No more than that: a process that hardly lives leaves nothing to read back.
            self.faults = [.powerLoss, .processCrash]
            if draw(0...2) == 0 { self.faults.insert(.failedSync) }
            self.failedSyncOneIn = 100
            self.nodeCount = [1, 1, 3][draw(0...2)]
            self.voterCount = self.nodeCount
            self.groupCount = draw(4...8)
            self.aimsAtSyncs = true
            self.aimsAtStarts = true
            self.segmentSize = .kibibytes([16, 32][draw(0...1)])
            self.valueSizeMax = ByteCount([512, 2_048][draw(0...1)])
            self.longValueOneIn = 1
            self.clientCount = 8
            self.thinkTimeMax = milliseconds(4, 20)
            self.patienceMilliseconds = 10...40
            self.spareSegmentMax = draw(0...1)
            self.trailingEntryCount = 0
            self.checkpointInterval = milliseconds(5, 20)
            self.faultInterval = milliseconds(60, 150)
            self.restartMax = milliseconds(5, 20)
            self.syncMax = self.syncMin + milliseconds(5, 20)
            self.safetyTime = .seconds(draw(3...5))
        case .tears:
            self.faults = draw(0...1) == 0 ? [] : [.crashInCall]
            self.nodeCount = [1, 3, 3][draw(0...2)]
            self.voterCount = self.nodeCount
            self.groupCount = [1, 4, 8][draw(0...2)]
            self.aimsAtStarts = true
            self.aimedNodeCount = 1
            self.aimsAtHeads = true
            self.isBackSoon = true
            self.makesSparesAhead = draw(0...1) == 0
            self.spareSegmentMax = draw(0...1)
            self.segmentSize = .kibibytes([4, 8][draw(0...1)])
            self.valueSizeMax = ByteCount([64, 512][draw(0...1)])
            self.longValueOneIn = 1
            self.clientCount = draw(1...4)
            self.thinkTimeMax = milliseconds(4, 20)
            self.patienceMilliseconds = 10...40
            self.trailingEntryCount = 0
            self.checkpointInterval = milliseconds(5, 20)
            self.faultInterval = milliseconds(60, 150)
            self.restartMax = milliseconds(5, 20)
            self.syncMax = self.syncMin + milliseconds(2, 10)
            self.safetyTime = .seconds(draw(3...5))
        case .catchingUp:
            self.faults = [.lostRows, .slowDisk]
            if draw(0...1) == 0 { self.faults.formUnion([.processCrash, .tinyLimits]) }
            self.groupCount = 1
            self.nodeCount = 3
            self.voterCount = 3
            self.clientCount = 4
            self.registerCount = 8
            self.readShare = 1
            // All of them write: a seed may have led by the mix `reads` before.
            self.readerCount = 0
            self.valueSizeMax = ByteCount([512, 2_048][draw(0...1)])
            self.longValueOneIn = 1
            self.thinkTimeMax = milliseconds(10, 20)
            self.delayMin = .microseconds(50)
            self.delayMax = .microseconds(200)
            self.syncMin = .microseconds(50)
            self.syncMax = .microseconds([200, 1_000][draw(0...1)])
            self.trailingEntryCount = 0
            self.checkpointInterval = milliseconds(20, 50)
            self.segmentSize = .kibibytes([16, 32][draw(0...1)])
            self.snapshotFrameSize = ByteCount([256, 1_024][draw(0...1)])
            // The rows remember what thousands of requests were answered: some megabytes.
            self.snapshotRate = .kibibytes([512, 1_024][draw(0...1)])
            self.retainedSizeMax = .kibibytes(8_192)
            self.retainedLogSizeMax = .kibibytes(32_768)
            self.aimsAtLeaders = false
            self.faultInterval = milliseconds(300, 900)
            self.restartMax = milliseconds(20, 200)
            self.safetyTime = .seconds(draw(2...4))
            self.steadyTime = .seconds(30)
        case .divergence:
            self.lead(by: .catchingUp, seed: seed)
            self.mix = mix
            self.faults = [.duplication, .longDelay]
            self.rotsRows = true
            self.digestInterval = [8, 32, 64][draw(0...2)]
        case .tornTail:
            self.lead(by: .catchingUp, seed: seed)
            self.mix = mix
            self.faults = [.duplication, .longDelay]
            self.tearsTail = true
            // Builds of level 1 do not read what the leader says.
            self.levels = nil
        case .standstill:
            self.lead(by: .catchingUp, seed: seed)
            self.mix = mix
            self.faults = [.slowDisk, .tinyLimits]
            // Much more than every bound comes by meanwhile.
            self.standstillTime = .seconds(600)
            self.standsStillFull = seed % 2 == 0
            self.thinkTimeMax = .milliseconds(200)
        case .lostMajority:
            self.losesMajority = true
            self.isPlaced = true
            self.holdsRecords = true
            self.usesLinks = false
            self.levels = nil
            self.faults.formUnion([.processCrash, .powerLoss, .partition])
            self.faults.subtract([.membership, .fullDisk, .failedSync, .failedApply, .tinyLimits])
            self.nodeCount = [3, 4, 5][draw(0...2)]
            self.memberCountMax = self.nodeCount
            self.voterCount = 3
            self.partitionCount = [2, 4][draw(0...1)]
            self.bucketCount = draw(0...2) > 0 ? 4 : 0
            self.groupCount = self.partitionCount + 1
            self.clientCount = draw(2...4)
            self.registerCount = draw(1...3)
            self.thinkTimeMax = milliseconds(5, 20)
            self.faultInterval = milliseconds(150, 400)
            self.restartMax = milliseconds(20, 200)
            self.trailingEntryCount = UInt64([0, 5, 50][draw(0...2)])
            self.checkpointInterval = milliseconds(20, 200, 1_000)
            self.livenessTime = .seconds(240)
            self.safetyTime = .seconds(draw(2...4))
        case .assets:
            self.holdsAssets = true
            self.holdsRecords = false
            self.bucketCount = 0
            self.isPlaced = false
            self.usesLinks = false
            self.levels = nil
            self.clientCount = 0
            self.readerCount = 0
            self.registerCount = 0
            self.faults.formUnion([.processCrash, .powerLoss, .membership])
            self.faults.subtract([.lostRows, .rottenLog, .tinyLimits])
            self.nodeCount = [3, 4, 5][draw(0...2)]
            self.voterCount = 3
            self.memberSetCount = [0, 2, 3][draw(0...2)]
            self.groupCount = draw(1...2)
            self.assetWorkerCount = draw(1...3)
            self.rotsPacks = draw(0...1) == 0
            self.faultInterval = milliseconds(150, 400, 900)
            self.restartMax = milliseconds(20, 200, 600)
            self.trailingEntryCount = UInt64([0, 5, 50][draw(0...2)])
            self.checkpointInterval = milliseconds(20, 200, 1_000)
            self.livenessTime = .seconds(120)
            self.safetyTime = .seconds(draw(6...12))
        case .push:
            self.holdsPushes = true
            self.holdsRecords = false
            self.bucketCount = 0
            self.isPlaced = false
            self.usesLinks = false
            self.levels = nil
            self.clientCount = 0
            self.readerCount = 0
            self.registerCount = 0
            self.faults.formUnion([.processCrash, .partition])
            if draw(0...1) == 0 { self.faults.formUnion([.powerLoss, .membership, .transfer]) }
            self.faults.subtract([.lostRows, .rottenLog, .tinyLimits, .fullDisk, .failedSync])
            self.nodeCount = [3, 3, 4][draw(0...2)]
            self.voterCount = 3
            self.groupCount = draw(1...2)
            self.pushActiveCountMax = [2, 3, 8][draw(0...2)]
            self.pushRestingCountMax = [1, 4, 64][draw(0...2)]
            self.pushAskCountMax = [1, 2, 4][draw(0...2)]
            self.faultInterval = milliseconds(300, 900, 2_000)
            self.restartMax = milliseconds(20, 200, 600)
            self.trailingEntryCount = UInt64([0, 5, 50][draw(0...2)])
            self.checkpointInterval = milliseconds(20, 200, 1_000)
            self.livenessTime = .seconds(120)
            self.safetyTime = .seconds(draw(5...9))
        case .crowds:
            self.faults.subtract([.tinyLimits, .fullDisk])
            self.clientCount = draw(24...96)
            self.registerCount = draw(8...32)
            self.thinkTimeMax = milliseconds(1, 4)
            self.delayMin = .microseconds(50)
            self.delayMax = .microseconds([200, 1_000][draw(0...1)])
            self.syncMax = self.syncMin + .microseconds([100, 1_000][draw(0...1)])
            self.segmentSize = .kibibytes([256, 1_024][draw(0...1)])
            self.trailingEntryCount = UInt64([50, 500][draw(0...1)])
            self.checkpointInterval = milliseconds(100, 500)
            self.faultInterval = milliseconds(500, 1_000, 2_000)
            self.restartMax = milliseconds(20, 200)
            self.safetyTime = .seconds(draw(5...15))
        }
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
            + (self.sealsFiles ? "sealed " : "")
            + (self.bucketCount > 0 ? "buckets=\(self.bucketCount) " : "")
            + (self.zoneBucketCount > 0 ? "zones=\(self.zoneBucketCount) " : "")
            + (self.isPlaced ? "members≤\(self.memberCountMax) " : "") + "faults="
            + (faults.isEmpty ? "none" : faults.joined(separator: ","))
    }
}
