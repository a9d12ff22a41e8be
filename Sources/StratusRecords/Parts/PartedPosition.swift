package import StratusModel

/// A position in the feed of a private database whose custom zones lie in buckets: a position in
/// each bucket that its holder has read from.
package struct PartedPosition: Sendable, Hashable {
    package struct Part: Sendable, Hashable {
        package var number: Int
        package var position: DatabasePosition

        package init(number: Int, position: DatabasePosition) {
            self.number = number
            self.position = position
        }
    }

    /// How many buckets the database has.
    package var count: Int
    /// The bucket at which the next page begins: the first that had no room on the last one. 0 for
    /// a holder who has seen everything.
    package var first = 0
    /// By number. A bucket that is missing here stands at its start.
    package var parts: [Part]

    package init(count: Int, first: Int = 0, parts: [Part] = []) {
        self.count = count
        self.first = first
        self.parts = parts
    }

    package subscript(number: Int) -> DatabasePosition? {
        self.parts.first { $0.number == number }?.position
    }

    /// The buckets that it names.
    package var mask: BucketMask { BucketMask(of: self.parts.map(\.number)) }
}

/// One page of the feed of a database in buckets: which questions it takes, and what the answers
/// come to.
///
/// Each bucket in use gives a page of its own, and the pages are taken whole, as long as there is
/// room. What is not taken is asked for again: the position in its bucket does not move. If one
/// bucket's position has expired, all have: to begin again in one would hide the deletions of what
/// its holder was told.
package struct FeedMerge: Sendable {
    /// What to ask a bucket.
    package struct Question: Sendable, Hashable {
        package var number: Int
        package var after: DatabasePosition?
        package var limit: Int
    }

    package struct Page: Sendable, Equatable {
        package var changes: [DatabaseChangesPage.Change]
        package var position: PartedPosition
        package var moreComing: Bool
    }

    private let count: Int
    private let limit: Int
    private let after: PartedPosition?
    private let bugs: PlantedBugs
    private var pages: [Int: DatabaseChangesPage] = [:]

    /// - Parameter after: nil: every existing zone.
    package init(
        after: PartedPosition?, count: Int, limit: Int, bugs: PlantedBugs = PlantedBugs()
    ) {
        self.after = after
        self.count = count
        self.limit = limit <= 0 ? RecordState.pageCountMax : min(limit, RecordState.pageCountMax)
        self.bugs = bugs
    }

    /// The questions to buckets that are in use and have not answered yet. The first of them need
    /// not be all: what is in use, the home says at the same time.
    package func questions(_ inUse: BucketMask) -> [Question] {
        let known = inUse.union(self.after?.mask ?? BucketMask())
        let numbers = known.numbers(below: self.count)
        let limit = max(1, self.limit / max(1, numbers.count))
        return numbers.filter { self.pages[$0] == nil }.map {
            Question(number: $0, after: self.start($0), limit: limit)
        }
    }

    /// Who has a token may have found zones of any bucket, and hears of their deletions.
    private func start(_ number: Int) -> DatabasePosition? {
        self.after.map { $0[number] ?? .start }
    }

    package mutating func take(_ page: DatabaseChangesPage, of number: Int) {
        self.pages[number] = page
    }

    /// The page, once every bucket in use has answered.
    package func page() -> Page {
        var page = Page(
            changes: [], position: PartedPosition(count: self.count), moreComing: false)
        let first = self.after?.first ?? 0
        let numbers = (0..<self.count).map { ($0 + first) % self.count }
        var positions: [Int: DatabasePosition] = [:]
        var skipped: Int?
        for number in numbers {
            guard let found = self.pages[number] else { continue }
            if found.changes.isEmpty || page.changes.count + found.changes.count <= self.limit {
                page.changes += found.changes
                positions[number] = found.position
                if self.bugs.contains(.moreComingOfLastBucket) {
                    page.moreComing = found.moreComing
                } else {
                    page.moreComing = page.moreComing || found.moreComing
                }
                continue
            }
            skipped = skipped ?? number
            page.moreComing = true
            positions[number] =
                self.bugs.contains(.cutPageAdvances)
                ? found.position : self.unmoved(number, found)
        }
        page.position.first = skipped ?? 0
        for number in 0..<self.count {
            guard var position = positions[number], position != .start else { continue }
            // On the next page of this walk no zone has a position of its own.
            if page.moreComing, !position.isMidway {
                position.isMidway = true
                position.floor = position.turn
            }
            page.position.parts.append(.init(number: number, position: position))
        }
        return page
    }

    /// Where a bucket stands whose page had no room.
    private func unmoved(_ number: Int, _ page: DatabaseChangesPage) -> DatabasePosition {
        if let after { return after[number] ?? .start }
        // Who began with nothing was told of nothing that is deleted by now.
        return DatabasePosition(
            turn: 0, tag: ChangeTag(0), isMidway: true,
            floor: max(page.position.turn, page.position.floor))
    }
}
