import StratusDoubles
import StratusModel
import StratusStorage
import Testing

@Suite struct CacheBudgetTests {
    @Test func `few partitions have much, many their minimum, and closed ones count no more`() {
        let budget = CacheBudget(total: .mebibytes(64))
        var shares = (0..<100).map { _ in budget.share() }
        #expect(shares[0].size == .mebibytes(32))
        #expect(shares[1].size == .mebibytes(32))
        #expect(shares[7].size == .mebibytes(8))
        #expect(shares[99].size == .mebibytes(2))
        shares.removeSubrange(1...)
        #expect(budget.share().size == .mebibytes(32))
    }

    @Test func `a store that is closed gives its share back`() throws {
        let bench = PartitionBench()
        let budget = CacheBudget(total: .mebibytes(32))
        var limits = PartitionStore<RegisterState>.Limits()
        limits.caches = budget
        let store = try bench.open(limits)
        #expect(budget.share().size == .mebibytes(32))
        try store.take(1...3)
        #expect(budget.share().size == .mebibytes(16))
        try store.close()
        #expect(budget.share().size == .mebibytes(32))
        try store.expectState(through: 3, "opened again")
    }
}
