/// Finds what somebody probably meant.
package enum Suggestion {
    /// The candidate nearest to `typed`, or nil if none is near enough to suggest.
    ///
    /// A third of the letters may differ, but at least one. Among equals the first wins, so the
    /// answer follows the order of the declaration.
    package static func nearest(to typed: String, among candidates: [String]) -> String? {
        // A key pasted from somewhere may be long; the table below is quadratic.
        guard typed.count <= 64 else { return nil }
        var best: (name: String, distance: Int)?
        for candidate in candidates {
            let distance = Self.distance(typed, candidate)
            let allowed = max(1, max(typed.count, candidate.count) / 3)
            if distance <= allowed, distance < best?.distance ?? .max {
                best = (candidate, distance)
            }
        }
        if let best { return best.name }
        // Somebody who types the beginning of a word means the word.
        let longer = candidates.filter { typed.count >= 2 && $0.hasPrefix(typed) }
        return longer.count == 1 ? longer[0] : nil
    }

    /// Letters to insert, remove, replace or swap with their neighbour to make one from the other;
    /// upper and lower case are the same letter (optimal string alignment).
    package static func distance(_ one: String, _ other: String) -> Int {
        let a = Array(one.lowercased())
        let b = Array(other.lowercased())
        if a.isEmpty || b.isEmpty { return max(a.count, b.count) }
        var beforeLast = [Int](repeating: 0, count: b.count + 1)
        var last = Array(0...b.count)
        for i in 1...a.count {
            var row = [i] + [Int](repeating: 0, count: b.count)
            for j in 1...b.count {
                let cost = a[i - 1] == b[j - 1] ? 0 : 1
                row[j] = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + cost)
                if i > 1, j > 1, a[i - 1] == b[j - 2], a[i - 2] == b[j - 1] {
                    row[j] = min(row[j], beforeLast[j - 2] + 1)
                }
            }
            beforeLast = last
            last = row
        }
        return last[b.count]
    }
}
