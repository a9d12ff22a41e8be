import CShims
import Glibc

/// The events that a socket can be waited for, or that have happened to it.
struct Readiness: OptionSet, Sendable, Hashable {
    let rawValue: UInt32

    static let readable = Readiness(rawValue: EPOLLIN.rawValue)
    static let writable = Readiness(rawValue: EPOLLOUT.rawValue)
    /// Both directions are dead, or the socket failed. Always told, never asked for.
    static let broken = Readiness(rawValue: EPOLLHUP.rawValue | EPOLLERR.rawValue)
    /// Told once each time it comes about, instead of for as long as it lasts.
    fileprivate static let onceEach = Readiness(rawValue: EPOLLET.rawValue)
}

/// Something that owns a socket on an event loop.
protocol Channel: AnyObject {
    func becameReady(_ readiness: Readiness)
}

/// Names one watched socket until it is deregistered; after that it names nothing, even if its
/// place is used again.
struct Registration: Sendable, Hashable {
    fileprivate let slot: UInt32
    fileprivate let generation: UInt32

    /// The loop's own wake-up.
    static let signal = Registration(slot: .max, generation: .max)

    fileprivate init(slot: UInt32, generation: UInt32) {
        self.slot = slot
        self.generation = generation
    }

    fileprivate init(userData: UInt64) {
        self.slot = UInt32(truncatingIfNeeded: userData)
        self.generation = UInt32(truncatingIfNeeded: userData >> 32)
    }

    fileprivate var userData: UInt64 { UInt64(self.generation) << 32 | UInt64(self.slot) }
}

/// The sockets that a loop watches: an epoll instance and who stands behind each descriptor.
struct Registrations: ~Copyable {
    private struct Slot {
        var channel: (any Channel)?
        var generation: UInt32
        var descriptor: Int32
        var interest: Readiness
    }

    fileprivate let epoll: Int32
    private var slots: [Slot] = []
    private var free: [UInt32] = []

    init(signal: Int32) {
        self.epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
        precondition(self.epoll >= 0, "the system refused an epoll instance (\(errno))")
        // Once for each time it is raised: nobody has to take it back.
        let code = Self.control(
            self.epoll, EPOLL_CTL_ADD, signal, [.readable, .onceEach], .signal)
        precondition(code == 0, "the wake-up cannot be watched (\(code))")
    }

    deinit { close(self.epoll) }

    mutating func add(
        _ descriptor: Int32, for interest: Readiness, _ channel: any Channel
    ) throws(SocketError) -> Registration {
        let slot: UInt32
        if let reused = self.free.popLast() {
            slot = reused
        } else {
            slot = UInt32(self.slots.count)
            self.slots.append(Slot(channel: nil, generation: 0, descriptor: -1, interest: []))
        }
        let registration = Registration(slot: slot, generation: self.slots[Int(slot)].generation)
        let code = Self.control(self.epoll, EPOLL_CTL_ADD, descriptor, interest, registration)
        guard code == 0 else {
            self.free.append(slot)
            throw SocketError(code: code, during: "watch")
        }
        self.slots[Int(slot)].channel = channel
        self.slots[Int(slot)].descriptor = descriptor
        self.slots[Int(slot)].interest = interest
        return registration
    }

    mutating func change(_ registration: Registration, to interest: Readiness) {
        let index = Int(registration.slot)
        precondition(
            self.slots[index].generation == registration.generation, "the socket is not watched")
        guard self.slots[index].interest != interest else { return }
        self.slots[index].interest = interest
        let descriptor = self.slots[index].descriptor
        let code = Self.control(self.epoll, EPOLL_CTL_MOD, descriptor, interest, registration)
        // Changing what is there needs no memory and cannot fail.
        precondition(code == 0, "a watched socket cannot be changed (\(code))")
    }

    /// Another channel takes the socket over with its registration.
    mutating func replace(_ registration: Registration, with channel: any Channel) {
        let index = Int(registration.slot)
        precondition(
            self.slots[index].generation == registration.generation, "the socket is not watched")
        self.slots[index].channel = channel
    }

    mutating func remove(_ registration: Registration) {
        let index = Int(registration.slot)
        precondition(
            self.slots[index].generation == registration.generation, "the socket is not watched")
        let descriptor = self.slots[index].descriptor
        let code = Self.control(self.epoll, EPOLL_CTL_DEL, descriptor, [], registration)
        precondition(code == 0, "a watched socket cannot be removed (\(code))")
        self.slots[index].channel = nil
        self.slots[index].generation &+= 1
        self.free.append(registration.slot)
    }

    /// Nil when it has been removed: an event may have been fetched before.
    func channel(of registration: Registration) -> (any Channel)? {
        let slot = self.slots[Int(registration.slot)]
        return slot.generation == registration.generation ? slot.channel : nil
    }

    private static func control(
        _ epoll: Int32, _ operation: Int32, _ descriptor: Int32, _ interest: Readiness,
        _ registration: Registration
    ) -> Int32 {
        var event = epoll_event()
        event.events = interest.rawValue
        event.data.u64 = registration.userData
        return epoll_ctl(epoll, operation, descriptor, &event) == 0 ? 0 : errno
    }
}

/// Room for what one wait brings.
struct EventBuffer: ~Copyable {
    private static let capacity = 256
    private let events = UnsafeMutableBufferPointer<epoll_event>.allocate(capacity: capacity)

    deinit { self.events.deallocate() }

    /// Waits; -1 means for ever.
    /// - Returns: how many events came.
    func wait(on registrations: borrowing Registrations, milliseconds: Int32) -> Int {
        let count = epoll_wait(
            registrations.epoll, self.events.baseAddress, Int32(Self.capacity), milliseconds)
        precondition(count >= 0 || errno == EINTR, "epoll_wait failed (\(errno))")
        return Int(max(count, 0))
    }

    subscript(_ index: Int) -> (Registration, Readiness) {
        let event = self.events[index]
        return (Registration(userData: event.data.u64), Readiness(rawValue: event.events))
    }
}
