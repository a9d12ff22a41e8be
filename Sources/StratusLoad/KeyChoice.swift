import StratusModel

/// Which record an operation is about.
package enum KeyChoice: Sendable, Equatable {
    /// Each as often as any other.
    case uniform
    /// Few much more often than the rest, scattered over all (YCSB's zipfian, 0.99).
    case zipfian
    /// The youngest most often.
    case latest
}

/// Draws ranks so that rank r comes with a probability proportional to 1 / (r + 1) to the power of
/// 0.99. The method is that of Gray and others ("Quickly generating billion-record synthetic
/// databases", 1994).
package struct Zipfian: Sendable {
    private static let skew = 0.99
    private let count: Int
    private let zeta: Double
    private let eta: Double

    /// - Parameter count: of ranks; at least one. Costs as many steps.
    package init(count: Int) {
        precondition(count > 0, "nothing to draw from")
        self.count = count
        var zeta = 0.0
        for rank in 1...count { zeta += 1 / Double.power(Double(rank), Self.skew) }
        self.zeta = zeta
        let two = 1 + 1 / Double.power(2, Self.skew)
        self.eta =
            (1 - Double.power(2 / Double(count), 1 - Self.skew)) / (1 - two / max(zeta, two + 1e-9))
    }

    package func rank(_ draw: UInt64) -> Int {
        let unit = Double(draw >> 11) / Double(1 << 53)
        let scaled = unit * self.zeta
        if scaled < 1 { return 0 }
        if scaled < 1 + 1 / Double.power(2, Self.skew) { return min(1, self.count - 1) }
        let rank =
            Double(self.count) * Double.power(self.eta * unit - self.eta + 1, 1 / (1 - Self.skew))
        return min(max(0, Int(rank)), self.count - 1)
    }
}
