import StratusModel
import Testing

@testable import StratusLoad

@Suite struct LatenciesTests {
    @Test(arguments: 1...4) func `a quantile is within a hundredth of what sorting says`(
        seed: UInt64
    ) {
        var generator = SeededGenerator(seed: seed)
        var latencies = Latencies()
        var values: [UInt64] = []
        for _ in 0..<5_000 {
            // From microseconds to minutes, each order of magnitude as often.
            let value = generator.next() % (1 << (1 + generator.next() % 27))
            values.append(value)
            latencies.record(microseconds: value)
        }
        values.sort()
        for quantile in [0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1] {
            let exact = values[max(0, Int((quantile * 5_000).rounded(.up)) - 1)]
            let found = latencies.microseconds(at: quantile)
            #expect(found >= exact, "seed \(seed), \(quantile)")
            #expect(Double(found) <= Double(exact) * 1.01, "seed \(seed), \(quantile)")
        }
        #expect(latencies.count == 5_000)
        #expect(latencies.largestMicroseconds == values.last)
    }

    @Test func `merged is as if recorded together`() {
        var one = Latencies()
        var other = Latencies()
        var both = Latencies()
        for value in [3 as UInt64, 90_000, 260, 255, 256, 1 << 50] {
            both.record(microseconds: value)
            if value % 2 == 0 {
                one.record(microseconds: value)
            } else {
                other.record(microseconds: value)
            }
        }
        other.merge(one)
        #expect(other == both)
        #expect(Latencies().microseconds(at: 0.99) == 0)
    }
}

@Suite struct WorkloadTests {
    private func counts(_ name: String, _ count: Int = 4_000) throws -> [Step.Kind: Int] {
        let workload = try #require(Workload.named(name))
        var source = StepSource(workload, recordCount: 100, seed: 5)
        var counts: [Step.Kind: Int] = [:]
        for _ in 0..<count { counts[source.next().kind, default: 0] += 1 }
        return counts
    }

    @Test func `steps come in the proportion of the workload`() throws {
        let b = try self.counts("ycsb-b")
        #expect((150...250).contains(b[.save] ?? 0) && b.count == 2)
        let kit = try self.counts("cloudkit")
        #expect((1_080...1_320).contains(kit[.batch] ?? 0) && kit.count == 4)
        let f = try self.counts("ycsb-f")
        #expect((1_880...2_120).contains(f[.readModifyWrite] ?? 0))
    }

    @Test func `the same seed draws the same, and another something else`() throws {
        let workload = try #require(Workload.named("cloudkit"))
        func draw(_ seed: UInt64) -> [Step] {
            var source = StepSource(workload, recordCount: 1_000, seed: seed)
            return (0..<50).map { _ in source.next() }
        }
        #expect(draw(3) == draw(3))
        #expect(draw(3) != draw(4))
    }

    @Test func `a batch names a record once, also of few`() throws {
        var source = StepSource(
            try #require(Workload.named("batch")), recordCount: 3, seed: 1)
        for _ in 0..<200 {
            guard case .batch(let keys) = source.next() else {
                Issue.record("no batch")
                return
            }
            #expect(Set(keys).count == Workload.batchCount)
        }
    }

    @Test func `two clients insert different records, above those there are`() throws {
        let workload = try #require(Workload.named("ycsb-d"))
        var inserted: Set<Int> = []
        var count = 0
        for offset in 0..<3 {
            var source = StepSource(
                workload, recordCount: 50, seed: UInt64(offset), offset: offset, stride: 3)
            for _ in 0..<500 {
                let step = source.next()
                // Nobody looks for what only another client may have made.
                if case .lookup(let key) = step { #expect(key < 50 || inserted.contains(key)) }
                guard case .save(let key) = step else { continue }
                #expect(key >= 50)
                inserted.insert(key)
                count += 1
            }
        }
        #expect(inserted.count == count && count > 20)
    }

    private static func sum(_ ranks: ClosedRange<Int>) -> Double {
        var sum = 0.0
        for rank in ranks { sum += 1 / Double.power(Double(rank), 0.99) }
        return sum
    }

    @Test func `zipfian: the first ranks as often as they should be, and never out of range`() {
        let count = 1_000
        let zipfian = Zipfian(count: count)
        var generator = SeededGenerator(seed: 9)
        var ranks = Array(repeating: 0, count: count)
        let draws = 200_000
        for _ in 0..<draws { ranks[zipfian.rank(generator.next())] += 1 }
        let zeta = Self.sum(1...count)
        for rank in [0, 1] {
            let expected = Double(draws) / Double.power(Double(rank + 1), 0.99) / zeta
            #expect(abs(Double(ranks[rank]) - expected) < 0.05 * expected, "rank \(rank)")
        }
        // The tail is an approximation: its sum has to be right.
        let tail = Double(ranks[100...].reduce(0, +)) / Double(draws)
        let exact = Self.sum(101...count) / zeta
        #expect(abs(tail - exact) < 0.03)
        #expect(Zipfian(count: 1).rank(.max) == 0 && Zipfian(count: 2).rank(.max) < 2)
    }
}
