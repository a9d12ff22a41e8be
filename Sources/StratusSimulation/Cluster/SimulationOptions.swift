import StratusConsensus
package import StratusModel

/// What one run is made of: its cluster, its load, and what goes wrong. Drawn from the seed (swarm
/// testing: each kind of fault is off in about half of the runs), then changed by hand if wanted.
package struct SimulationOptions: Sendable, Equatable {
    package enum Fault: String, Sendable, CaseIterable {
        case loss, duplication, longDelay, partition, oneWayCut, processCrash, powerLoss, pause
        case clockDrift, clockJump, slowDisk, failedSync, failedApply, membership, transfer
        case tinyLimits, flappingLink, crashInCall, fullDisk
    }

    package var nodeCount: Int
    package var groupCount: Int
    /// Voters of a group at the start.
    package var voterCount: Int
    package var clientCount: Int
    package var registerCount: Int
    /// How long faults strike, in simulated time; then the cluster must converge.
    package var safetyTime: Duration
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
    /// Through the codec, as between real nodes.
    package var encodesMessages: Bool
    package var bugs: [PlantedBug] = []

    package init(seed: UInt64) {
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
        for fault in Fault.allCases where draw(0...1) == 1 { faults.insert(fault) }
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
    }

    /// The bounds of consensus: the real ones, or so small that every one of them is met.
    func tuning(_ random: inout SeededGenerator) -> RaftTuning {
        var tuning = RaftTuning()
        if Int.random(in: 0..<4, using: &random) == 0 {
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
            + "clients=\(self.clientCount) faults="
            + (faults.isEmpty ? "none" : faults.joined(separator: ","))
    }
}
