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
        }
    }
    package var level: FeatureLevel { NumberFamily.mailCommand.needed(by: self.number) }
}

extension PeerMessage: Levelled {
    /// The kind's number in the encoding.
    package var number: UInt8 {
        switch self {
        case .hello: 1
        case .welcome: 2
        case .refusal: 3
        case .taken: 4
        case .join: 5
        case .admission: 6
        case .starts: 7
        case .purpose: 8
        case .heartbeat: 9
        case .consensus: 10
        case .request: 11
        case .response: 12
        case .copy: 13
        }
    }
    package var level: FeatureLevel { NumberFamily.peerMessage.needed(by: self.number) }
}

extension ConsensusMessage: Levelled {
    package var level: FeatureLevel {
        NumberFamily.consensusMessage.needed(by: self.body.number)
    }
}

extension RecordPredicate: Levelled {
    /// That of its newest comparator, selector or type of an operand.
    package var level: FeatureLevel {
        var level = FeatureLevel.one
        for filter in self.filters {
            level = max(
                level, NumberFamily.comparator.needed(by: filter.comparator.rawValue),
                filter.field.level,
                NumberFamily.scalarType.needed(by: filter.operand.type.scalar.rawValue))
        }
        for sort in self.sorts { level = max(level, sort.field.level) }
        return level
    }
}

extension FieldSelector: Levelled {
    package var level: FeatureLevel {
        guard case .system(let field) = self else { return .one }
        return NumberFamily.systemField.needed(by: field.rawValue)
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
