// The level that readers need for what this module encodes. A new case of an enumeration gets its
// number here as well as in its encoder. See `Docs/internals/levels.md`.

package import StratusModel

extension NodeQuestion: Levelled {
    /// The kind's number in the encoding.
    package var number: UInt8 {
        switch self {
        case .view: 1
        case .observe: 2
        case .configure: 3
        case .transfer: 4
        case .changed: 5
        case .health: 6
        case .offer: 7
        case .attend: 8
        case .stirred: 9
        case .support: 10
        case .remains: 11
        }
    }
    package var level: FeatureLevel { NumberFamily.nodeQuestion.needed(by: self.number) }
}

extension NodeReply: Levelled {
    /// The kind's number in the encoding.
    package var number: UInt8 {
        switch self {
        case .view: 1
        case .observed: 2
        case .done: 3
        case .health: 4
        case .support: 5
        case .remains: 6
        }
    }
    package var level: FeatureLevel { NumberFamily.nodeReply.needed(by: self.number) }
}

extension PeerMemory: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension RecoveryNote: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension ClusterFormation: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension ClusterDirectory: FixedLevel {
    package static var level: FeatureLevel { .one }
}

/// The file, and the value in the view.
extension ClusterMaster: FixedLevel {
    package static var level: FeatureLevel { .one }
}
