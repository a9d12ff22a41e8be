import StratusHTTP
import StratusModel
import Synchronization

/// Counts the open connections of a server over all its loops, in total and for each address, and
/// the requests over HTTP/2 for each address, and the requests that are held.
final class Admission: Sendable {
    private struct Counts {
        var totalMax: Int
        var perAddressMax: Int
        var requestsPerAddressMax: Int
        var total = 0
        var held = 0
        var byAddress: [String: Int] = [:]
        var requestsByAddress: [String: Int] = [:]
    }

    private let counts: Mutex<Counts>
    private let refusals = Mutex<[HTTPRefusal: UInt64]>([:])

    init(totalMax: Int, perAddressMax: Int, requestsPerAddressMax: Int) {
        self.counts = Mutex(
            Counts(
                totalMax: totalMax, perAddressMax: perAddressMax,
                requestsPerAddressMax: requestsPerAddressMax))
    }

    func count(_ refusal: HTTPRefusal) { self.refusals.withLock { $0[refusal, default: 0] += 1 } }

    func refusedCount(_ refusal: HTTPRefusal) -> UInt64 {
        self.refusals.withLock { $0[refusal] ?? 0 }
    }

    /// For connections from now on: nobody is thrown out.
    func limit(totalMax: Int, perAddressMax: Int, requestsPerAddressMax: Int) {
        self.counts.withLock {
            $0.totalMax = totalMax
            $0.perAddressMax = perAddressMax
            $0.requestsPerAddressMax = requestsPerAddressMax
        }
    }

    /// - Parameter address: without its port; nil for a Unix socket, whose peers are all one
    ///   machine's.
    /// - Returns: whether there is room; then ``leave(_:)`` must follow.
    func enter(_ address: String?) -> Bool {
        self.counts.withLock { counts in
            guard counts.total < counts.totalMax else { return false }
            if let address {
                let count = counts.byAddress[address, default: 0]
                guard count < counts.perAddressMax else { return false }
                counts.byAddress[address] = count + 1
            }
            counts.total += 1
            return true
        }
    }

    func leave(_ address: String?) {
        self.counts.withLock { counts in
            counts.total -= 1
            guard let address, let count = counts.byAddress[address] else { return }
            counts.byAddress[address] = count == 1 ? nil : count - 1
        }
    }

    /// - Returns: whether one more request of this address may be answered; then
    ///   ``leaveRequest(_:)`` must follow.
    func enterRequest(_ address: String?) -> Bool {
        guard let address else { return true }
        return self.counts.withLock { counts in
            let count = counts.requestsByAddress[address, default: 0]
            guard count < counts.requestsPerAddressMax else { return false }
            counts.requestsByAddress[address] = count + 1
            return true
        }
    }

    func leaveRequest(_ address: String?) {
        guard let address else { return }
        self.counts.withLock { counts in
            guard let count = counts.requestsByAddress[address] else { return }
            counts.requestsByAddress[address] = count == 1 ? nil : count - 1
        }
    }

    /// - Returns: whether one more request may be held; then ``leaveHeld()`` must follow.
    func enterHeld(max: Int) -> Bool {
        self.counts.withLock { counts in
            guard counts.held < max else { return false }
            counts.held += 1
            return true
        }
    }

    func leaveHeld() { self.counts.withLock { $0.held -= 1 } }

    var held: Int { self.counts.withLock { $0.held } }

    var total: Int { self.counts.withLock { $0.total } }
}

/// The place of one held request. It lives until the answer has left, or until nobody will take it.
final class HeldPlace: Sendable {
    private let admission: Admission
    private let other: (any AnyObject & Sendable)?

    /// - Parameter admission: the place is taken there already.
    /// - Parameter other: lives as long.
    init(in admission: Admission, with other: (any AnyObject & Sendable)?) {
        self.admission = admission
        self.other = other
    }

    deinit { self.admission.leaveHeld() }
}
