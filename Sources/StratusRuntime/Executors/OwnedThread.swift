import CShims
import Glibc

/// One POSIX thread that runs `body` and ends with it.
///
/// Swift's own pool is for work that never blocks; work that waits for a socket or a disk gets a
/// thread of its own here.
package struct OwnedThread: Sendable {
    /// Starts the thread. It cannot be joined: its owner learns of its end from `body`.
    package static func start(named name: String, _ body: @escaping @Sendable () -> Void) {
        let start = Unmanaged.passRetained(Start(name: name, body: body))
        var thread = pthread_t()
        let code = pthread_create(
            &thread, nil,
            { argument in
                let start = Unmanaged<Start>.fromOpaque(argument!).takeRetainedValue()
                stratus_name_this_thread(start.name)
                start.body()
                return nil
            }, start.toOpaque())
        precondition(code == 0, "the system refused a thread (\(code))")
        pthread_detach(thread)
    }

    private final class Start: Sendable {
        let name: String
        let body: @Sendable () -> Void

        init(name: String, body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }
}
