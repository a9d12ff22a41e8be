import StratusCluster
import StratusCoding
package import StratusConsensus
import StratusDoubles
import StratusModel
import StratusPlacement
import StratusStorage

/// A whole cluster in one thread, from one seed: the code of real nodes on simulated disks, clocks
/// and links, under faults, watched by ``Invariants``.
///
/// First faults strike (safety phase: nothing may go wrong). Then they stop, all but perhaps one
/// node come back, and the cluster must converge (liveness phase: everything must come right). Then
/// the histories of the clients are checked.
///
/// The same seed and options give the same run, event for event: ``Report/traceHash`` says so.
package final class Simulation {
    package struct Report: Sendable {
        package let seed: UInt64
        package let options: SimulationOptions
        package internal(set) var violation: Violation?
        package internal(set) var traceHash: UInt64 = 0xCBF2_9CE4_8422_2325
        package internal(set) var eventCount = 0
        package internal(set) var messageCount = 0
        package internal(set) var operationCount = 0
        package internal(set) var acknowledgedCount = 0
        package internal(set) var unknownCount = 0
        package internal(set) var entryCount = 0
        package internal(set) var crashCount = 0
        package internal(set) var failedStartCount = 0
        package internal(set) var simulatedNanoseconds: Int64 = 0
        package internal(set) var faultCounts: [SimulationOptions.Fault: Int] = [:]
        package internal(set) var reached: [RarePath: Int] = [:]
        /// Counts for a cluster with a placement table: moves, newcomers, removals and the like.
        package internal(set) var membershipCounts: [String: Int] = [:]
        /// Counts for groups that hold records: saves, refusals, slices of jobs and the like.
        package internal(set) var recordCounts: [String: Int] = [:]
        /// Counts for nodes that talk by real links: connections tried, opened, broken and the
        /// like.
        package internal(set) var linkCounts: [String: Int] = [:]
        /// Counts for a cluster that is upgraded: nodes exchanged, and whether it was raised.
        package internal(set) var levelCounts: [String: Int] = [:]
        package internal(set) var nodeCount = 0
        package internal(set) var groupCount = 0
        /// While a disk took nothing: the most that waited for it in memory, and what its node's
        /// groups may have waiting.
        package internal(set) var waitingSizeMax = 0
        package internal(set) var waitingSizeBound = 0
    }

    /// In the steady one load goes on without faults.
    enum Phase { case safety, steady, liveness, done }

    var report: Report
    let options: SimulationOptions
    let tuning: Replica.Tuning
    let logLimits: SegmentedLog.Limits
    let stateLimits: PartitionStore<SimulatedState>.Limits
    let bugs: PlantedBugs
    var now: Int64 = 0
    var queue = EventQueue<Event>()
    var phase = Phase.safety
    var nodes: [SimulatedNode] = []
    var clients: [SimulatedClient] = []
    var invariants = Invariants()
    var history = History()
    var initial: [GroupID: Configuration] = [:]
    /// Nil where groups stay where the seed put them.
    var placed: PlacedCluster?
    /// Nil but while the end of a log that has rotted is taken for a tear.
    var tornTail: TornTail?
    /// Nil where groups hold registers.
    var records: SimulatedRecords?
    /// Nil where messages go from process to process as they are.
    var streams: SimulatedStreams?
    /// The index that each node was last seen to take for committed, by group.
    var watched: [NodeID: [GroupID: LogIndex]] = [:]
    /// Requests of which a copy may still arrive when the client is long gone.
    var lateCopies: [RequestIdentity: SimulatedClient.Current] = [:]
    var nextValue = 1
    var nextToken: UInt64 = 0
    /// Links that drop everything, by what cut them.
    var cuts: [(number: Int, from: NodeID, to: NodeID)] = []
    var cutCount = 0
    var convergenceDeadline: Int64 = 0
    var steadyDeadline: Int64 = 0
    /// Whose disk takes nothing, and until when.
    var standstill: (node: NodeID, until: Int64)?
    /// Nil where records name no files.
    var assets: AssetWorld?
    /// Nil where nobody subscribes.
    var push: PushWorld?
    /// Nil unless all nodes but one are being lost, or are.
    var recovery: LostMajority?
    /// Snapshots that had been needed when the steady phase began.
    var snapshotsBefore = 0
    var lastProblem = "nothing was checked"
    var closing: [RegisterName] = []
    package var trace: ((String) -> Void)?
    package var timeline: Timeline?

    // Streams of their own, so that switching one kind of fault off changes as little else as can
    // be.
    var networkRandom: SeededGenerator
    var diskRandom: SeededGenerator
    var faultRandom: SeededGenerator
    var clientRandom: SeededGenerator
    var endRandom: SeededGenerator
    var rebuildRandom: SeededGenerator

    package init(seed: UInt64, options: SimulationOptions) {
        self.report = Report(seed: seed, options: options)
        self.options = options
        let groupCount = options.isPlaced ? options.partitionCount + 1 : options.groupCount
        self.groups = (0..<groupCount).map { GroupID(UInt16($0)) }
        self.clientGroups = options.isPlaced ? Array(self.groups.dropFirst()) : self.groups
        var random = SeededGenerator(seed: seed)
        self.networkRandom = SeededGenerator(seed: random.next())
        self.diskRandom = SeededGenerator(seed: random.next())
        self.faultRandom = SeededGenerator(seed: random.next())
        self.clientRandom = SeededGenerator(seed: random.next())
        self.endRandom = SeededGenerator(seed: seed ^ 0x456E_6473_0000_0001)
        self.rebuildRandom = SeededGenerator(seed: seed ^ 0x5265_6275_696C_0001)
        var tuning = Replica.Tuning()
        tuning.raft = options.tuning(&random)
        tuning.trailingEntryCount = options.trailingEntryCount
        tuning.retainedSizeMax = options.retainedSizeMax
        tuning.digestInterval = options.digestInterval
        tuning.digestPause = options.checksRows ? .seconds(2) : nil
        tuning.awaitsCopies = options.holdsAssets
        self.tuning = tuning
        #if STRATUS_PLANTED
            self.bugs = PlantedBugs(options.bugs)
        #else
            self.bugs = PlantedBugs()
        #endif
        var logLimits = SegmentedLog.Limits()
        logLimits.segmentSize = options.segmentSize
        logLimits.batchSizeMax = options.batchSizeMax
        logLimits.spareCountMax = options.spareSegmentMax
        logLimits.bugs = self.bugs
        self.logLimits = logLimits
        var stateLimits = PartitionStore<SimulatedState>.Limits()
        stateLimits.walSizeMax = options.walSizeMax
        stateLimits.cacheSize = .kibibytes(256)
        stateLimits.snapshotFrameSize = options.snapshotFrameSize
        // Flushes of many slices, although there are few rows.
        stateLimits.flush.countMax = 60
        stateLimits.flush.sizeMax = .kibibytes(16)
        stateLimits.flush.sliceCount = 5
        stateLimits.flush.ageMax = .milliseconds(250)
        stateLimits.bugs = self.bugs
        self.stateLimits = stateLimits
        self.nodes = (1...options.nodeCount).map {
            SimulatedNode(id: NodeID(UInt32($0)), seed: random.next())
        }
        if options.sealsFiles { for node in self.nodes { node.sealFiles() } }
        let ids = self.nodes.map(\.id)
        if options.isPlaced {
            let placed = PlacedCluster(seed: seed, options: options, nodes: ids)
            for group in self.groups {
                self.initial[group] = Configuration(voters: placed.founding.replicas(of: group))
            }
            self.placed = placed
            self.invariants.view = placed.founding
        }
        for group in self.groups where self.initial[group] == nil {
            let voters = Array(ids.shuffled(using: &random).prefix(options.voterCount)).sorted()
            self.initial[group] = Configuration(voters: voters)
        }
        for group in self.groups { self.invariants.begins(group, with: self.initial[group]!) }
        self.clients = (0..<options.clientCount).map { SimulatedClient(number: $0) }
        if options.holdsRecords {
            self.records = SimulatedRecords(
                options, groups: self.clientGroups, bugs: self.bugs)
        }
        if options.holdsAssets { self.assets = AssetWorld(seed: seed) }
        if options.holdsPushes {
            self.push = PushWorld(seed: seed, groups: self.clientGroups, options, bugs: self.bugs)
        }
        if options.usesLinks {
            self.streams = SimulatedStreams(self, seed: seed, options, bugs: self.bugs)
        }
    }

    let groups: [GroupID]
    /// Those that hold what clients write.
    let clientGroups: [GroupID]
    /// Some twenty times what the longest of the first ten thousand runs took.
    private static let eventCountMax = 10_000_000

    // MARK: Running

    package func run() -> Report {
        self.planLevels()
        for node in self.nodes { self.start(node) }
        self.pump()
        for client in self.clients.indices {
            self.queue.add(.client(.think(client)), at: self.thinkTime())
        }
        self.scheduleFault()
        self.queue.add(.check(.logs), at: 200_000_000)
        if self.streams != nil { self.queue.add(.link(.stranger), at: 1_000_000_000) }
        let safetyEnd = self.options.safetyTime.clampedNanoseconds
        while self.phase != .done, self.invariants.violation == nil,
            let (time, event) = self.queue.popFirst()
        {
            self.now = max(self.now, time)
            if self.phase == .safety, self.now >= safetyEnd {
                if self.options.steadyTime > .zero {
                    self.beginSteady()
                } else {
                    self.beginLiveness()
                }
            }
            if let id = event.receiver, self.node(id).pausedUntil > self.now {
                self.queue.add(event, at: self.node(id).pausedUntil)
                continue
            }
            self.report.eventCount += 1
            if self.report.eventCount > Self.eventCountMax {
                self.invariants.report("liveness", "events without end: \(event)")
            }
            self.handle(event)
            self.pump()
            self.streams?.buried = []
        }
        if self.phase == .done { self.scrub() }
        self.endShells()
        self.report.nodeCount = self.nodes.count
        self.report.groupCount = self.groups.count
        self.report.recordCounts =
            self.records?.totals ?? self.assets?.counts ?? self.push?.counts ?? [:]
        if let long = self.streams?.ledger.longCount {
            self.report.linkCounts["messages of many frames"] = long
        }
        self.report.simulatedNanoseconds = self.now
        self.report.violation =
            self.invariants.violation ?? (self.recovery == nil ? self.checkHistory() : nil)
        if let violation = self.report.violation { self.note("VIOLATION \(violation)") }
        return self.report
    }

    /// Adds what is to reach the process that `node` has now.
    func add(_ event: ProcessEvent, to node: SimulatedNode, at time: Int64) {
        self.queue.add(.process(event, node.id, life: node.incarnation), at: time)
    }

    private func handle(_ event: Event) {
        switch event {
        case .process(let event, let id, let life): self.handle(event, at: id, life: life)
        case .client(let event): self.handle(event)
        case .fault(let event): self.handle(event)
        case .link(let event): self.handle(event)
        case .level(let event): self.handle(event)
        case .check(let event): self.handle(event)
        }
    }

    private func handle(_ event: CheckEvent) {
        switch event {
        case .logs:
            self.compareLogs()
            self.checkHeld()
            self.queue.add(.check(.logs), at: self.now + 200_000_000)
        case .convergence: self.checkConvergence()
        case .streaming: self.checkStreaming()
        case .rows: self.checkRows()
        case .endRotten(let id):
            self.crash(self.node(id), losesPower: false, backAfter: 300_000_000)
        case .tearTail(let attempt): self.tearTail(attempt: attempt)
        case .endTornLeader: self.endTornLeader()
        }
    }

    // MARK: The trace

    func mix(_ kind: UInt64, _ one: UInt32, _ other: UInt32, _ third: UInt64, _ fourth: UInt64) {
        for value in [
            kind, UInt64(bitPattern: self.now), UInt64(one), UInt64(other), third, fourth,
        ] {
            self.report.traceHash = (self.report.traceHash ^ value) &* 0x100_0000_01B3
        }
    }

    func note(_ text: @autoclosure () -> String) {
        guard let trace else { return }
        let microseconds = self.now / 1_000
        let padded = String(microseconds)
        trace(String(repeating: " ", count: max(0, 10 - padded.count)) + padded + "  " + text())
    }

    // MARK: Access

    func node(_ id: NodeID) -> SimulatedNode { self.nodes[Int(id.raw) - 1] }

    private func compareLogs() {
        for group in self.groups {
            let replicas = self.nodes.compactMap { $0.host?.replica(of: group) }
            for (position, one) in replicas.enumerated() {
                self.invariants.checkConfiguration(one)
                for other in replicas[(position + 1)...] { self.invariants.compareLogs(one, other) }
            }
        }
    }

    // MARK: The end

    /// Nothing of a process goes on behind the run.
    private func endShells() {
        for node in self.nodes {
            node.endParts()
            self.endLinks(of: node)
        }
        self.executor?.run()
    }

    /// Every row of every replica read back: S-14, I-3.
    func scrub() {
        for node in self.nodes {
            for group in self.groups {
                guard let partition = node.partitions[group] else { continue }
                do {
                    let faults = try partition.store.verify()
                    if let fault = faults.first {
                        self.invariants.report("I-3 scrub", "\(group): \(node.id): \(fault)")
                    }
                } catch {
                    self.invariants.report("I-3 scrub", "\(group): \(node.id): \(error)")
                }
            }
        }
    }

    func checkHistory() -> Violation? {
        var feeds: [GroupID: [RegisterChange]] = [:]
        var ends: [GroupID: Replica] = [:]
        for group in self.clientGroups {
            // The replicas have converged, or there is a violation already.
            let replicas = self.nodes.compactMap { $0.host?.replica(of: group) }
            guard let best = replicas.max(by: { $0.state.applied < $1.state.applied }) else {
                continue
            }
            ends[group] = best
            if self.records != nil {
                if let violation = self.checkRecords(group, best) { return violation }
                continue
            }
            guard
                let answer = try? best.state.answer(
                    RegisterQuery.feed(after: 0, limit: .max).query),
                let changes = try? RegisterState.changes(in: answer)
            else { continue }
            feeds[group] = changes
        }
        return self.checkBuckets(ends) ?? self.checkZones(ends) ?? self.history.check(feeds: feeds)
    }
}
