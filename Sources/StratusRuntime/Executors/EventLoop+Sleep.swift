package import StratusModel

extension EventLoop {
    /// Returns at or soon after `time`; throws as soon as the task is cancelled.
    package func sleep(until time: MonotonicTime) async throws(CancellationError) {
        let sleeper = Sleeper(loop: self)
        let isComplete = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                self.perform { sleeper.begin(until: time, continuation) }
            }
        } onCancel: {
            self.perform { sleeper.cancel() }
        }
        if !isComplete { throw CancellationError() }
    }

    package func sleep(for duration: Duration) async throws(CancellationError) {
        try await self.sleep(until: RealClock.now + duration)
    }
}

/// One sleep: cancelled before it began, while it lasts, or after it ended.
///
/// `@unchecked`: touched only on its loop, like everything the loop owns.
private final class Sleeper: @unchecked Sendable {
    private let loop: EventLoop
    private var sleep: (timer: EventLoop.Timer, continuation: CheckedContinuation<Bool, Never>)?
    private var isCancelled = false

    init(loop: EventLoop) { self.loop = loop }

    func begin(until time: MonotonicTime, _ continuation: CheckedContinuation<Bool, Never>) {
        if self.isCancelled { return continuation.resume(returning: false) }
        let timer = self.loop.schedule(at: time) { self.finish(true) }
        self.sleep = (timer, continuation)
    }

    func cancel() {
        self.isCancelled = true
        if let sleep = self.sleep { self.loop.cancel(sleep.timer) }
        self.finish(false)
    }

    private func finish(_ isComplete: Bool) {
        self.sleep?.continuation.resume(returning: isComplete)
        self.sleep = nil
    }
}
