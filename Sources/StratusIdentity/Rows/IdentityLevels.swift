// The level that readers need for what this module encodes. A new case of an enumeration gets its
// number here as well as in its encoder. See `Docs/internals/levels.md`.

package import StratusModel

extension APIToken: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension ServerKey: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension ContainerUser: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension Account: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension ContainerDescriptor: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension Session: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension SealingKeyRing: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension Device: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension ContainerKeyRow: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension KeyRotation: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension MasterCheck: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension Brand: FixedLevel {
    package static var level: FeatureLevel { .one }
}
