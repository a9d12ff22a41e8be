import Glibc
import Synchronization

/// Which thread owns something: claimed once by that thread, asked by all.
struct ThreadIdentity: ~Copyable, Sendable {
    /// `pthread_t` is a pointer in disguise, and never null.
    private let owner = Atomic<UInt>(0)

    static var ofCaller: UInt { UInt(pthread_self()) }

    func claim() { self.owner.store(Self.ofCaller, ordering: .releasing) }

    var isCurrent: Bool { self.owner.load(ordering: .acquiring) == Self.ofCaller }
}
