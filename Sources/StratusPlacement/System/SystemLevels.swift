// The level that readers need for what this module encodes. A new case of an enumeration gets its
// number here as well as in its encoder. See `Docs/internals/levels.md`.

package import StratusModel

extension SystemCommand: Levelled {
    /// The kind's number in the encoding.
    package var number: UInt8 {
        switch self {
        case .form(let formation): formation.converted == nil ? 1 : 17
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
        case .notify: 13
        case .raiseFeatureLevel: 14
        case .fenceMove: 15
        case .recover: 16
        case .withdrawCertificate: 60
        case .restoreCertificate: 61
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

/// Withdrawn certificates are in a view only where the cluster's level lets them be withdrawn.
extension ClusterView: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension PlacementTable: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension SystemRows: FixedLevel {
    package static var level: FeatureLevel { .one }
}
