package import StratusModel

// What rows, index and packs say, held against each other on somebody's wish.
extension CopyKeeper {
    /// How long a copy that no row names may stay behind its time before it counts as left over:
    /// until then it waits to be removed.
    static let overdueMilliseconds: Int64 = 60_000

    /// Compares rows and index of every partition anew, from the first copy on.
    ///
    /// - Returns: how many partitions there are.
    package func compareSoon() -> Int {
        for group in self.groups.keys.sorted() { self.doubt(group) }
        return self.groups.count
    }

    /// Whether what is known of a partition's copies is from before a comparison that is due.
    func isComparing(_ group: Group) -> Bool {
        !group.isCompared || group.doubtCount > 0 || group.comparesAgainAt != nil
    }

    /// Copies that rows and index do not agree on, by partition and name.
    ///
    /// - Parameter last: behind which they begin; nil: with the first.
    package func differences(after last: CopyDifference?, limit: Int) -> [CopyDifference] {
        var found: [CopyDifference] = []
        for (group, known) in self.groups.sorted(by: { $0.key < $1.key }) {
            guard found.count < limit else { break }
            var first = CopyName.first
            if let last {
                if group < last.group { continue }
                if group == last.group {
                    guard let next = last.name.next else { continue }
                    first = next
                }
            }
            let missing = known.wants.missingNames(from: first, limit: limit)
            let overdue = known.wants.overdueNames(
                from: first, limit: limit, by: Self.overdueMilliseconds)
            let all =
                missing.map { CopyDifference(group: group, name: $0, isMissing: true) }
                + overdue.map { CopyDifference(group: group, name: $0, isMissing: false) }
            found += all.sorted { $0.name < $1.name }.prefix(limit - found.count)
        }
        return found
    }
}
