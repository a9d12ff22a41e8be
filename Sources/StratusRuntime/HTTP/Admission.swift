import StratusHTTP
import StratusModel
import Synchronization

/// Counts the open connections of a server over all its loops, in total and for each address.
final class Admission: Sendable {
    private struct Counts {
        var totalMax: Int
        var perAddressMax: Int
        var total = 0
        var byAddress: [String: Int] = [:]
    }

    private let counts: Mutex<Counts>
    private let refusals = Mutex<[HTTPRefusal: UInt64]>([:])

    init(totalMax: Int, perAddressMax: Int) {
        self.counts = Mutex(Counts(totalMax: totalMax, perAddressMax: perAddressMax))
    }

    func count(_ refusal: HTTPRefusal) { self.refusals.withLock { $0[refusal, default: 0] += 1 } }

    func refusedCount(_ refusal: HTTPRefusal) -> UInt64 {
        self.refusals.withLock { $0[refusal] ?? 0 }
    }

    /// For connections from now on: nobody is thrown out.
    func limit(totalMax: Int, perAddressMax: Int) {
        self.counts.withLock {
            $0.totalMax = totalMax
            $0.perAddressMax = perAddressMax
        }
    }

    /// - Parameter address: without its port; nil for a Unix socket, whose peers are all one machine's.
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

    var total: Int { self.counts.withLock { $0.total } }
}
