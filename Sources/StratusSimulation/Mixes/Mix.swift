import StratusModel

extension SimulationOptions {
    /// A world that leads where chance seldom goes: some faults often, the others as the seed says.
    ///
    /// Each has its details in a file of its own, as a ``MixRecipe`` of the same name.
    package enum Mix: String, Sendable, CaseIterable {
        case elections, conflicts, reads, configurations, membership, snapshots, logs, damage
        case records, lateReports, strandedTails, links, recoveries, tears, crowds, catchingUp
        case divergence, tornTail, standstill, lostMajority, assets, push

        static let often: [Self] = [
            .elections, .conflicts, .reads, .configurations, .snapshots, .logs, .damage,
        ]
        static let seldom: [Self] = [.lateReports, .strandedTails, .recoveries]
        /// Something happens after the faults: load goes on, or a majority is lost.
        static let steady: [Self] = [
            .catchingUp, .divergence, .standstill, .lostMajority, .tornTail,
        ]

        var recipe: MixRecipe {
            switch self {
            case .elections: .elections
            case .conflicts: .conflicts
            case .reads: .reads
            case .configurations: .configurations
            case .membership: .membership
            case .snapshots: .snapshots
            case .logs: .logs
            case .damage: .damage
            case .records: .records
            case .lateReports: .lateReports
            case .strandedTails: .strandedTails
            case .links: .links
            case .recoveries: .recoveries
            case .tears: .tears
            case .crowds: .crowds
            case .catchingUp: .catchingUp
            case .divergence: .divergence
            case .tornTail: .tornTail
            case .standstill: .standstill
            case .lostMajority: .lostMajority
            case .assets: .assets
            case .push: .push
            }
        }
    }
}

extension SimulationOptions {
    /// For mixes with clients of their own: no others, in a cluster that stays as it is.
    mutating func dropOtherClients() {
        self.holdsRecords = false
        self.bucketCount = 0
        self.isPlaced = false
        self.usesLinks = false
        self.levels = nil
        self.clientCount = 0
        self.readerCount = 0
        self.registerCount = 0
    }
}

/// The changes that a mix makes to a world that was drawn without it.
struct MixRecipe: Sendable {
    let apply: @Sendable (inout SimulationOptions, inout MixDraw) -> Void
}

/// The details that a seed says, from a stream of their own.
struct MixDraw {
    let seed: UInt64
    private var random: SeededGenerator

    init(seed: UInt64) {
        self.seed = seed
        self.random = SeededGenerator(seed: seed ^ 0x4D69_7865_7300_0002)
    }

    mutating func callAsFunction(_ range: ClosedRange<Int>) -> Int {
        Int.random(in: range, using: &self.random)
    }

    mutating func milliseconds(_ choices: Int...) -> Duration {
        .milliseconds(choices[self(0...(choices.count - 1))])
    }
}
