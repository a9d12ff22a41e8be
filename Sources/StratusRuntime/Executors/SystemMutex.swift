import Glibc

/// A value behind a POSIX mutex, for locks that threads really meet at.
///
/// The standard library's `Mutex` is as fast, but waits inside a library that ThreadSanitizer
/// cannot see into: under contention it reports races that are none. It understands this one.
///
/// `@unchecked`: the value is reached only with the lock held. Remove this once the sanitizer knows
/// `Mutex`.
package struct SystemMutex<Value>: ~Copyable, @unchecked Sendable {
    // Both stay where they are: the system keeps the lock's address.
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let value = UnsafeMutablePointer<Value>.allocate(capacity: 1)

    package init(_ value: sending Value) {
        self.lock.initialize(to: pthread_mutex_t())
        pthread_mutex_init(self.lock, nil)
        self.value.initialize(to: value)
    }

    deinit {
        self.value.deinitialize(count: 1)
        self.value.deallocate()
        pthread_mutex_destroy(self.lock)
        self.lock.deallocate()
    }

    package func withLock<Result>(_ body: (inout Value) -> Result) -> Result {
        pthread_mutex_lock(self.lock)
        defer { pthread_mutex_unlock(self.lock) }
        return body(&self.value.pointee)
    }
}
