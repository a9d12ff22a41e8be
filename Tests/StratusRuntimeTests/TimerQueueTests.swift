import StratusModel
import Testing

@testable import StratusRuntime

@Suite struct TimerQueueTests {
    private func at(_ nanoseconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: nanoseconds)
    }

    @Test func `equal times fire in the order inserted`() {
        var queue = TimerQueue<String>()
        for name in ["first", "second", "third"] { _ = queue.insert(at: self.at(5), name) }
        let fired = (0..<3).compactMap { _ in queue.popDue(at: self.at(5)) }
        #expect(fired == ["first", "second", "third"])
    }

    @Test func `nothing fires before its time`() {
        var queue = TimerQueue<String>()
        _ = queue.insert(at: self.at(5), "late")
        #expect(queue.popDue(at: self.at(4)) == nil)
        #expect(queue.popDue(at: self.at(5)) == "late")
        #expect(queue.first == nil)
    }

    @Test func `a token of a fired timer names nothing even when its place is used again`() {
        var queue = TimerQueue<String>()
        let old = queue.insert(at: self.at(1), "old")
        _ = queue.popDue(at: self.at(1))
        _ = queue.insert(at: self.at(9), "new")
        #expect(queue.remove(old) == nil)
        let isMoved = queue.move(old, to: self.at(1))
        #expect(!isMoved)
        #expect(queue.count == 1)
    }

    /// Against the dumbest model: a sorted array.
    @Test(arguments: [1, 2, 3, 4, 5, 6, 7, 8] as [UInt64])
    func `random insertions, moves and removals agree with a sorted list`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var queue = TimerQueue<Int>()
        var tokens: [Int: TimerQueue<Int>.Token] = [:]
        var model: [(time: Int64, order: Int, name: Int)] = []
        var now: Int64 = 0
        for step in 0..<2_000 {
            let time = now + Int64.random(in: 0..<50, using: &generator)
            let victim = model.isEmpty ? nil : Int.random(in: 0..<model.count, using: &generator)
            switch (Int.random(in: 0..<5, using: &generator), victim) {
            case (0, let victim?):
                let name = model.remove(at: victim).name
                #expect(queue.remove(tokens[name]!) == name, "seed \(seed)")
            case (1, let victim?):
                let name = model.remove(at: victim).name
                model.append((time, step, name))
                let isMoved = queue.move(tokens[name]!, to: self.at(time))
                #expect(isMoved, "seed \(seed)")
            case (2, _):
                now += 10
                while let name = queue.popDue(at: self.at(now)) {
                    let next = model.enumerated().min {
                        ($0.element.time, $0.element.order) < ($1.element.time, $1.element.order)
                    }!
                    #expect(name == next.element.name, "seed \(seed)")
                    model.remove(at: next.offset)
                }
                #expect(!model.contains { $0.time <= now }, "seed \(seed)")
            default:
                tokens[step] = queue.insert(at: self.at(time), step)
                model.append((time, step, step))
            }
            #expect(queue.count == model.count, "seed \(seed)")
            #expect(queue.first?.nanoseconds == model.map(\.time).min(), "seed \(seed)")
        }
    }
}
