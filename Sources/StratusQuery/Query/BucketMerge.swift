/// Decides which records of several buckets make a page of a sorted query.
///
/// Two looks: the first brings places only, and says how many of each bucket are among the first
/// `limit`; the second brings those records. Between the two records come, change and go; what
/// stands still is on exactly one page.
///
/// Invariant: a page never goes past what some bucket has not looked at, or past a record of the
/// first look that was not asked for in the second.
package struct BucketMerge {
    package struct Part: Equatable {
        /// The places, in order.
        package var places: [MergePlace]
        /// The place up to which the bucket has looked; nil: it has seen everything.
        package var end: MergePlace?

        package init(places: [MergePlace], end: MergePlace?) {
            self.places = places
            self.end = end
        }
    }

    /// How far a page may go.
    private struct Bound: Comparable {
        var place: MergePlace
        /// Whether what stands at the place itself is still within.
        var isWithin: Bool

        static func < (one: Self, other: Self) -> Bool {
            one.place.key == other.place.key
                ? !one.isWithin && other.isWithin : one.place < other.place
        }

        func holds(_ place: MergePlace) -> Bool {
            place < self.place || self.isWithin && place.key == self.place.key
        }
    }

    package struct Page: Equatable {
        /// Part and position in it, in the order of the page.
        package var taken: [(part: Int, position: Int)]
        /// The place at which the next page starts; nil: this was the last.
        package var next: MergePlace?
        /// All that the first look found is gone, and there may be more: look again.
        package var isStuck = false

        package static func == (one: Self, other: Self) -> Bool {
            one.taken.map(\.part) == other.taken.map(\.part)
                && one.taken.map(\.position) == other.taken.map(\.position)
                && one.next == other.next && one.isStuck == other.isStuck
        }
    }

    private let limit: Int
    private let first: [Part]
    /// The number of first items of each part that are on the page, as far as the first look tells.
    package let counts: [Int]

    package init(_ first: [Part], limit: Int) {
        self.first = first
        self.limit = max(1, limit)
        let bound = first.compactMap(\.end).min().map { Bound(place: $0, isWithin: true) }
        var counts = Array(repeating: 0, count: first.count)
        for item in Self.sorted(first, within: bound).prefix(self.limit) { counts[item.part] += 1 }
        self.counts = counts
    }

    /// - Parameter second: for each part what the second look found; for parts of no records
    ///   anything.
    package func page(_ second: [Part]) -> Page {
        var bound: Bound?
        for (number, part) in self.first.enumerated() {
            guard let own = self.bound(of: part, self.counts[number], second[number]) else {
                continue
            }
            bound = min(bound ?? own, own)
        }
        let parts = second.enumerated().map { number, part in
            self.counts[number] > 0 ? part : Part(places: [], end: nil)
        }
        let found = Self.sorted(parts, within: bound)
        let taken = Array(found.prefix(self.limit))
        var page = Page(taken: taken.map { ($0.part, $0.position) }, next: nil)
        if found.count > taken.count {
            page.next = taken.last?.place
        } else if let bound {
            page.next = bound.isWithin ? bound.place : taken.last?.place
            page.isStuck = page.next == nil
        }
        return page
    }

    private func bound(of first: Part, _ count: Int, _ second: Part) -> Bound? {
        if count > 0, let end = second.end, end < first.places[count - 1] {
            // Others came before what was counted on: it looked no further than this.
            return Bound(place: end, isWithin: true)
        }
        if count < first.places.count {
            return Bound(place: first.places[count], isWithin: false)
        }
        return first.end.map { Bound(place: $0, isWithin: true) }
    }

    private static func sorted(_ parts: [Part], within bound: Bound?) -> [(
        part: Int, position: Int, place: MergePlace
    )] {
        var items: [(part: Int, position: Int, place: MergePlace)] = []
        for (number, part) in parts.enumerated() {
            for (position, place) in part.places.enumerated() where bound?.holds(place) ?? true {
                items.append((number, position, place))
            }
        }
        return items.sorted { ($0.place, $0.part) < ($1.place, $1.part) }
    }
}
