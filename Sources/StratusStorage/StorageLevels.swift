// The level that readers need for what this module encodes. A new case of an enumeration gets its
// number here as well as in its encoder. See `Docs/internals/levels.md`.

package import StratusModel

extension SnapshotFrame: FixedLevel {
    static var level: FeatureLevel { .one }
}

extension AppliedPosition: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension StartFile: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension MasterKeyFile: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension ErasureMark: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension ErasureNote: FixedLevel {
    package static var level: FeatureLevel { .one }
}

/// The level of the log's segments and batches, which ``BatchEncoder`` writes.
extension LogFormat: FixedLevel {
    static var level: FeatureLevel { .one }
}
