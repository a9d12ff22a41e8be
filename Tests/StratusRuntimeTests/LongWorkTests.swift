import Synchronization
import Testing

@testable import StratusRuntime

/// one tenant's many large requests and another's few.
@Suite struct LongWorkTests {
    private final class Order: Sendable {
        private let names = Mutex<[String]>([])
        var all: [String] { self.names.withLock { $0 } }
        func append(_ name: String) { self.names.withLock { $0.append(name) } }
    }

    @Test func `whoever waits alone waits for one of each other's, in the order they came`() {
        var queue = FairQueue<String, Int>()
        for number in 0..<5 { queue.append(number, for: "noisy") }
        queue.append(10, for: "quiet")
        queue.append(20, for: "third")
        var order: [Int] = []
        while order.count < 3, let next = queue.popFirst() { order.append(next) }
        // One that comes again waits for the others' turns.
        queue.append(11, for: "quiet")
        while let next = queue.popFirst() { order.append(next) }
        #expect(order == [0, 10, 20, 1, 11, 2, 3, 4])
        #expect(queue.count == 0)
    }

    @Test func `one piece at a time, tenants in turn, and small ones do not wait`() async {
        let loop = EventLoop(name: "long")
        defer { loop.stop() }
        let work = LongWork()
        let order = Order()
        let first = LongWork.Turn(at: work, for: "noisy")
        await first.take(for: LongWork.sizeMin)
        await withTaskGroup { group in
            for (number, name) in ["noisy", "noisy", "noisy", "quiet"].enumerated() {
                let turn = LongWork.Turn(at: work, for: name)
                group.addTask(executorPreference: loop) {
                    await turn.take(for: LongWork.sizeMin)
                    order.append(name)
                    turn.leave()
                }
                // Each is waiting before the next begins.
                while work.waitingCount <= number { await Task.yield() }
            }
            await LongWork.Turn(at: work, for: "small").take(for: LongWork.sizeMin - 1)
            order.append("small")
            first.leave()
        }
        #expect(order.all == ["small", "noisy", "quiet", "noisy", "noisy"])
    }

    @Test func `parts of one request have one turn, and a request that ends gives it back`() async {
        let work = LongWork()
        do {
            let turn = LongWork.Turn(at: work, for: "a")
            await turn.take(for: LongWork.sizeMin)
            await turn.take(for: LongWork.sizeMin)
        }
        let next = LongWork.Turn(at: work, for: "b")
        await next.take(for: LongWork.sizeMin)
        next.leave()
        next.leave()
        await LongWork.Turn(at: work, for: "c").take(for: LongWork.sizeMin)
    }
}
