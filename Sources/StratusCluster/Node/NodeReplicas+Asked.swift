import StratusConsensus
import StratusModel

extension NodeReplicas {
    /// The questions of one pass, by group in the order of the first question.
    struct Asked {
        typealias Questions = (
            commands: [(request: RaftGroup.RequestToken, command: Command)],
            queries: [(request: RaftGroup.RequestToken, query: Query)]
        )
        private(set) var byGroup: [(group: GroupID, questions: Questions)] = []
        private var positions: [GroupID: Int] = [:]

        mutating func add(
            _ body: PeerRequest.Body, as token: RaftGroup.RequestToken, to group: GroupID
        ) {
            let position = self.positions[group] ?? self.byGroup.count
            if position == self.byGroup.count {
                self.positions[group] = position
                self.byGroup.append((group, ([], [])))
            }
            switch body {
            case .command(let command):
                self.byGroup[position].questions.commands.append((token, command))
            case .query(let query):
                self.byGroup[position].questions.queries.append((token, query))
            case .node: break
            }
        }
    }
}
