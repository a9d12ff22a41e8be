import StratusAssets
import StratusDoubles
import StratusModel
import StratusStorage
import Synchronization
import Testing

// What a keeper says of rows and index when somebody asks.
extension CopyKeeperTests {
    private func all(_ keeper: CopyKeeper, page: Int) async -> [CopyDifference] {
        var all: [CopyDifference] = []
        while true {
            let found = await keeper.differences(after: all.last, limit: page)
            #expect(found.count <= page)
            all += found
            if found.count < page { return all }
        }
    }

    @Test(arguments: [1, 2, 500])
    func `an audit names what is missing and what is left over, page by page`(page: Int) async {
        let bench = Bench()
        let keeper = await bench.keeper()
        for body in [1, 2, 4] { await self.put(body, to: keeper) }
        // One is whole, one lacks its last copy, and of one there is none.
        bench.name([
            Self.manifest(1), Self.manifest(2, chunkCount: 3), Self.manifest(3),
        ])
        await bench.settle(keeper)
        func missing(_ body: Int, _ ordinal: UInt32) -> CopyDifference {
            CopyDifference(
                group: Self.group, name: Self.copy(body, ordinal).name, isMissing: true)
        }
        let lacking = [missing(2, 2), missing(3, 0), missing(3, 1)]
        // The fourth may still be named: an upload that is under way.
        #expect(await self.all(keeper, page: page) == lacking)
        // The log's time passes, and nothing removes it, as if that failed.
        let applied = bench.state.withLock { $0.applied }
        bench.inbox.post(.durable(through: applied, milliseconds: 70_000), of: Self.group)
        await bench.settle(keeper)
        let left = (0..<2).map {
            CopyDifference(
                group: Self.group, name: Self.copy(4, $0).name, isMissing: false)
        }
        #expect(await self.all(keeper, page: page) == lacking + left)
        await bench.pass(1, keeper)
        #expect(await self.all(keeper, page: page) == lacking)
        await keeper.stop()
    }

    @Test func `an audit compares anew, and says until when`() async {
        let bench = Bench()
        let keeper = await bench.keeper()
        await self.put(1, to: keeper)
        bench.name([Self.manifest(1)])
        await bench.settle(keeper)
        #expect(await keeper.figures().comparingCount == 0)
        let before = bench.state.withLock { state in
            state.rowsAreSilent = true
            // A row that nobody has told the keeper of.
            state.bodies[BodyID(9)] = Self.manifest(9)
            return state.comparisonCount
        }
        #expect(await keeper.compareSoon() == 1)
        await bench.settle(keeper)
        #expect(await keeper.figures().comparingCount == 1)
        #expect(bench.state.withLock { $0.comparisonCount } == before + 1)
        // The rows answer.
        bench.state.withLock { $0.rowsAreSilent = false }
        bench.inbox.post(
            .page(from: .first, end: nil, bodies: [Self.manifest(1), Self.manifest(9)]),
            of: Self.group)
        await bench.settle(keeper)
        #expect(await keeper.figures().comparingCount == 0)
        #expect(
            await keeper.differences(after: nil, limit: 10).map(\.name.body)
                == [9, 9].map {
                    BodyID($0)
                })
        await keeper.stop()
    }
}
