import Foundation
import StratusCommandLine
import StratusConsensus
import StratusModel
import StratusSimulation

/// `stratus-sim`: whole clusters from seeds, until one breaks a promise.
struct SimulationProgram {
    private static let definition = CommandDefinition(
        "stratus-sim", "Simulate whole clusters from seeds and check every promise",
        discussion: [
            "Each seed draws a cluster, its load and its faults; the same seed replays "
                + "exactly. Faults strike, then stop. The cluster must then converge, and one order "
                + "of operations must explain everything that clients saw."
        ],
        options: [
            .value("seed", .integer(0...Int.max), "Run one seed and report it in full"),
            .value("seeds", .text("A..B"), "Run a range of seeds"),
            .value(
                "minutes", .integer(1...100_000),
                "Run seeds for this many minutes, beginning with --from"),
            .value(
                "from", .integer(0...Int.max), default: "1",
                "The first seed of --minutes and --until-failure"),
            .flag("until-failure", nil, "Run seeds until one fails, beginning with --from"),
            .flag("shrink", nil, "With --seed: leave out faults as long as the run still fails"),
            .flag("trace", nil, "With --seed: print every message and event"),
            .value("svg", .file, "With --seed: write a diagram of the run"),
            .value("without", .text("FAULT"), repeats: true, "Turn one kind of fault off"),
            .value("nodes", .integer(1...7), "This number instead of the one that the seed draws"),
            .value(
                "groups", .integer(1...64), "This number instead of the one that the seed draws"),
            .value(
                "plant", .text("BUG"), repeats: true, "Plant a bug (only in builds that hold them)"),
            .flag(
                "planted", nil,
                "Plant each bug (or those of --plant) in turn and count the seeds until it is found"
            ),
            .flag(
                "bugs", nil,
                "List the bugs that can be planted, the mix that leads to each, and where it is found"
            ),
            .value(
                "mix", .text("MIX"),
                "Use this mix of faults instead of the one that the seed draws: "
                    + SimulationOptions.Mix.allCases.map(\.rawValue).joined(separator: ", ")),
            .flag("records", nil, "Always let groups hold records"),
            .flag("documents", nil, "Always let groups hold records, and documents with locks"),
            .flag("zones", nil, "Always let groups hold records, and zones lie in buckets"),
            .flag("links", nil, "Always let nodes talk over the real links"),
            .flag("rebuilds", nil, "Make files anew now and then, and let logs expire"),
            .value(
                "seeds-per-bug", .integer(1...1_000_000), default: "500",
                "Give up on a bug after this many seeds"),
        ],
        examples: [
            .init("stratus-sim --seeds 1..1000", "A thousand clusters"),
            .init("stratus-sim --seed 42 --trace", "One of them, with every message and event"),
        ])

    func run(_ arguments: [String]) {
        switch CommandLineParser(Self.definition).parse(arguments) {
        case .run(let invocation): self.run(invocation)
        case .help(let text): print(text)
        case .version:
            print(
                "stratus-sim, planted bugs \(PlantedBugs.isPossible ? "possible" : "not in this build")"
            )
        case .refused(let error):
            FileHandle.standardError.write(Data("\(error)\n".utf8))
            exit(ExitCode.usage.rawValue)
        }
    }

    /// Ends the program for a value that cannot be meant, in the form of every other usage error.
    private static func refuse(_ text: String) -> Never {
        let error = CommandLineError(
            kind: .wrongValue, command: Self.definition.name, text: text)
        FileHandle.standardError.write(Data("\(error)\n".utf8))
        exit(ExitCode.usage.rawValue)
    }

    private func run(_ invocation: Invocation) {
        if invocation.flag("bugs") {
            print(PlantedBugList().write())
        } else if invocation.flag("planted") {
            let named = invocation.all("plant").compactMap(PlantedBug.init(rawValue:))
            PlantedBugHunt(
                seedCountMax: invocation.integer("seeds-per-bug") ?? 500,
                bugs: named.isEmpty ? PlantedBug.allCases : named
            ).run()
        } else if let seed = invocation.integer("seed") {
            self.runOne(UInt64(seed), invocation)
        } else {
            self.runMany(invocation)
        }
    }

    private func options(_ seed: UInt64, _ invocation: Invocation) -> SimulationOptions {
        let name = invocation["mix"] ?? Self.mix(of: seed, invocation)?.rawValue
        var options = SimulationOptions(seed: seed, drawsMix: name == nil)
        if let name {
            guard let mix = SimulationOptions.Mix(rawValue: name) else {
                Self.refuse(
                    "'--mix' wants one of "
                        + SimulationOptions.Mix.allCases.map(\.rawValue).joined(separator: ", ")
                        + ", not '\(name)'")
            }
            options.lead(by: mix, seed: seed)
        }
        if invocation.flag("records") { options.holdsRecords = true }
        if invocation.flag("documents") {
            options.holdsRecords = true
            options.holdsDocuments = true
        }
        if name != nil || invocation.flag("records") { options.drawZones(seed: seed) }
        if invocation.flag("zones") { options.spreadZones() }
        if invocation.flag("links") { options.usesLinks = true }
        if invocation.flag("rebuilds") { options.rebuildsFiles = true }
        for name in invocation.all("without") {
            guard let fault = SimulationOptions.Fault(rawValue: name) else {
                Self.refuse("there is no fault '\(name)' to leave out")
            }
            options.faults.remove(fault)
        }
        if let nodes = invocation.integer("nodes") {
            options.nodeCount = nodes
            options.voterCount = min(options.voterCount, nodes)
        }
        if let groups = invocation.integer("groups") { options.groupCount = groups }
        for name in invocation.all("plant") {
            guard let bug = PlantedBug(rawValue: name), PlantedBugs.isPossible else {
                Self.refuse("this build holds no bug '\(name)' to plant")
            }
            options.bugs.append(bug)
        }
        return options
    }

    /// Every eighth seed has clients of files, who take the place of all others, unless the command
    /// line says something of the clients or the world.
    private static func mix(of seed: UInt64, _ invocation: Invocation) -> SimulationOptions.Mix? {
        let isSaid = ["records", "documents", "zones", "links", "rebuilds"].contains {
            invocation.flag($0)
        }
        return !isSaid && seed % 8 == 7 ? .assets : nil
    }

    // MARK: One seed

    private func runOne(_ seed: UInt64, _ invocation: Invocation) {
        let options = self.options(seed, invocation)
        print("seed \(seed)  \(options.summary)")
        fflush(nil)
        let simulation = Simulation(seed: seed, options: options)
        if invocation.flag("trace") { simulation.trace = { print($0) } }
        if invocation["svg"] != nil { simulation.timeline = Timeline() }
        let start = ContinuousClock.now
        let report = simulation.run()
        var totals = RunTotals()
        totals.add(report)
        totals.print(took: ContinuousClock.now - start)
        print("trace \(String(report.traceHash, radix: 16))")
        if let file = invocation["svg"], let timeline = simulation.timeline {
            let svg = timeline.svg(
                title: "seed \(seed): \(options.summary)", nodes: report.nodeCount,
                groups: report.groupCount, end: report.simulatedNanoseconds)
            try? svg.write(toFile: file, atomically: true, encoding: .utf8)
        }
        if let violation = report.violation {
            print("VIOLATION \(violation)")
            if invocation.flag("shrink") { self.shrink(seed, options) }
            exit(1)
        }
    }

    private func shrink(_ seed: UInt64, _ options: SimulationOptions) {
        let smaller = Shrinker(seed: seed).shrink(options) { print($0) }
        print("smallest  \(smaller.summary)")
        let report = Simulation(seed: seed, options: smaller).run()
        print("VIOLATION \(report.violation?.description ?? "none")")
    }

    // MARK: Many seeds

    private func runMany(_ invocation: Invocation) {
        var seed = UInt64(invocation.integer("from") ?? 1)
        var last = UInt64.max
        if let range = invocation["seeds"] {
            let ends = range.components(separatedBy: "..").compactMap { UInt64($0) }
            guard ends.count == 2, ends[0] <= ends[1] else {
                Self.refuse("'--seeds' wants A..B with A <= B, not '\(range)'")
            }
            (seed, last) = (ends[0], ends[1])
        }
        let start = ContinuousClock.now
        let limit = invocation.integer("minutes").map { start + .seconds(60 * $0) }
        var totals = RunTotals()
        var shown = start
        while seed <= last, limit.map({ ContinuousClock.now < $0 }) ?? true {
            // Before it starts: a tripped precondition ends the process.
            self.mark(seed)
            let report = Simulation(seed: seed, options: self.options(seed, invocation)).run()
            totals.add(report)
            if let violation = report.violation {
                print("seed \(seed)  VIOLATION \(violation)")
                fflush(nil)
                if invocation.flag("until-failure") { break }
            }
            if ContinuousClock.now - shown > .seconds(30) {
                shown = .now
                print("… seed \(seed), \(totals.failureCount) failures")
                // A run that ends in a trap must not take with it what was said before.
                fflush(nil)
            }
            seed += 1
        }
        totals.print(took: ContinuousClock.now - start)
        if totals.failureCount > 0 { exit(1) }
    }

    /// Leaves the number of the seed where a crash can be told from.
    private func mark(_ seed: UInt64) {
        guard let path = ProcessInfo.processInfo.environment["STRATUS_SIM_MARK"] else { return }
        try? "\(seed)\n".write(toFile: path, atomically: false, encoding: .utf8)
    }
}
