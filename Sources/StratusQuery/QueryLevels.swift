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
    package static var level: FeatureLevel { .two }
}

extension QueryPosition: Levelled {
    var level: FeatureLevel { if case .named = self { .two } else { .one } }
}
