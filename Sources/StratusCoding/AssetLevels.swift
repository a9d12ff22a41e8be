package import StratusModel

// What is written of assets.

extension PackFormat: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension BodyCoding: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension CopyMessage: FixedLevel {
    package static var level: FeatureLevel { .one }
}
