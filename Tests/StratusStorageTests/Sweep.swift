import Foundation

/// Chooses the operations that a sweep strikes. The full form strikes every one. The everyday run
/// strikes a third of them, other ones for each variant. `STRATUS_SWEEP=all` asks for the full form
/// everywhere.
enum Sweep {
    static let isFull = ProcessInfo.processInfo.environment["STRATUS_SWEEP"] == "all"

    static func operations(_ count: Int, variant: Int) -> [Int] {
        Self.isFull ? Array(1...count) : Array(stride(from: 1 + variant % 3, through: count, by: 3))
    }
}
