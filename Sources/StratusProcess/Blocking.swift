import StratusRuntime
import Synchronization

/// Lets a thread that may wait, the main thread of a program, wait for asynchronous work.
package enum Blocking {
    @discardableResult
    package static func wait<Value: Sendable>(
        _ body: @escaping @Sendable () async -> Value
    ) -> Value {
        let box = Box<Value>()
        Task.detached {
            let value = await body()
            box.value.withLock { $0 = value }
            box.done.raise()
        }
        while true {
            if let value = box.value.withLock({ $0 }) { return value }
            box.done.wait()
        }
    }

    private final class Box<Value: Sendable>: Sendable {
        let value = Mutex<Value?>(nil)
        let done = Signal()
    }
}
