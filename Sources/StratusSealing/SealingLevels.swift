// The level that readers need for what this module writes to disk. See `Docs/internals/levels.md`.

package import StratusModel

/// Read by the node that wrote it alone.
extension FileSeal: FixedLevel {
    package static var level: FeatureLevel { .one }
}
