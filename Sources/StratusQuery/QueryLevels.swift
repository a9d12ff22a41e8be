// The level that readers need for what this module encodes. See `Docs/internals/levels.md`.

import StratusCoding
package import StratusModel

extension IndexedSchema: Levelled {
    package var level: FeatureLevel {
        self.indexes.reduce(.one) {
            max($0, NumberFamily.indexKind.needed(by: $1.kind.rawValue))
        }
    }
}

extension WordSummary: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension QueryPosition: FixedLevel {
    static var level: FeatureLevel { .one }
}
