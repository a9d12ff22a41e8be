import StratusConsensus
import StratusModel
import StratusSimulation
import Testing

/// Whole clusters from seeds. The long runs are `stratus-sim`; these are few, short, and in every
/// build.
@Suite struct SimulationTests {
    static func options(_ seed: UInt64) -> SimulationOptions {
        var options = SimulationOptions(seed: seed)
        options.groupCount = min(options.groupCount, 3)
        options.safetyTime = min(options.safetyTime, .seconds(5))
        return options
    }

    // C-01 C-03 C-07 C-08 C-11 C-14 C-15 C-16 C-17 C-31 C-38 C-39 C-42 C-43 C-45 C-48 C-51 meet
    // here at random; each has its own trace or test where it can be told apart.
    @Test(arguments: 1...16 as ClosedRange<UInt64>)
    func `C-48 a cluster keeps its promises under random faults and converges after them`(
        seed: UInt64
    ) {
        let options = Self.options(seed)
        let report = Simulation(seed: seed, options: options).run()
        #expect(
            report.violation == nil,
            "stratus-sim --seed \(seed): \(options.summary): \(report.violation?.description ?? "")"
        )
        #expect(report.eventCount > 0)
    }

    @Test(arguments: [5, 17, 23] as [UInt64])
    func `a seed replays event for event`(seed: UInt64) {
        let first = Simulation(seed: seed, options: Self.options(seed)).run()
        let second = Simulation(seed: seed, options: Self.options(seed)).run()
        #expect(first.traceHash == second.traceHash)
        #expect(first.eventCount == second.eventCount)
    }

    /// Seeds that once failed, with the faults they failed under.
    @Test(arguments: [4, 11, 64, 165, 166, 197, 201, 658, 757, 1290, 1660] as [UInt64])
    func `what was mended stays mended`(seed: UInt64) {
        var options = SimulationOptions(seed: seed, drawsMix: false, drawsLevels: false)
        options.groupCount = min(options.groupCount, 3)
        let report = Simulation(seed: seed, options: options).run()
        #expect(report.violation == nil, "seed \(seed): \(report.violation?.description ?? "")")
    }

    /// 3666: a client that began a database from nothing remembered a zone of before. 3975: a read
    /// was asked, was confirmed and waited for its rows while the voters changed. 8743: a process
    /// ended between the call that asked its replicas and that call's turn, and nobody answered.
    /// 6789: rot in the list of a batch was named by the next segment, and the entries' terms were
    /// asked for all the same; 12659 too. 13169: a pause was cut short, and the log's report of
    /// before it came after the one of after it. 12726: one of two voters was struck, who are a
    /// majority only together. 2765: what was written behind a break arrived, since the connection
    /// broke a second time. 1697: an old connection was heard once more when its starts came late,
    /// behind a newer one. 9297: two ends in a row tore both slots of the starts. 3696: an entry of
    /// a later term was put where one had rotted, and what had followed that stayed behind it.
    @Test(
        arguments: [1697, 2765, 3666, 3696, 3975, 6789, 8743, 9297, 12_659, 12_726, 13_169]
            as [UInt64])
    func `what was mended stays mended as it was found`(seed: UInt64) {
        let report = Simulation(
            seed: seed, options: SimulationOptions(seed: seed, drawsLevels: false)
        ).run()
        #expect(report.violation == nil, "seed \(seed): \(report.violation?.description ?? "")")
    }

    /// 3276: no client wrote, so nothing showed that rows had rotted. 4244: a start read more of
    /// its log into memory than the tail may hold.
    @Test(arguments: [3276, 4244] as [UInt64])
    func `what was mended stays mended with builds of two levels`(seed: UInt64) {
        let report = Simulation(seed: seed, options: SimulationOptions(seed: seed)).run()
        #expect(report.violation == nil, "seed \(seed): \(report.violation?.description ?? "")")
    }

    /// One fault at a time, so that a failure names its cause.
    @Test(arguments: SimulationOptions.Fault.allCases)
    func `a cluster of three survives each kind of fault`(fault: SimulationOptions.Fault) {
        for seed in 1_000...1_001 as ClosedRange<UInt64> {
            var options = Self.options(seed)
            options.nodeCount = 3
            options.voterCount = 3
            options.groupCount = 1
            options.faults = [fault]
            let report = Simulation(seed: seed, options: options).run()
            #expect(
                report.violation == nil,
                "\(fault) seed \(seed): \(report.violation?.description ?? "")")
            #expect(report.acknowledgedCount > 0, "\(fault) seed \(seed): nothing was answered")
        }
    }

    /// Seed 1290: six nodes, one of them gone for good, stood for election over slow disks without
    /// end. Here every wait is shorter than a vote takes to reach a disk, and no fault strikes:
    /// only waiting longer after every election that fails can end it.
    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `C-12 elections over disks slower than candidates wait find a leader`(seed: UInt64) {
        let report = Simulation(seed: seed, options: Self.slowElections(seed)).run()
        #expect(report.violation == nil, "seed \(seed): \(report.violation?.description ?? "")")
        #expect(report.acknowledgedCount > 0, "seed \(seed): nothing was answered")
    }

    static func slowElections(_ seed: UInt64) -> SimulationOptions {
        var options = SimulationOptions(seed: seed, drawsMix: false, drawsLevels: false)
        options.nodeCount = 5
        options.voterCount = 5
        options.groupCount = 1
        options.clientCount = 2
        options.isStormy = true
        options.faults = []
        options.safetyTime = .seconds(2)
        options.delayMin = .milliseconds(5)
        options.delayMax = .milliseconds(30)
        options.syncMin = .milliseconds(60)
        options.syncMax = .milliseconds(80)
        return options
    }

    /// Worlds led by a mix: where chance seldom goes.
    @Test(arguments: SimulationOptions.Mix.allCases)
    func `a cluster keeps its promises in a world led by a mix`(mix: SimulationOptions.Mix) {
        for seed in 3_000...3_001 as ClosedRange<UInt64> {
            var options = SimulationOptions(seed: seed, drawsMix: false, drawsLevels: false)
            options.lead(by: mix, seed: seed)
            // A crowd does in one second what others do in ten.
            options.safetyTime = min(options.safetyTime, .seconds(mix == .crowds ? 1 : 5))
            let report = Simulation(seed: seed, options: options).run()
            #expect(
                report.violation == nil,
                "\(mix) seed \(seed): \(report.violation?.description ?? "")")
        }
    }

    /// Core audit 11, core audit 3.2: nothing but the digests, or the sum of the rows, says that these
    /// rows are others. 20: a checkpoint made the room that entries waited for, and nobody went on.
    @Test(arguments: (Array(1...12) + [20]) as [UInt64])
    func `S-13 a member whose rows rot, or a leader, is found and rebuilt`(seed: UInt64) {
        var options = SimulationOptions(seed: seed, drawsMix: false)
        options.lead(by: .divergence, seed: seed)
        let report = Simulation(seed: seed, options: options).run()
        #expect(report.violation == nil, "seed \(seed): \(report.violation?.description ?? "")")
        let found = [.diverged, .rowsFoundRotten].reduce(0) { $0 + report.reached[$1, default: 0] }
        #expect(found > 0, "seed \(seed)")
    }

    /// The only other holder of what the member has dropped ends as soon as it has said so.
    @Test(arguments: 1...3 as ClosedRange<UInt64>)
    func `S-09 nobody is elected by a member whose acknowledged tail has rotted`(seed: UInt64) {
        var options = SimulationOptions(seed: seed, drawsMix: false)
        options.lead(by: .tornTail, seed: seed)
        let report = Simulation(seed: seed, options: options).run()
        #expect(report.violation == nil, "seed \(seed): \(report.violation?.description ?? "")")
        #expect(report.reached[.acknowledgedTailOwed, default: 0] > 0, "seed \(seed)")
        #expect(report.reached[.logWholeAgain, default: 0] > 0, "seed \(seed)")
    }

    /// Core audit 2: ten minutes in the simulator itself (`stratus-sim --mix standstill`), twenty
    /// seconds here.
    @Test(arguments: 1...2 as ClosedRange<UInt64>)
    func `C-17 S-05 the memory of a member stays flat while its disk is full or hangs`(
        seed: UInt64
    ) {
        var options = SimulationOptions(seed: seed, drawsMix: false)
        options.lead(by: .standstill, seed: seed)
        options.standstillTime = .seconds(20)
        let report = Simulation(seed: seed, options: options).run()
        #expect(report.violation == nil, "seed \(seed): \(report.violation?.description ?? "")")
        #expect(report.reached[.inFlightFull, default: 0] > 0, "seed \(seed)")
        guard PlantedBugs.isPossible else { return }
        // Not because nothing would be found.
        options.bugs = [.flowCountsReceived]
        let found = Simulation(seed: seed, options: options).run()
        #expect(found.violation?.rule == "C-17 bounded memory", "seed \(seed)")
    }

    /// Core audit 2: the whole ten minutes, with less load a second than the mix has.
    @Test func `C-17 S-05 a disk that is full for ten minutes under load costs no memory`() {
        var options = SimulationOptions(seed: 2, drawsMix: false)
        options.lead(by: .standstill, seed: 2)
        #expect(options.standstillTime == .seconds(600) && options.standsStillFull)
        options.thinkTimeMax = .seconds(2)
        let report = Simulation(seed: 2, options: options).run()
        #expect(report.violation == nil, "\(report.violation?.description ?? "")")
        #expect(report.simulatedNanoseconds > 600_000_000_000)
        // Every write is of some hundred bytes: much more came by than may wait.
        #expect(report.acknowledgedCount > 1_000)
        #expect(report.waitingSizeBound < 20_000)
        #expect(report.waitingSizeMax > 0 && report.waitingSizeMax <= report.waitingSizeBound)
    }

    /// Core audit 1: without the rule of release each snapshot is too old when it arrives, as long
    /// as the load lasts.
    @Test(arguments: 1...6 as ClosedRange<UInt64>)
    func `M-24 C-31 a member that lost its rows catches up while load goes on`(seed: UInt64) {
        var options = SimulationOptions(seed: seed, drawsMix: false)
        options.lead(by: .catchingUp, seed: seed)
        let report = Simulation(seed: seed, options: options).run()
        #expect(report.violation == nil, "seed \(seed): \(report.violation?.description ?? "")")
        #expect(report.reached[.snapshotInstalled, default: 0] > 0, "seed \(seed)")
    }

    /// Load without faults is part of what seeds draw; the seeds that other tests name stay what
    /// they were.
    @Test func `ordinary seeds draw every mix in which load goes on`() {
        let steady: [SimulationOptions.Mix] = [
            .catchingUp, .divergence, .standstill, .lostMajority, .tornTail,
        ]
        for mix in steady {
            let count = (1...2_000 as ClosedRange<UInt64>).count {
                SimulationOptions(seed: $0).mix == mix
            }
            #expect((2...20).contains(count), "\(mix): \(count) of 2,000")
        }
        let named: [UInt64] =
            Array(1...23) + [
                77, 1697, 2_000, 2_001, 2765, 3666, 3696, 3975, 5388, 6789, 7_614, 8743, 9297,
                12_659, 12_726, 13_169,
            ]
        for seed in named {
            #expect(
                SimulationOptions(seed: seed).mix
                    == SimulationOptions(seed: seed, drawsSteady: false).mix, "seed \(seed)")
        }
    }
}
