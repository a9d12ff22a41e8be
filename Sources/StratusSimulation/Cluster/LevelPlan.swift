package import StratusModel
import Synchronization

/// The upgrade of a simulated cluster while it works. Its nodes begin as builds of this release, are
/// exchanged for builds of the next level one after the other, perhaps back and once more, and then
/// the cluster is raised to it.
package struct LevelPlan: Sendable, Equatable {
    /// When the first node is exchanged, in thousandths of the time in which faults strike.
    package var begin: Int64
    /// From the first exchange to the last: long enough for leaders of both builds.
    package var span: Int64
    /// All nodes go back to this release once before they stay at the next level.
    package var goesBack: Bool
    /// A node hears of the new level so much later at most.
    package var lagMilliseconds: Int64

    package init(from random: inout SeededGenerator) {
        self.begin = Int64.random(in: 0...250, using: &random)
        self.span = Int64.random(in: 200...600, using: &random)
        self.goesBack = Int.random(in: 0..<3, using: &random) == 0
        self.lagMilliseconds = [0, 50, 2_000][Int.random(in: 0..<3, using: &random)]
    }
}

/// The cluster's level as one node believes it.
final class SimulatedLevel: Sendable {
    private let level = Mutex(FeatureLevel.build)

    var now: FeatureLevel { self.level.withLock { $0 } }
    var asked: ClusterLevel { ClusterLevel { self.now } }
    func rise(to level: FeatureLevel) { self.level.withLock { $0 = max($0, level) } }
}
