import StratusModel
import StratusRecords

/// The order in which a request's operations go to their buckets.
///
/// Operations of one bucket go together, and the bucket orders them by what they need. What a save
/// needs from another bucket of the same request, the target of a VALIDATE reference or a parent,
/// is made in an earlier **wave**. A circle of needs is cut where it is entered: as in one bucket,
/// the first of it finds nothing.
struct BucketPlan: Equatable {
    struct Part: Equatable {
        var bucket: Bucket
        /// Positions in the request, ascending.
        var positions: [Int]
    }

    /// Each in the order of the buckets' numbers.
    private(set) var waves: [[Part]] = []

    init(_ operations: [RecordOperation], buckets: Bucket) {
        let homes = operations.map { buckets.sibling(of: $0.recordName) }
        var makers: [String: Int] = [:]
        for (position, operation) in operations.enumerated()
        where operation.kind.createsMissing {
            makers[operation.recordName] = position
        }
        let needs = operations.map { $0.needs.compactMap { makers[$0] } }
        var depths: [Int?] = Array(repeating: nil, count: operations.count)
        var isEntered = Array(repeating: false, count: operations.count)
        for start in operations.indices where !isEntered[start] {
            // Depth first without recursion: a request may chain as deep as it is long.
            var path = [(position: start, next: 0)]
            isEntered[start] = true
            while let top = path.last {
                if top.next < needs[top.position].count {
                    path[path.count - 1].next += 1
                    let need = needs[top.position][top.next]
                    if !isEntered[need] {
                        isEntered[need] = true
                        path.append((need, 0))
                    }
                    continue
                }
                path.removeLast()
                depths[top.position] =
                    needs[top.position].compactMap { need in
                        depths[need].map { $0 + (homes[need] == homes[top.position] ? 0 : 1) }
                    }.max() ?? 0
            }
        }
        let waveCount = (depths.compactMap { $0 }.max() ?? -1) + 1
        for wave in 0..<waveCount {
            var parts: [Bucket: [Int]] = [:]
            for position in operations.indices where depths[position] == wave {
                parts[homes[position], default: []].append(position)
            }
            self.waves.append(
                parts.sorted { $0.key.number < $1.key.number }.map {
                    Part(bucket: $0.key, positions: $0.value)
                })
        }
    }
}

extension RecordOperation {
    /// Records that must be there when this operation is decided.
    fileprivate var needs: [String] {
        if self.kind.isDelete { return [] }
        var names = self.actingTargets.filter { $0.action == .validate }.map(\.target)
        if case .set(let parent) = self.parent { names.append(parent) }
        return names
    }

    /// The targets that this operation's fields refer to with an action: each once, in their order.
    var actingTargets: [(target: String, action: Reference.Action)] {
        var found: [(target: String, action: Reference.Action)] = []
        func add(_ scalar: Scalar) {
            guard case .reference(let reference) = scalar, reference.action != .none,
                !found.contains(where: {
                    $0.target == reference.recordName && $0.action == reference.action
                })
            else { return }
            found.append((reference.recordName, reference.action))
        }
        for field in self.fields {
            switch field.value {
            case .scalar(let scalar): add(scalar)
            case .list(.reference, let scalars): for scalar in scalars { add(scalar) }
            default: break
            }
        }
        return found
    }
}
