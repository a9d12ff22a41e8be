import Foundation
import Synchronization
import Testing

@testable import StratusRuntime

@Suite struct PieceTimesTests {
    /// The time of each thread, which the test sets. A thread whose block has just answered may not
    /// have left it yet, so what another one works must not count for it.
    private final class Clock: Sendable {
        private let times = Mutex<[UInt: Duration]>([:])
        private static var thread: UInt { UInt(pthread_self()) }
        var now: Duration { self.times.withLock { $0[Self.thread, default: .zero] } }
        func work(_ milliseconds: Int64) {
            self.times.withLock { $0[Self.thread, default: .zero] += .milliseconds(milliseconds) }
        }
    }

    private let clock = Clock()
    private let times: PieceTimes

    init() {
        let clock = self.clock
        self.times = PieceTimes { clock.now }
    }

    private static func long(
        _ thread: String, _ work: String, _ longest: Int64, count: Int = 1
    ) -> PieceTimes.Long {
        PieceTimes.Long(
            thread: thread, work: work, longest: .milliseconds(longest), count: count)
    }

    /// What is submitted to an executor later runs after a piece has been looked at.
    private func run(_ loop: EventLoop, _ body: @escaping @Sendable () -> Void) async {
        await loop.run(body)
        await loop.run {}
    }

    @Test func `pieces of more than 20 ms are kept until they are taken`() async {
        let loop = EventLoop(name: "loop", times: self.times)
        defer { loop.stop() }
        let clock = self.clock
        await self.run(loop) { clock.work(20) }
        #expect(self.times.take() == [])
        await self.run(loop) { clock.work(21) }
        await self.run(loop) { clock.work(30) }
        await self.run(loop) { clock.work(25) }
        #expect(self.times.take() == [Self.long("loop", "a block", 30, count: 3)])
        #expect(self.times.take() == [])
    }

    @Test func `a worker of bulk work has 40 ms, and another one 20`() async {
        let bulk = WorkerThread(name: "bulk", yields: true, times: self.times)
        let apart = WorkerThread(name: "apart", isBulk: true, times: self.times)
        let storage = WorkerThread(name: "storage", times: self.times)
        let clock = self.clock
        for worker in [bulk, apart, storage] {
            await worker.run { clock.work(40) }
            await worker.run {}
        }
        #expect(self.times.take() == [Self.long("storage", "a block", 40)])
        for worker in [bulk, apart] {
            await worker.run { clock.work(41) }
            await worker.run {}
            worker.stop()
        }
        storage.stop()
        #expect(
            self.times.take() == [
                Self.long("apart", "a block", 41), Self.long("bulk", "a block", 41),
            ])
    }

    @Test func `a part is a piece by itself, and so are what is before and after it`() async {
        let storage = WorkerThread(name: "storage", times: self.times)
        defer { storage.stop() }
        let (clock, times) = (self.clock, self.times)
        await storage.run {
            clock.work(15)
            times.beginPart { "a read" }
            clock.work(22)
            times.endPart()
            times.beginPart { "a short one" }
            clock.work(19)
            times.endPart()
            clock.work(15)
        }
        await storage.run {}
        #expect(self.times.take() == [Self.long("storage", "a read", 22)])
        await storage.run {
            times.beginPart { "a read" }
            times.endPart()
            clock.work(33)
        }
        await storage.run {}
        #expect(self.times.take() == [Self.long("storage", "a block", 33)])
    }

    @Test func `parts on threads that are not measured do nothing`() {
        self.times.beginPart { "nowhere" }
        self.clock.work(100)
        self.times.endPart()
        #expect(self.times.take() == [])
    }

    @Test func `every job of a task that has a name has it, until it is forgotten`() async {
        let loop = EventLoop(name: "loop", times: self.times)
        defer { loop.stop() }
        let (clock, times) = (self.clock, self.times)
        await Task(executorPreference: loop) {
            let mark = times.name("records/query")
            clock.work(21)
            await Task.yield()
            clock.work(22)
            await Task.yield()
            if let mark { times.forget(mark) }
            await Task.yield()
            clock.work(23)
        }.value
        await loop.run {}
        #expect(
            times.take() == [
                Self.long("loop", "a task", 23), Self.long("loop", "records/query", 22, count: 2),
            ])
    }

    @Test func `works beyond the bound have one name together`() async {
        let loop = EventLoop(name: "loop", times: self.times)
        defer { loop.stop() }
        let (clock, times) = (self.clock, self.times)
        for number in 0..<(PieceTimes.workCountMax + 2) {
            await loop.run {
                times.beginPart { "work \(number)" }
                clock.work(50)
                times.endPart()
            }
        }
        let long = times.take()
        #expect(long.count == PieceTimes.workCountMax + 1)
        #expect(long.first { $0.work == "others" }?.count == 2)
    }

    @Test func `the time of a thread grows with what it computes and not while it waits`() {
        let begun = RealClock.threadTime
        var number: UInt64 = 1
        while RealClock.threadTime == begun { number = number &* 6_364_136_223_846_793_005 &+ 1 }
        #expect(RealClock.threadTime > begun, "\(number)")
    }
}
