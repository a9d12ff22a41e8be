import StratusModel

/// Weighted rendezvous hashing: how much a node likes a partition, without a table and without a
/// neighbour that inherits everything.
///
/// A node's score is the time until its first event in a process of rate *weight*,
/// `-log2(hash) / weight`, and the smallest score wins: shares are as the weights, and a node that
/// comes or goes changes nobody's order but its own (Thaler, Ravishankar 1998; the weights after
/// Schindelhauer, Schomaker 2005). All in integers, so that every node computes the same.
struct Rendezvous {
    /// `log2(1 + i/256)` in units of 2⁻²⁴.
    private let logarithms: [UInt64]

    init() {
        self.logarithms = (0...256).map { step in
            guard step < 256 else { return 1 << 24 }
            // Squaring a number of [1, 2) yields the next binary digit of its logarithm.
            var value = UInt64(256 + step) << 23
            var digits: UInt64 = 0
            for _ in 0..<24 {
                value = (value &* value) >> 31
                digits <<= 1
                if value >= 1 << 32 {
                    digits |= 1
                    value >>= 1
                }
            }
            return digits
        }
    }

    /// The smallest wins. Ties, which are rare, go to the lower node.
    func score(of node: PlacementNode, for partition: Int) -> UInt64 {
        precondition(node.weight > 0, "a node that gets nothing has no score")
        let hash = SipHash64.of(
            UInt64(partition), UInt64(node.id.raw), key: (0x7265_6E64_657A_766F, 0x7573_2D76_3100))
        return (self.negativeLogarithm(hash) << 32) / UInt64(node.weight)
    }

    /// `-log2(hash / 2⁶⁴)` in units of 2⁻²⁴, at most 64 · 2²⁴.
    private func negativeLogarithm(_ hash: UInt64) -> UInt64 {
        guard hash > 0 else { return 64 << 24 }
        let zeros = UInt64(hash.leadingZeroBitCount)
        // The digits after the leading one, in units of 2⁻⁶⁴.
        let mantissa = zeros == 63 ? 0 : hash << (zeros + 1)
        let step = Int(mantissa >> 56)
        let rest = (mantissa >> 40) & 0xFFFF
        let low = self.logarithms[step]
        let high = self.logarithms[step + 1]
        let logarithm = (63 - zeros) << 24 + low + ((high - low) * rest) >> 16
        return 64 << 24 - logarithm
    }
}
