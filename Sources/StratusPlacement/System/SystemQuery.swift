package import StratusCoding
package import StratusModel

// System query, version 1: the body of a `Query` of kind `.system`
//
// | bytes  | what                                                                    |
// | ------ | ----------------------------------------------------------------------- |
// | 1      | version, 1                                                              |
// | 1      | 1 view; 2 notices: varint after, varint limit; 3 tokens                 |
//
// Its answer, version 1: the same two bytes, then
//
// | bytes  | what                                                                    |
// | ------ | ----------------------------------------------------------------------- |
// | …      | view: flag formed; the view, prefixed                                   |
// | …      | notices: varint first kept, varint next, count of notices, each as its row |
// | …      | tokens: count of tokens, each bytes hash and its row                    |

/// A read of the system partition.
package enum SystemQuery: Sendable, Equatable {
    case view
    /// The oldest first, those with a sequence above `after`.
    case notices(after: UInt64, limit: Int)
    case tokens

    package static let noticeCountMax = 256
}

package enum SystemAnswer: Sendable, Equatable {
    /// Nil before the cluster is formed.
    case view(ClusterView?)
    case notices(NoticePage)
    case tokens([(hash: Bytes, token: JoinToken)])

    package static func == (one: Self, other: Self) -> Bool {
        switch (one, other) {
        case (.view(let left), .view(let right)): left == right
        case (.notices(let left), .notices(let right)): left == right
        case (.tokens(let left), .tokens(let right)):
            left.count == right.count
                && zip(left, right).allSatisfy { $0.hash == $1.hash && $0.token == $1.token }
        case (.view, _), (.notices, _), (.tokens, _): false
        }
    }
}

/// A piece of the feed.
package struct NoticePage: Sendable, Equatable {
    /// Nothing older is kept. A reader whose last notice was before `first - 1` has missed some and
    /// reads everything anew.
    package var first: UInt64
    /// The sequence the next notice will get.
    package var next: UInt64
    package var notices: [Notice]
}

extension SystemQuery: Askable {
    package typealias Refusal = String
    package static var family: Command.Kind { .system }

    package func encoded(as principal: Principal) -> Bytes { self.encoded() }

    package static func answer(decoding body: Bytes) throws -> SystemAnswer {
        try SystemAnswer(decoding: body)
    }
}

extension SystemQuery {
    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 16)
        writer.write(1 as UInt8)
        switch self {
        case .view: writer.write(1 as UInt8)
        case .notices(let after, let limit):
            writer.write(2 as UInt8)
            writer.write(varint: after)
            writer.write(count: max(0, limit))
        case .tokens: writer.write(3 as UInt8)
        }
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        switch try reader.byte() {
        case 1: self = .view
        case 2:
            self = .notices(
                after: try reader.varint(), limit: Int(try reader.number(max: .max)))
        case 3: self = .tokens
        default: throw DecodingError(.malformed, at: 1)
        }
        try reader.finish()
    }
}

extension SystemAnswer {
    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 4_096)
        writer.write(1 as UInt8)
        switch self {
        case .view(let view):
            writer.write(1 as UInt8)
            writer.write(flag: view != nil)
            if let view { writer.write(prefixed: view.encoded()) }
        case .notices(let page):
            writer.write(2 as UInt8)
            writer.write(varint: page.first)
            writer.write(varint: page.next)
            writer.write(count: page.notices.count)
            for notice in page.notices { notice.write(to: &writer) }
        case .tokens(let tokens):
            writer.write(3 as UInt8)
            writer.write(count: tokens.count)
            for (hash, token) in tokens {
                writer.write(prefixed: hash)
                token.write(to: &writer)
            }
        }
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        switch try reader.byte() {
        case 1:
            self = .view(
                try reader.flag() ? try ClusterView(decoding: try reader.prefixed()) : nil)
        case 2:
            var page = NoticePage(
                first: try reader.varint(), next: try reader.varint(), notices: [])
            for _ in 0..<(try reader.count(minimumSize: 12)) {
                page.notices.append(try Notice(from: &reader))
            }
            self = .notices(page)
        case 3:
            var tokens: [(hash: Bytes, token: JoinToken)] = []
            for _ in 0..<(try reader.count(minimumSize: 11)) {
                let hash = try reader.prefixed()
                tokens.append((hash, try JoinToken(from: &reader)))
            }
            self = .tokens(tokens)
        default: throw DecodingError(.malformed, at: 1)
        }
        try reader.finish()
    }
}
