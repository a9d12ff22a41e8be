import Glibc
package import StratusHTTP
package import StratusModel
import Synchronization

/// What a full proof of a caller made, for requests that look the same. Immutable: it ends, and is
/// not changed.
///
/// Everything that the proof depends on is compared, byte for byte. When it ends otherwise is said
/// in it, and judged by the handler that made it: see ``goodUntil``, ``epoch`` and ``version``.
package final class KnownCaller: Sendable {
    package let method: Bytes
    package let target: Bytes
    package let origin: Bytes?
    package let authorization: Bytes?
    package let isSecure: Bool
    /// When it must be proved again. Use does not move it.
    package let goodUntil: MonotonicTime
    /// What nothing may have been withdrawn since.
    package let epoch: UInt64
    /// Of the surfaces that it was made by.
    package let version: UInt64
    /// Who answers such a request.
    package let plan: RequestPlan

    package init(
        of head: RequestHead, isSecure: Bool, goodUntil: MonotonicTime, epoch: UInt64,
        version: UInt64, plan: RequestPlan
    ) {
        self.method = Bytes(head.method.utf8)
        self.target = Bytes(head.path.utf8) + (head.query.map { Bytes("?\($0)".utf8) } ?? [])
        self.origin = head.headers["Origin"].map { Bytes($0.utf8) }
        self.authorization = head.headers["Authorization"].map { Bytes($0.utf8) }
        self.isSecure = isSecure
        self.goodUntil = goodUntil
        self.epoch = epoch
        self.version = version
        self.plan = plan
    }

    func fits(
        _ view: RequestView, _ bytes: Span<UInt8>, isSecure: Bool, _ bugs: PlantedBugs
    ) -> Bool {
        self.isSecure == isSecure && Self.equal(self.target, view.target, bytes)
            && Self.equal(self.method, view.method, bytes)
            && (Self.equal(self.origin, view.origin, bytes) || bugs.contains(.originNotCompared))
            && (Self.equal(self.authorization, view.authorization, bytes)
                || bugs.contains(.authorizationNotCompared))
    }

    private static func equal(_ one: Bytes?, _ place: Range<Int>?, _ bytes: Span<UInt8>) -> Bool {
        guard let one, let place else { return one == nil && place == nil }
        return Self.equal(one, place, bytes)
    }

    private static func equal(_ one: Bytes, _ place: Range<Int>, _ bytes: Span<UInt8>) -> Bool {
        guard one.count == place.count else { return false }
        return bytes.extracting(place).withUnsafeBytes { other in
            one.withUnsafeBytes { mine in
                guard let mine = mine.baseAddress, let other = other.baseAddress else {
                    return true
                }
                return memcmp(mine, other, place.count) == 0
            }
        }
    }

    func isSame(_ other: KnownCaller) -> Bool {
        self.isSecure == other.isSecure && self.target == other.target
            && self.method == other.method && self.origin == other.origin
            && self.authorization == other.authorization
    }
}

/// The callers that one connection knows: a few, since a proxy mixes those of several people.
package final class KnownCallers: Sendable {
    package static let countMax = 4

    private struct State {
        var callers: [KnownCaller] = []
        /// The place that the next one takes where all are taken.
        var next = 0
    }
    private let state = Mutex(State())
    package let bugs: PlantedBugs

    package init(bugs: PlantedBugs = PlantedBugs()) { self.bugs = bugs }

    package func caller(
        of view: RequestView, _ bytes: Span<UInt8>, isSecure: Bool
    ) -> KnownCaller? {
        self.state.withLock { state in
            for caller in state.callers
            where caller.fits(view, bytes, isSecure: isSecure, self.bugs) {
                return caller
            }
            return nil
        }
    }

    /// Takes the place of one that looked the same, or of the oldest.
    package func keep(_ caller: KnownCaller) {
        self.state.withLock { state in
            if let same = state.callers.firstIndex(where: { $0.isSame(caller) }) {
                state.callers[same] = caller
            } else if state.callers.count < Self.countMax {
                state.callers.append(caller)
            } else {
                state.callers[state.next] = caller
                state.next = (state.next + 1) % Self.countMax
            }
        }
    }

    package func forget(_ caller: KnownCaller) {
        self.state.withLock { state in
            state.callers.removeAll { $0 === caller }
            state.next = 0
        }
    }
}
