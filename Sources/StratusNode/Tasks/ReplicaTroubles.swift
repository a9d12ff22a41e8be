import StratusCluster
import StratusModel

/// What replicas report, folded so that one cause is one line: hundreds of partitions may have the
/// same problem.
struct ReplicaTroubles {
    /// The text without its numbers, and who has said it.
    private var kinds: [(kind: String, text: String, partitions: [String])] = []

    /// - Parameter groups: what cannot be opened is left out, which is a reason of its own.
    init(of groups: [NodeReplicas.GroupStatus]) {
        for group in groups {
            guard let problem = group.problem, group.isOpen else { continue }
            let kind = problem.filter { !$0.isNumber }
            let name = Self.name(of: group.group)
            if let position = self.kinds.firstIndex(where: { $0.kind == kind }) {
                self.kinds[position].partitions.append(name)
            } else {
                self.kinds.append((kind, problem, [name]))
            }
        }
    }

    /// Bounded: by the kinds of problems that replicas have.
    var lines: [String] {
        self.kinds.map { kind in
            kind.partitions.count == 1
                ? "partition \(kind.partitions[0]): \(kind.text)"
                : "\(kind.partitions.count) partitions (\(Self.list(kind.partitions))). Of the first: "
                    + kind.text
        }
    }

    static func name(of group: GroupID) -> String {
        group == .system ? "system" : "\(group.raw - 1)"
    }

    /// The first of them.
    static func list(_ partitions: [String]) -> String {
        let shown = partitions.prefix(Self.shownMax).joined(separator: ", ")
        return partitions.count > Self.shownMax ? shown + ", …" : shown
    }

    private static let shownMax = 8
}
