import StratusModel
import Synchronization

/// Limits long pieces of work to a fixed number at a time, and lets the tenants take turns.
///
/// Each event loop has one for the work that keeps the loop itself busy: reading a large body or
/// writing a large answer, one piece at a time. Between two pieces the loop looks at its sockets,
/// so small requests wait for one piece at most, not for all that are ready. The loop's connections
/// bound the waiting pieces.
package final class LongWork: Sendable {
    /// Up to this size nothing takes long.
    package static let sizeMin = 64 << 10

    private struct State {
        var freeCount: Int
        var waiting = FairQueue<String, CheckedContinuation<Void, Never>>()

        mutating func takeFree() -> Bool {
            guard self.freeCount > 0 else { return false }
            self.freeCount -= 1
            return true
        }
    }

    private let state: Mutex<State>

    /// - Parameter count: how many have their turn at the same time.
    package init(_ count: Int = 1) { self.state = Mutex(State(freeCount: count)) }

    var waitingCount: Int { self.state.withLock { $0.waiting.count } }

    fileprivate func take(for tenant: String) async {
        await withCheckedContinuation { continuation in
            let isFree = self.state.withLock { state in
                if state.takeFree() { return true }
                state.waiting.append(continuation, for: tenant)
                return false
            }
            if isFree { continuation.resume() }
        }
    }

    fileprivate func takeAtOnce() -> Bool { self.state.withLock { $0.takeFree() } }

    fileprivate func leave() {
        let next = self.state.withLock { state in
            let next = state.waiting.popFirst()
            if next == nil { state.freeCount += 1 }
            return next
        }
        next?.resume()
    }

    /// One request's turns.
    package final class Turn: Sendable {
        private enum Stage { case outside, waiting, inside }

        private let work: LongWork
        private let tenant: String
        private let stage = Mutex(Stage.outside)

        package init(at work: LongWork, for tenant: String) {
            self.work = work
            self.tenant = tenant
        }

        /// A turn of the same tenant at the same loop, not taken.
        package func another() -> Turn { Turn(at: self.work, for: self.tenant) }

        /// Returns when the loop may be busy with `size` bytes. A caller that then waits for
        /// something else calls ``leave()`` before.
        package func take(for size: Int) async {
            guard size >= LongWork.sizeMin else { return }
            // Parts of one request that are read side by side have one turn together.
            let isFirst = self.stage.withLock { stage in
                guard stage == .outside else { return false }
                stage = .waiting
                return true
            }
            guard isFirst else { return }
            await self.work.take(for: self.tenant)
            self.stage.withLock { $0 = .inside }
        }

        /// Takes the turn where nobody need be waited for.
        package func takeAtOnce() -> Bool {
            self.stage.withLock { stage in
                guard stage == .outside, self.work.takeAtOnce() else { return false }
                stage = .inside
                return true
            }
        }

        package func leave() {
            let wasInside = self.stage.withLock { stage in
                guard stage == .inside else { return false }
                stage = .outside
                return true
            }
            if wasInside { self.work.leave() }
        }

        deinit { self.leave() }
    }
}
