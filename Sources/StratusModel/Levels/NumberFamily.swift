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
    /// In ascending order.
    package let entries: [Entry]
    /// The numbers where counting starts anew on purpose. Anywhere else a gap is a mistake.
    package let blocks: [UInt8]
    private let levels: [FeatureLevel?]

    /// - Parameters:
    ///   - first: what level 1 has.
    ///   - later: what came since, by level.
    init(
        _ name: String, _ first: KeyValuePairs<UInt8, String>,
        later: [(FeatureLevel, KeyValuePairs<UInt8, String>)] = [], blocks: [UInt8] = []
    ) {
        var entries = first.map { Entry(number: $0.key, name: $0.value, since: .one) }
        for (level, numbers) in later {
            entries += numbers.map { Entry(number: $0.key, name: $0.value, since: level) }
        }
        var levels = [FeatureLevel?](repeating: nil, count: 256)
        for entry in entries { levels[Int(entry.number)] = entry.since }
        self.name = name
        self.entries = entries.sorted { $0.number < $1.number }
        self.blocks = blocks
        self.levels = levels
    }

    /// The level from which the number may be written; nil for a number that this build does not
    /// know.
    package func level(of number: UInt8) -> FeatureLevel? { self.levels[Int(number)] }

    /// The level that an encoder declares: a number that is not registered may never be written.
    package func needed(by number: UInt8) -> FeatureLevel {
        self.levels[Int(number)] ?? .unregistered
    }

    /// The errors in the family's numbers: gaps and duplicates.
    package var faults: [String] {
        var faults: [String] = []
        for (entry, next) in zip(self.entries, self.entries.dropFirst()) {
            if next.number == entry.number {
                faults.append("\(self.name) \(entry.number): \(entry.name) and \(next.name)")
            } else if next.number != entry.number + 1, !self.blocks.contains(next.number) {
                faults.append("\(self.name): nothing between \(entry.number) and \(next.number)")
            }
        }
        let names = self.entries.map(\.name)
        for name in Set(names).sorted() where names.filter({ $0 == name }).count > 1 {
            faults.append("\(self.name): two numbers are called \(name)")
        }
        return faults
    }
}
