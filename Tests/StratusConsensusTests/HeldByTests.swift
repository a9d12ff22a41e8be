import StratusCoding
import StratusConsensus
import StratusModel
import Testing

/// Who counts as holding what an entry names. The conversations themselves are in
/// `Traces/copies-held.txt`.
@Suite struct HeldByTests {
    /// What the leader says to each proposal of a life with two changes of members.
    private static func answers(_ bugs: PlantedBugs = PlantedBugs()) -> [String] {
        var conversation = Conversation(bugs: bugs)
        func said(_ command: String) -> String {
            conversation.run(command).split(separator: "\n").first.map(String.init) ?? ""
        }
        _ = said("cluster nodes=4 voters=1,2,3")
        _ = said("elect 1")
        var answers = [said("propose 1 x held=1@1")]
        _ = said("deliver")
        _ = said("members 1 voters=1,3,4")
        answers.append(said("propose 1 x held=1@1,2@1"))
        _ = said("deliver")
        _ = said("members 1 voters=1,2,3")
        _ = said("deliver")
        answers.append(said("propose 1 x held=1@1,2@1"))
        return answers
    }

    @Test func `an entry that names copies waits for those who hold them`() {
        #expect(Self.answers() == Array(repeating: "1 refuses: notHeld", count: 3))
    }

    @Test(
        .enabled(if: PlantedBugs.isPossible),
        arguments: [
            PlantedBug.pinWithoutMajority, .pinAskedOfOneVoterSet, .oldStoringCounts,
        ])
    func `a planted bug is found`(bug: PlantedBug) {
        #if STRATUS_PLANTED
            #expect(Self.answers(PlantedBugs([bug])) != Self.answers(), "\(bug)")
        #endif
    }

    /// What a leader's replicas are at the end of a change of members that nobody has copies for.
    private static func joint(_ bugs: PlantedBugs = PlantedBugs()) -> String {
        var conversation = Conversation(bugs: bugs)
        for command in [
            "cluster nodes=4 voters=1,2,3 copies=yes", "elect 1", "members 1 voters=1,3,4",
            "deliver", "wait 250 at=1", "deliver",
        ] {
            _ = conversation.run(command)
        }
        return conversation.run("show").split(separator: "\n").first.map(String.init) ?? ""
    }

    @Test func `a joint configuration waits for those who must hold the copies`() {
        #expect(Self.joint().hasSuffix("of 1,2,3+1,3,4"))
        #if STRATUS_PLANTED
            #expect(Self.joint(PlantedBugs([.jointLeftWithoutCopies])).hasSuffix("of 1,3,4"))
        #endif
    }

    /// A configuration and the index at which it came into force.
    private struct Change {
        var index: UInt64
        var members: [NodeID]
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `a member since is a member in every configuration since`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let nodes = (1...5).map { NodeID($0) }
        let first = Configuration(voters: [nodes[0], nodes[1], nodes[2]])
        var log = ReplicatedLog(base: .zero, configuration: first, time: .zero)
        var changes = [Change(index: 0, members: first.members)]
        var known: UInt64 = 0
        for index in 1...60 as ClosedRange<UInt64> {
            var entry = Entry(
                index: LogIndex(index), term: Term(1), time: .zero, kind: .noop, payload: [])
            if Int.random(in: 0..<6, using: &random) == 0 {
                let shuffled = nodes.shuffled(using: &random)
                let configuration = Configuration(
                    voters: shuffled.prefix(3).sorted(), learners: [shuffled[3]])
                entry.kind = .configuration
                entry.payload = configuration.encoded()
                changes.append(Change(index: index, members: configuration.members))
            }
            log.append(entry)
            if Int.random(in: 0..<15, using: &random) == 0 {
                let through = UInt64.random(in: log.base.index.raw...index, using: &random)
                log.compact(through: LogIndex(through))
                known = changes.last { $0.index <= through }!.index
            }
            for at in 0...(index + 1) {
                let since = changes.last { $0.index <= at }!.index
                let isKnown = at >= known || since == changes.last!.index
                for node in nodes {
                    let expected =
                        at <= index && isKnown
                        && changes.allSatisfy { $0.index < since || $0.members.contains(node) }
                    #expect(
                        log.isMember(node, since: LogIndex(at)) == expected,
                        "seed \(seed), entry \(index), \(node) since \(at)")
                }
            }
        }
    }
}
