import StratusAssets
import StratusDoubles
import StratusModel
import StratusStorage
import Synchronization
import Testing

// What a keeper does while its store fails.
extension CopyKeeperTests {
    @Test func `comparisons of a store that stays unreadable become rare, and end when it is read`()
        async
    {
        let before = Bench()
        before.name([Self.manifest(1)])
        let first = await before.keeper()
        await self.put(1, to: first)
        await first.stop()
        let bench = Bench(before.files)
        bench.name([Self.manifest(1)])
        bench.state.withLock { $0.failingListCount = .max }
        let keeper = await bench.keeper()
        for _ in 0..<300 { await bench.pass(1, keeper) }
        // In 600 seconds: after 1, 3, 7, 15, 31, 63 seconds, and once a minute from there on.
        let count = bench.state.withLock { $0.comparisonCount }
        #expect((10...20).contains(count), "\(count) comparisons")
        bench.state.withLock { $0.failingListCount = 0 }
        for _ in 0..<31 { await bench.pass(1, keeper) }
        #expect(await keeper.figures().missingCount == 0)
        let done = bench.state.withLock { $0.comparisonCount }
        for _ in 0..<100 { await bench.pass(1, keeper) }
        #expect(bench.state.withLock { $0.comparisonCount } == done)
        await keeper.stop()
    }

    @Test func `puts that fail keep no removal waiting, and cause few comparisons`() async {
        let bench = Bench()
        let keeper = await bench.keeper()
        for body in 1...3 { await self.put(body, to: keeper) }
        bench.name((1...2).map { Self.manifest($0) })
        await bench.pass(1, keeper)
        bench.state.withLock {
            $0.putsFail = true
            $0.comparisonCount = 0
        }
        bench.drop(Self.manifest(1))
        var answers: [CopyAnswer] = []
        for _ in 0..<100 {
            answers.append(await keeper.put(Self.copy(4), of: Self.group))
            await bench.pass(1, keeper)
        }
        #expect(answers.allSatisfy { if case .refused(.failed) = $0 { true } else { false } })
        // One that a row let go, and one that no row names.
        #expect(await !self.has(1, keeper))
        #expect(await !self.has(3, keeper))
        #expect(await self.has(2, keeper))
        // What is held is known all the while.
        #expect(await keeper.heldThrough(of: Self.group) != nil)
        let count = bench.state.withLock { $0.comparisonCount }
        #expect((1...12).contains(count), "\(count) comparisons")
        await keeper.stop()
    }

    @Test func `puts that fail while a comparison lasts keep no removal waiting`() async {
        let bench = Bench()
        let keeper = await bench.keeper()
        for body in 1...3 { await self.put(body, to: keeper) }
        bench.name((1...2).map { Self.manifest($0) })
        await bench.pass(1, keeper)
        bench.state.withLock {
            $0.putsFail = true
            $0.rowsAreSilent = true
        }
        bench.drop(Self.manifest(1))
        for _ in 0..<5 {
            _ = await keeper.put(Self.copy(4), of: Self.group)
            await bench.pass(2, keeper)
        }
        #expect(await !self.has(1, keeper))
        #expect(await !self.has(3, keeper))
        #expect(await self.has(2, keeper))
        #expect(await keeper.heldThrough(of: Self.group) != nil)
        await keeper.stop()
    }

    @Test func `a passing error does not end a reading back`() async {
        let bench = Bench()
        let keeper = await bench.keeper()
        await self.put(1, to: keeper)
        bench.name([Self.manifest(1)])
        await bench.pass(1, keeper)
        // Rot that a reading back finds.
        bench.files.flip(bit: 3, at: 300, of: PackDirectory(Self.group, in: "assets").pack(1))
        bench.state.withLock { $0.failingReadBackCount = 3 }
        #expect(await keeper.readBackSoon() == 1)
        var tries = 0
        for _ in 0..<20 where await keeper.figures().readingBackCount > 0 {
            tries += 1
            await keeper.readBack(at: 0, every: .seconds(1_000_000))
            bench.state.withLock { $0.now = $0.now + .seconds(1) }
        }
        #expect(await keeper.figures().damagedCount > 0)
        #expect(await keeper.figures().readingBackCount == 0)
        // It waits 1, 2 and 4 seconds.
        #expect(tries >= 8, "\(tries) tries")
        await keeper.stop()
    }
}
