package import StratusCoding
package import StratusModel
package import StratusRows

// The body of a register command, versions 1 and 2. They differ only in their number, and exist so
// that there is a format of the next feature level to upgrade to
//
// | bytes    | what                                                                     |
// | -------- | ------------------------------------------------------------------------ |
// | 1        | version, 1 or 2                                                          |
// | 1        | 1 write, 2 compare and set, 3 remove                                     |
// | prefixed | register                                                                 |
// | 1 (+ prefixed) | compare and set only: whether a value is expected, and which       |
// | prefixed | the new value; absent in a remove                                        |

/// The operation of a command on one register.
package enum RegisterCommand: Sendable, Equatable {
    case write(Bytes, value: Bytes)
    /// Takes effect only if the register holds `expected`; nil expects it to be absent.
    case compareAndSet(Bytes, expected: Bytes?, value: Bytes)
    case remove(Bytes)

    /// The register, and what it holds if the command takes effect.
    var target: (register: Bytes, new: Bytes?) {
        switch self {
        case .write(let register, let value), .compareAndSet(let register, _, let value):
            (register, value)
        case .remove(let register): (register, nil)
        }
    }

    /// - Parameter level: what all replicas can read.
    package func encoded(for level: FeatureLevel = .one) -> Bytes {
        var writer = ByteWriter()
        writer.write((level >= .next ? 2 : 1) as UInt8)
        switch self {
        case .write(let register, let value):
            writer.write(1 as UInt8)
            writer.write(prefixed: register)
            writer.write(prefixed: value)
        case .compareAndSet(let register, let expected, let value):
            writer.write(2 as UInt8)
            writer.write(prefixed: register)
            writer.write(flag: expected != nil)
            if let expected { writer.write(prefixed: expected) }
            writer.write(prefixed: value)
        case .remove(let register):
            writer.write(3 as UInt8)
            writer.write(prefixed: register)
        }
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        let version = try reader.byte()
        guard version == 1 || version == 2 else {
            throw DecodingError(.unknownVersion(version), at: 0)
        }
        switch try reader.byte() {
        case 1: self = .write(try reader.prefixed(), value: try reader.prefixed())
        case 2:
            let register = try reader.prefixed()
            let expected = try reader.flag() ? try reader.prefixed() : nil
            self = .compareAndSet(register, expected: expected, value: try reader.prefixed())
        case 3: self = .remove(try reader.prefixed())
        default: throw DecodingError(.malformed, at: 1)
        }
        try reader.finish()
    }
}

extension RegisterCommand: Levelled {
    /// The kind's number in the encoding.
    var number: UInt8 {
        switch self {
        case .write: 1
        case .compareAndSet: 2
        case .remove: 3
        }
    }
    package var level: FeatureLevel { NumberFamily.registerCommand.needed(by: self.number) }
}

/// The register's content before a command, and whether the command took effect.
package struct RegisterOutcome: FixedLevel, Sendable, Equatable {
    package static var level: FeatureLevel { .one }

    package var tookEffect: Bool
    package var before: Bytes?

    package init(tookEffect: Bool, before: Bytes?) {
        self.tookEffect = tookEffect
        self.before = before
    }

    package func encoded() -> Bytes {
        var writer = ByteWriter()
        writer.write(flag: self.tookEffect)
        writer.write(flag: self.before != nil)
        if let before { writer.write(prefixed: before) }
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        self.tookEffect = try reader.flag()
        self.before = try reader.flag() ? try reader.prefixed() : nil
        try reader.finish()
    }
}

/// A read of the reference state.
package enum RegisterQuery: Sendable, Equatable {
    /// The register's value.
    case value(Bytes)
    /// The changes after a position of the feed, oldest first, so many at most.
    case feed(after: UInt64, limit: Int)

    package var query: Query {
        var writer = ByteWriter()
        switch self {
        case .value(let register):
            writer.write(1 as UInt8)
            writer.write(prefixed: register)
        case .feed(let after, let limit):
            writer.write(2 as UInt8)
            writer.write(fixed: after)
            writer.write(count: limit)
        }
        return Query(kind: .reference, body: writer.bytes)
    }
}

/// One change in the feed: the position it has there is the index of its entry.
package struct RegisterChange: Sendable, Equatable {
    package var position: UInt64
    package var register: Bytes
    /// nil after a remove.
    package var value: Bytes?
}

/// The reference state: registers with compare-and-set, and a feed of their changes. Tests and the
/// simulator replicate it, because everything about it can be checked.
package struct RegisterState: ReplicatedState {
    package init() {}

    package mutating func apply(
        _ command: Command, at position: EntryPosition, over rows: Rows
    ) throws(StoreError) -> Outcome {
        guard command.kind == .reference, let body = try? RegisterCommand(decoding: command.body)
        else { return Outcome(.unreadable) }
        let (register, new) = body.target
        let before = try rows.row(.record, register.span.bytes)
        if case .compareAndSet(_, let expected, _) = body, expected != before {
            return Outcome(
                .decided, body: RegisterOutcome(tookEffect: false, before: before).encoded())
        }
        var change = ByteWriter()
        change.write(prefixed: register)
        change.write(flag: new != nil)
        if let new {
            change.write(prefixed: new)
            try rows.put(.record, register.span.bytes, new.span.bytes)
        } else {
            try rows.remove(.record, register.span.bytes)
        }
        try rows.put(.feed, Self.key(position.index.raw).span.bytes, change.bytes.span.bytes)
        return Outcome(.decided, body: RegisterOutcome(tookEffect: true, before: before).encoded())
    }

    package func answer(_ query: Query, over rows: RowView) throws(StoreError)
        -> QueryAnswer
    {
        var reader = ByteReader(query.body)
        switch try? reader.byte() {
        case 1:
            guard let register = try? reader.prefixed() else { break }
            let value = try rows.row(.record, register.span.bytes)
            var writer = ByteWriter()
            writer.write(flag: value != nil)
            if let value { writer.write(prefixed: value) }
            return QueryAnswer(body: writer.bytes)
        case 2:
            guard let after = try? reader.fixed64(), let limit = try? reader.varint() else { break }
            var writer = ByteWriter()
            var count = 0
            try rows.scan(
                .feed, from: Self.key(after + 1).span.bytes, to: Bytes().span.bytes,
                descending: false
            ) { key, row in
                guard count < limit else { return .stop }
                count += 1
                writer.write(raw: Bytes(copying: key))
                writer.write(prefixed: Bytes(copying: row))
                return .next
            }
            return QueryAnswer(body: writer.bytes)
        default: break
        }
        throw StoreError(.unreadable, "a query of the reference state")
    }

    package mutating func forget() {}

    package func reading(of command: Command) -> CommandReading {
        guard command.kind == .reference else { return command.reading }
        return .of(command.body, version: .registerCommandVersion, kind: .registerCommand)
    }

    /// The value in an answer to ``RegisterQuery/value(_:)``.
    package static func value(in answer: QueryAnswer) throws(DecodingError) -> Bytes? {
        var reader = ByteReader(answer.body)
        return try reader.flag() ? try reader.prefixed() : nil
    }

    /// The changes in an answer to ``RegisterQuery/feed(after:limit:)``.
    package static func changes(in answer: QueryAnswer) throws(DecodingError) -> [RegisterChange] {
        var reader = ByteReader(answer.body)
        var changes: [RegisterChange] = []
        while !reader.isAtEnd {
            let key = try reader.raw(8)
            var row = ByteReader(try reader.prefixed())
            let register = try row.prefixed()
            let value = try row.flag() ? try row.prefixed() : nil
            changes.append(
                RegisterChange(
                    position: key.reduce(0) { $0 << 8 | UInt64($1) }, register: register,
                    value: value))
        }
        return changes
    }

    private static func key(_ position: UInt64) -> Bytes {
        (0..<8).map { UInt8(truncatingIfNeeded: position >> (56 - 8 * $0)) }
    }
}
