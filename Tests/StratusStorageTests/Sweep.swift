import Foundation

/// Chooses the operations that a sweep strikes. The full form strikes every one. The everyday run
/// strikes a third of them, other ones for each variant. `STRATUS_SWEEP=all` asks for the full form
/// everywhere.
enum Sweep {
    static let isFull = ProcessInfo.processInfo.environment["STRATUS_SWEEP"] == "all"

    /// - Parameter step: more than three where one operation costs much and there are many variants.
    static func operations(_ count: Int, variant: Int, step: Int = 3) -> [Int] {
        Self.isFull
            ? Array(1...count)
            : Array(stride(from: 1 + variant % step, through: count, by: step))
    }
}
