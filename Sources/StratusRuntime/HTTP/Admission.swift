import StratusModel
import Synchronization

/// Counts the open connections of a server over all its loops, in total and for each address.
final class Admission: Sendable {
    private struct Counts {
        var total = 0
        var byAddress: [String: Int] = [:]
    }

    private let counts = Mutex(Counts())
    private let totalMax: Int
    private let perAddressMax: Int

    init(totalMax: Int, perAddressMax: Int) {
        self.totalMax = totalMax
        self.perAddressMax = perAddressMax
    }

    /// - Parameter address: without its port; nil for a Unix socket, whose peers are all one machine's.
    /// - Returns: whether there is room; then ``leave(_:)`` must follow.
    func enter(_ address: String?) -> Bool {
        self.counts.withLock { counts in
            guard counts.total < self.totalMax else { return false }
            if let address {
                let count = counts.byAddress[address, default: 0]
                guard count < self.perAddressMax else { return false }
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
