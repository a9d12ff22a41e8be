import StratusDoubles
import StratusModel
import StratusNode
import StratusPlacement
import StratusRows
import Testing

/// What is said of nodes that are being emptied.
@Suite struct DrainProgressTests {
    /// Applies the commands one after the other, and returns the view after each.
    static func views(_ commands: [SystemCommand]) throws -> [ClusterView] {
        let rows = Rows()
        var state = SystemState()
        return try commands.enumerated().map { number, command in
            let outcome = try state.apply(
                command.enveloped(
                    identity: RequestIdentity(high: 0, low: UInt64(number)),
                    deadlineMilliseconds: .max, principal: Principal(kind: .administrator)),
                at: EntryPosition(
                    index: LogIndex(UInt64(number + 1)), time: HybridTime(milliseconds: 1)),
                over: rows)
            #expect(outcome.verdict == .decided)
            let query = Query(kind: .system, body: SystemQuery.view.encoded())
            guard
                case .view(let view?) = try SystemAnswer(
                    decoding: state.answer(query, over: rows.view).body)
            else { throw SystemRefusal(.notFormed) }
            return view
        }
    }

    static let forming = SystemCommand.form(
        Formation(
            cluster: ClusterID(high: 1, low: 2), partitionCount: 4, replicaCount: 3,
            nodes: (1...4).map {
                ClusterNode(
                    id: NodeID(UInt32($0)), name: "node-\($0)", address: "10.0.0.\($0):7400")
            }))

    private func at(_ seconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: 0) + .seconds(seconds)
    }

    @Test func `a drain is said to begin, and to be undone`() throws {
        let views = try Self.views([
            Self.forming, .drain(NodeID(2), leavesWhenEmpty: false, acceptedReplicaCount: nil),
            .undrain(NodeID(2)),
        ])
        var progress = DrainProgress()
        #expect(progress.look(views[0], at: self.at(0)).isEmpty)
        let begun = progress.look(views[1], at: self.at(1))
        #expect(begun.map(\.what) == [.begun] && begun[0].node == "node-2" && begun[0].left > 0)
        // The same again is not said again.
        #expect(progress.look(views[1], at: self.at(60)).isEmpty)
        #expect(progress.look(views[2], at: self.at(61)).map(\.what) == [.undone])
    }

    @Test func `the end of a drain is said once, and so is a removal`() throws {
        var commands = [
            Self.forming, .drain(NodeID(4), leavesWhenEmpty: false, acceptedReplicaCount: nil),
        ]
        let drained = try #require(try Self.views(commands).last)
        // Every replica moves to the node that has none of its partition, if there is one.
        for group in drained.groups where drained.replicas(of: group).contains(NodeID(4)) {
            let held = drained.replicas(of: group)
            let to = (1...3).map { NodeID(UInt32($0)) }.first { !held.contains($0) }
            commands.append(
                .beginMove(ReplicaMove(group, from: NodeID(4), to: to, fence: LogIndex(1))))
            let number = try #require(try Self.views(commands).last?.moves.last?.number)
            commands += [
                .fenceMove(group, number: number, at: LogIndex(2)),
                .finishMove(group, number: number),
            ]
        }
        commands.append(.remove(NodeID(4), acceptedLossCount: 0))
        let views = try Self.views(commands)
        var progress = DrainProgress()
        var words: [DrainProgress.Word] = []
        for (number, view) in views.enumerated() {
            words += progress.look(view, at: self.at(Int64(number) * 11))
        }
        #expect(words.first?.what == .begun)
        #expect(words.count { $0.what == .done } == 1)
        #expect(words.suffix(2).map(\.what) == [.done, .removed])
        #expect(words.dropFirst().dropLast(2).allSatisfy { $0.what == .underWay })
        #expect(words.allSatisfy { $0.node == "node-4" })
    }

    @Test func `a node that starts late does not say what ended before`() throws {
        let views = try Self.views([Self.forming, .remove(NodeID(4), acceptedLossCount: 4)])
        var progress = DrainProgress()
        #expect(progress.look(views[1], at: self.at(0)).isEmpty)
    }
}
