// The level that readers need for what this module encodes. A new case of an enumeration gets its
// number here as well as in its encoder. See `Docs/internals/levels.md`.

package import StratusModel

extension Command: Levelled {}

extension Entry: Levelled {
    package var level: FeatureLevel { NumberFamily.entryKind.needed(by: self.kind.rawValue) }
}

extension MailCommand: Levelled {
    /// The kind's number in the encoding.
    package var number: UInt8 {
        switch self {
        case .deliver: 1
        case .release: 2
        case .beginEpoch: 3
        }
    }
    package var level: FeatureLevel { NumberFamily.mailCommand.needed(by: self.number) }
}

extension PeerMessage: Levelled {
    /// The kind's number in the encoding.
    package var number: UInt8 {
        switch self {
        case .hello(let hello): hello.data == nil ? 1 : 5
        case .welcome(let welcome): welcome.data == nil ? 2 : 6
        case .refusal: 3
        case .taken: 4
        case .join: 7
        case .admission: 8
        case .starts: 9
        case .purpose: 10
        case .heartbeat: 16
        case .consensus: 32
        case .request: 48
        case .response: 49
        case .copy: 64
        }
    }
    package var level: FeatureLevel { NumberFamily.peerMessage.needed(by: self.number) }
}

extension ConsensusMessage: Levelled {
    package var level: FeatureLevel {
        NumberFamily.consensusMessage.needed(by: self.body.number)
    }
}

extension Configuration: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension MailOutcome: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension OutboxAsk: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension Outbox: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension NodeHeartbeat: FixedLevel {
    package static var level: FeatureLevel { .one }
}

extension ShardKey: FixedLevel {
    package static var level: FeatureLevel { .one }
}

/// The level of the frame itself. The body of each file has versions of its own.
extension FileFrame: FixedLevel {
    package static var level: FeatureLevel { .one }
}
