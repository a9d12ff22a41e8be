// The level that readers need for what this module encodes. A new case of an enumeration gets its
// number here as well as in its encoder. See `Docs/internals/levels.md`.

package import StratusModel

extension SystemCommand: Levelled {
    /// The kind's number in the encoding.
    package var number: UInt8 {
        switch self {
        case .form: 1
        case .addToken: 2
        case .revokeToken: 3
        case .join: 4
        case .announce: 5
        case .drain: 6
        case .undrain: 7
        case .remove: 8
        case .configure: 9
        case .beginMove: 10
        case .finishMove: 11
        case .abandonMove: 12
        case .fenceMove: 13
        case .raiseFeatureLevel: 14
        case .recover: 15
        case .withdrawCertificate: 16
        case .restoreCertificate: 17
        }
    }
    package var level: FeatureLevel { NumberFamily.systemCommand.needed(by: self.number) }
}

extension SystemQuery: Levelled {
    /// The kind's number in the encoding.
    package var number: UInt8 {
        switch self {
        case .view: 1
        case .notices: 2
        case .tokens: 3
        }
    }
    package var level: FeatureLevel { NumberFamily.systemQuery.needed(by: self.number) }
}

extension SystemAnswer: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension SystemOutcome: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension ClusterView: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension PlacementTable: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension SystemRows: FixedLevel {
    package static var level: FeatureLevel { .one }
}
