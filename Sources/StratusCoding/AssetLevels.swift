package import StratusModel

// What is written of assets. Every reader of these formats came with level 2, so nobody writes them
// below it.

extension PackFormat: FixedLevel {
    package static var level: FeatureLevel { .two }
}

extension BodyCoding: FixedLevel {
    package static var level: FeatureLevel { .two }
}

extension CopyMessage: FixedLevel {
    package static var level: FeatureLevel { .two }
}
