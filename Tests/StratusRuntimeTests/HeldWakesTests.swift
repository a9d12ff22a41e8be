import Synchronization
import Testing

@testable import StratusRuntime

@Suite struct HeldWakesTests {
    /// A thread that is only counted.
    private final class Counted: WakeableThread, Sendable {
        private let total = Atomic(0)
        private let roused: @Sendable () -> Void
        init(_ roused: @escaping @Sendable () -> Void = {}) { self.roused = roused }
        var count: Int { self.total.load(ordering: .relaxed) }
        func rouse() {
            self.total.add(1, ordering: .relaxed)
            self.roused()
        }
    }

    @Test func `outside of a hold who sleeps is woken at once`() {
        let sleeper = Counted()
        HeldWakes.wake(sleeper)
        #expect(sleeper.count == 1)
    }

    @Test func `who is given work during a hold is woken when the outermost one ends`() {
        let (one, other) = (Counted(), Counted())
        HeldWakes.during {
            HeldWakes.wake(one)
            HeldWakes.during { HeldWakes.wake(other) }
            #expect(one.count == 0 && other.count == 0)
        }
        #expect(one.count == 1 && other.count == 1)
        HeldWakes.wake(one)
        #expect(one.count == 2, "the hold is over")
    }

    /// Another thread finds the work of a loop's round in one piece.
    @Test func `a loop wakes others when its round ends, and not before`() async {
        let loop = EventLoop(name: "test")
        defer { loop.stop() }
        let countInside = Atomic(-1)
        await withCheckedContinuation { (woken: CheckedContinuation<Void, Never>) in
            let sleeper = Counted { woken.resume() }
            loop.submit {
                HeldWakes.wake(sleeper)
                countInside.store(sleeper.count, ordering: .relaxed)
            }
        }
        #expect(countInside.load(ordering: .relaxed) == 0)
    }

    @Test func `a loop and a worker that wake each other again and again lose no wake-up`() async {
        let loop = EventLoop(name: "test")
        let worker = WorkerThread(name: "worker")
        defer { loop.stop() }
        defer { worker.stop() }
        await withCheckedContinuation { done in
            Self.bounce(2_000, between: loop, and: worker) { done.resume() }
        }
    }

    private static func bounce(
        _ count: Int, between loop: EventLoop, and worker: WorkerThread,
        then end: @escaping @Sendable () -> Void
    ) {
        loop.submit {
            worker.submit {
                count == 0 ? end() : Self.bounce(count - 1, between: loop, and: worker, then: end)
            }
        }
    }
}
