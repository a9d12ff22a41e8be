/// Numbers of one meaning: within a family a number says the same thing for ever.
///
/// All families stand in `NumberRegistry.swift`, with the level from which each number may be
/// written.
package struct NumberFamily: Sendable {
    package struct Entry: Sendable, Equatable {
        package let number: UInt8
        package let name: String
        /// Builds before this level cannot read the number.
        package let since: FeatureLevel
    }

    package let name: String
    /// In ascending order; without gaps, unless parts of the product took numbers in blocks.
    package let entries: [Entry]
    private let hasGaps: Bool
    private let levels: [FeatureLevel?]

    /// - Parameter since: the levels of the numbers that came after level 1.
    init(
        _ name: String, _ numbers: KeyValuePairs<UInt8, String>,
        since: KeyValuePairs<UInt8, FeatureLevel> = [:], hasGaps: Bool = false
    ) {
        var levels = [FeatureLevel?](repeating: nil, count: 256)
        for (number, _) in numbers { levels[Int(number)] = .one }
        for (number, level) in since { levels[Int(number)] = level }
        self.name = name
        self.hasGaps = hasGaps
        self.entries = numbers.map {
            Entry(number: $0.key, name: $0.value, since: levels[Int($0.key)] ?? .unregistered)
        }
        self.levels = levels
    }

    /// The level from which the number may be written; nil for a number that this build does not
    /// know.
    package func level(of number: UInt8) -> FeatureLevel? { self.levels[Int(number)] }

    /// The level that an encoder declares: a number that is not registered may never be written.
    package func needed(by number: UInt8) -> FeatureLevel {
        self.levels[Int(number)] ?? .unregistered
    }

    /// The errors in the family's numbers: gaps, duplicates, and levels of numbers that are not
    /// listed.
    package var faults: [String] {
        var faults: [String] = []
        for (entry, next) in zip(self.entries, self.entries.dropFirst()) {
            if next.number == entry.number {
                faults.append("\(self.name) \(entry.number): \(entry.name) and \(next.name)")
            } else if next.number != entry.number + 1, !self.hasGaps {
                faults.append("\(self.name): nothing between \(entry.number) and \(next.number)")
            }
        }
        let known = self.levels.count { $0 != nil }
        if known != self.entries.count {
            faults.append("\(self.name): \(self.entries.count) numbers and \(known) levels")
        }
        let names = self.entries.map(\.name)
        for name in Set(names).sorted() where names.filter({ $0 == name }).count > 1 {
            faults.append("\(self.name): two numbers are called \(name)")
        }
        return faults
    }
}
