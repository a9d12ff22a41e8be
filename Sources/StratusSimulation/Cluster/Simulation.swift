import StratusCluster
import StratusCoding
package import StratusConsensus
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

    enum Event {
        case message(GroupID, ConsensusMessage, from: NodeID, to: NodeID, life: UInt64)
        case heartbeat(NodeHeartbeat, from: NodeID, to: NodeID, life: UInt64)
        case wake(NodeID, life: UInt64)
        case synced(NodeID, life: UInt64)
        case reported(NodeID, LogEvent, life: UInt64)
        case strike(NodeID, life: UInt64)
        case peer(PeerMessage, from: NodeID, to: NodeID, life: UInt64)
        case linkLost(NodeID, to: NodeID, life: UInt64)
        case processEnded(NodeID, formerLife: UInt64, for: NodeID, life: UInt64)
        case stream(StreamEvent)
        case linkTurn(NodeID, life: UInt64, UInt64)
        case stranger
        case resume(NodeID, life: UInt64, sleep: UInt64)
        case overdue(NodeID, life: UInt64, RaftGroup.RequestToken)
        case checkpoint(NodeID, life: UInt64)
        case mail(MailEvent, NodeID, life: UInt64)
        case restart(NodeID)
        case diskRoom(NodeID)
        case think(Int)
        case request(client: Int, number: Int, identity: RequestIdentity, NodeID)
        case response(client: Int, number: Int, Answer)
        case impatience(client: Int, number: Int, attempt: Int)
        case fault
        case cut([(NodeID, NodeID)], for: Int64)
        case heal(Int)
        case compareLogs
        case checkConvergence
        case exchange(NodeID, for: FeatureLevel)
        case finishExchange(NodeID)
        case raiseLevel
        case hearLevel(NodeID)
        case checkStreaming
        case tearTail(attempt: Int)
        case endTornLeader
    }

    enum Answer {
        case outcome(Outcome)
        case answer(QueryAnswer)
        case refused(ReplicaRefusal)
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
        var tuning = Replica.Tuning()
        tuning.raft = options.tuning(&random)
        tuning.trailingEntryCount = options.trailingEntryCount
        tuning.retainedSizeMax = options.retainedSizeMax
        tuning.digestInterval = options.digestInterval
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
        for client in self.clients.indices { self.queue.add(.think(client), at: self.thinkTime()) }
        self.scheduleFault()
        self.queue.add(.compareLogs, at: 200_000_000)
        if self.streams != nil { self.queue.add(.stranger, at: 1_000_000_000) }
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
            if let node = self.receiver(of: event), node.pausedUntil > self.now {
                self.queue.add(event, at: node.pausedUntil)
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

    /// The node whose process would take the event; nil for what is no process' business.
    private func receiver(of event: Event) -> SimulatedNode? {
        switch event {
        case .message(_, _, _, let to, _), .heartbeat(_, _, let to, _), .wake(let to, _),
            .request(_, _, _, let to), .synced(let to, _), .checkpoint(let to, _),
            .reported(let to, _, _), .peer(_, _, let to, _), .linkLost(let to, _, _),
            .processEnded(_, _, let to, _),
            .resume(let to, _, _), .overdue(let to, _, _), .mail(_, let to, _),
            .linkTurn(let to, _, _):
            self.node(to)
        case .restart, .strike, .diskRoom, .think, .response, .impatience, .fault, .cut, .heal,
            .compareLogs, .stream, .stranger, .checkConvergence, .checkStreaming, .tearTail,
            .endTornLeader, .exchange,
            .finishExchange, .raiseLevel, .hearLevel:
            nil
        }
    }

    private func handle(_ event: Event) {
        switch event {
        case .message(let group, let message, let from, let to, let life):
            self.mix(1, from.raw, to.raw, message.term.raw, UInt64(group.raw))
            self.deliver(message, of: group, from: from, to: to, life: life)
        case .heartbeat(let heartbeat, let from, let to, let life):
            self.mix(2, from.raw, to.raw, heartbeat.sequence, 0)
            let node = self.node(to)
            // The link of a process' successor takes the place of its own.
            guard node.incarnation == life, node.isUp,
                heartbeat.incarnation.raw == self.node(from).incarnation
            else { return }
            self.enter(node) { host, now, effects in
                host.receive(
                    heartbeat, from: from, node.vitals(self.now), at: now, into: &effects)
            }
        case .wake(let id, let life):
            let node = self.node(id)
            guard node.incarnation == life, node.isUp else { return }
            self.mix(3, id.raw, 0, 0, 0)
            self.enter(node) { host, now, effects in
                host.wake(node.vitals(self.now), at: now, into: &effects)
            }
        case .peer(let message, let from, let to, let life):
            self.hear(message, from: from, to: to, life: life)
        case .linkLost(let id, let other, let life):
            guard self.node(id).incarnation == life else { return }
            self.node(id).shells?.router.lost(other)
        case .processEnded(let other, let otherLife, let id, let life):
            // The next process takes connections again, and through a cut nobody hears of a
            // refusal.
            guard self.node(other).incarnation == otherLife, !self.node(other).isUp,
                self.passes(from: id, to: other), self.passes(from: other, to: id)
            else { return }
            self.processEnded(other, for: id, life: life)
        case .stream(let event): self.streams?.handle(event)
        case .stranger: self.stranger()
        case .linkTurn(let id, let life, let turn): self.linkTurn(id, life: life, turn)
        case .resume(let id, let life, let sleep):
            guard self.node(id).incarnation == life else { return }
            self.node(id).shells?.life.wake(sleep)
            self.node(id).assets?.life.wake(sleep)
            self.node(id).push?.life.wake(sleep)
        case .overdue(let id, let life, let token): self.overdue(token, on: id, life: life)
        case .synced(let id, let life): self.synced(id, life: life)
        case .reported(let id, let event, let life): self.reported(event, to: id, life: life)
        case .strike(let id, let life):
            guard self.phase == .safety, self.node(id).incarnation == life else { return }
            self.count(.crashOnRarePath)
            self.crash(self.node(id), losesPower: true, backAfter: self.restartTime())
        case .checkpoint(let id, let life): self.checkpoint(id, life: life)
        case .mail(let event, let id, let life): self.handleMail(event, on: id, life: life)
        case .restart(let id):
            if !self.node(id).isUp, !self.node(id).isOut { self.start(self.node(id)) }
        case .diskRoom(let id): self.node(id).files.setCapacity(nil)
        case .think(let client): self.think(client)
        case .request(let client, let number, let identity, let to):
            self.request(client: client, number: number, identity: identity, to: to)
        case .response(let client, let number, let answer):
            self.respond(client: client, number: number, answer)
        case .impatience(let client, let number, let attempt):
            self.lostPatience(client: client, number: number, attempt: attempt)
        case .fault: self.strike()
        case .cut(let links, let time): self.cut(links, for: time)
        case .heal(let number): self.cuts.removeAll { $0.number == number }
        case .compareLogs:
            self.compareLogs()
            self.checkHeld()
            self.queue.add(.compareLogs, at: self.now + 200_000_000)
        case .checkConvergence: self.checkConvergence()
        case .exchange(let id, let build): self.exchange(id, for: build)
        case .finishExchange(let id): self.finishExchange(id)
        case .raiseLevel: self.raiseLevel()
        case .hearLevel(let id): self.hearLevel(id)
        case .checkStreaming: self.checkStreaming()
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
            node.assets?.end()
            node.assets = nil
            node.push?.end()
            node.push = nil
            node.shells?.end()
            node.shells = nil
            self.endLinks(of: node)
        }
        self.placed?.executor.run()
        self.assets?.executor.run()
        self.push?.executor.run()
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
