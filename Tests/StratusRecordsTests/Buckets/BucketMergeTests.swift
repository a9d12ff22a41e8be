import StratusModel
import StratusQuery
import StratusRecords
import Testing

/// Which records of several buckets make a page.
@Suite struct BucketMergeTests {
    private static func place(_ number: Int) -> MergePlace {
        MergePlace(key: [UInt8(number)], marker: [9, UInt8(number)])
    }

    private static func part(_ numbers: [Int], end: Int? = nil) -> BucketMerge.Part {
        BucketMerge.Part(places: numbers.map(Self.place), end: end.map(Self.place))
    }

    private static func numbers(_ page: BucketMerge.Page, _ parts: [BucketMerge.Part]) -> [Int] {
        page.taken.map { Int(parts[$0.part].places[$0.position].key[0]) }
    }

    @Test func `the first of all buckets are on the page, and the next one begins after them`() {
        let first = [Self.part([1, 3, 5, 7], end: 7), Self.part([2, 4, 6, 8], end: 8)]
        let merge = BucketMerge(first, limit: 4)
        #expect(merge.counts == [2, 2])
        let second = [Self.part([1, 3], end: 3), Self.part([2, 4], end: 4)]
        let page = merge.page(second)
        #expect(Self.numbers(page, second) == [1, 2, 3, 4])
        #expect(page.next == Self.place(4) && !page.isStuck)
    }

    @Test func `a page goes no further than the bucket that looked least`() {
        let first = [Self.part([1, 9], end: nil), Self.part([2], end: 5), Self.part([], end: nil)]
        let merge = BucketMerge(first, limit: 10)
        #expect(merge.counts == [1, 1, 0])
        let second = [Self.part([1], end: 1), Self.part([2], end: 2), Self.part([])]
        let page = merge.page(second)
        #expect(Self.numbers(page, second) == [1, 2])
        #expect(page.next == Self.place(5))
        // It found nothing in what it may touch: the page is empty, and further on.
        let nothing = BucketMerge([Self.part([], end: 5), Self.part([7])], limit: 3)
        #expect(nothing.counts == [0, 0])
        let empty = nothing.page([Self.part([]), Self.part([])])
        #expect(empty.taken.isEmpty && empty.next == Self.place(5) && !empty.isStuck)
    }

    @Test func `the last page has no next`() {
        let first = [Self.part([1, 3]), Self.part([2])]
        let merge = BucketMerge(first, limit: 3)
        let second = [Self.part([1, 3]), Self.part([2])]
        #expect(merge.page(second).next == nil)
        #expect(BucketMerge([], limit: 3).page([]).next == nil)
    }

    @Test func `what came in between does not push out what stands still`() {
        // 2 came into the first bucket: its second look ends at 2, and 3 is for the next page.
        let first = [Self.part([1, 3, 9], end: nil), Self.part([4, 5])]
        let merge = BucketMerge(first, limit: 3)
        #expect(merge.counts == [2, 1])
        let second = [Self.part([1, 2], end: 2), Self.part([4], end: 4)]
        let page = merge.page(second)
        #expect(Self.numbers(page, second) == [1, 2])
        #expect(page.next == Self.place(2))
    }

    @Test func `where all that was counted on is gone, one looks again`() {
        let merge = BucketMerge([Self.part([1, 2, 3, 4])], limit: 2)
        #expect(merge.counts == [2])
        #expect(merge.page([Self.part([])]).isStuck)
        // Nothing is left at all.
        let last = BucketMerge([Self.part([1])], limit: 2)
        let page = last.page([Self.part([])])
        #expect(page.taken.isEmpty && page.next == nil && !page.isStuck)
    }

    /// Pages over buckets in which records come and go between and within pages.
    @Test func `what stands still is on exactly one page`() {
        for seed in 0..<400 as Range<UInt64> {
            var random = SeededGenerator(seed: seed)
            let count = Int.random(in: 1...5, using: &random)
            var buckets: [Set<Int>] = (0..<count).map { _ in [] }
            for number in 1..<200 where Bool.random(using: &random) {
                buckets[number % count].insert(number)
            }
            var isStanding = buckets.reduce(into: Set<Int>()) { $0.formUnion($1) }
            func stir() {
                for _ in 0..<Int.random(in: 0...2, using: &random) {
                    let number = Int.random(in: 1..<200, using: &random)
                    isStanding.remove(number)
                    if buckets[number % count].remove(number) == nil {
                        buckets[number % count].insert(number)
                    }
                }
            }
            func look(_ bucket: Int, after: Int, limit: Int) -> BucketMerge.Part {
                // Now and then it stops early, with or without having found anything.
                let budget =
                    Int.random(in: 0..<4, using: &random) == 0
                    ? after + Int.random(in: 1...20, using: &random) : 1_000
                let all = buckets[bucket].sorted().filter { $0 > after }
                let seen = all.filter { $0 <= budget }
                let found = Array(seen.prefix(limit))
                if found.count < seen.count { return Self.part(found, end: found.last) }
                return Self.part(found, end: seen.count < all.count ? min(budget, 250) : nil)
            }
            var after = 0
            var shown: [Int] = []
            var pageCount = 0
            while pageCount < 1_000 {
                pageCount += 1
                let limit = Int.random(in: 1...6, using: &random)
                let merge = BucketMerge(
                    (0..<count).map { look($0, after: after, limit: limit) }, limit: limit)
                stir()
                let second = (0..<count).map { bucket in
                    merge.counts[bucket] == 0
                        ? Self.part([])
                        : look(bucket, after: after, limit: merge.counts[bucket])
                }
                let page = merge.page(second)
                #expect(page.taken.count <= limit)
                if page.isStuck { continue }
                shown += Self.numbers(page, second)
                stir()
                guard let next = page.next else { break }
                #expect(Int(next.key[0]) > after, "seed \(seed): it gets no further")
                after = Int(next.key[0])
            }
            #expect(pageCount < 1_000, "seed \(seed)")
            #expect(shown == shown.sorted(), "seed \(seed)")
            #expect(Set(shown).count == shown.count, "seed \(seed): twice")
            #expect(
                isStanding.isSubset(of: shown), "seed \(seed): \(isStanding.subtracting(shown))")
        }
    }
}
