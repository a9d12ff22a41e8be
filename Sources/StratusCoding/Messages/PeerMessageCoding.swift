package import StratusModel

// Consensus message, version 1
//
// | bytes  | what                                                                   |
// | ------ | ---------------------------------------------------------------------- |
// | 1      | version, 1                                                             |
// | 1      | kind, see below                                                        |
// | varint | term                                                                   |
// | …      | body                                                                   |
//
// | kind | message          | body                                                         |
// | ---- | ---------------- | ------------------------------------------------------------ |
// | 1    | pre-vote request | point: last                                                  |
// | 2    | pre-vote answer  | 1 granted                                                    |
// | 3    | vote request     | point: last, 1 is transfer                                   |
// | 4    | vote answer      | 1 granted                                                    |
// | 5    | append           | point: previous, varint commit, count entries, each: varint  |
// |      |                  | term, signed milliseconds, 2 count, 1 kind, prefixed payload |
// | 6    | append accepted  | varint match, varint received, varint commit                 |
// | 7    | append refused   | varint previous, point: hint                                 |
// | 8    | probe            | varint round                                                 |
// | 9    | probe answer     | varint round                                                 |
// | 10   | transfer now     |                                                              |
// | 11   | resigned         |                                                              |
// | 12   | snapshot chunk   | identity, varint sequence, 1 is last, prefixed bytes         |
// | 13   | snapshot answer  | varint index, varint next, 1 unneeded                        |
// | 14   | digest           | varint index, 8 + 8 digest                                   |
// | 15   | held ask         | nothing                                                      |
// | 16   | held             | varint index                                                 |
// | 17   | acknowledged     | point                                                        |
//
// A point is varint index, varint term. The entries of an append follow `previous` without a gap,
// so their indices are not written. An identity is point, hybrid time (signed, 2), configuration
// (without its version), 8 + 8 digest. Checksums of entries are the link's and the log's business.
//
// Heartbeat, version 1: 1 version, 8 incarnation, varint sequence, varint unsynced milliseconds,
// signed wall milliseconds, 1 declines leadership, count resigned groups (2 group, varint term).

extension ConsensusMessage {
    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 64)
        writer.write(1 as UInt8)
        writer.write(self.body.number)
        writer.write(varint: self.term.raw)
        switch self.body {
        case .preVoteRequest(let last):
            last.write(into: &writer)
        case .preVoteAnswer(let granted), .voteAnswer(let granted):
            writer.write(flag: granted)
        case .voteRequest(let last, let isTransfer):
            last.write(into: &writer)
            writer.write(flag: isTransfer)
        case .append(let previous, let entries, let commit):
            previous.write(into: &writer)
            writer.write(varint: commit.raw)
            writer.write(count: entries.count)
            for entry in entries { entry.writeFollowing(into: &writer) }
        case .appendAccepted(let match, let received, let commit):
            writer.write(varint: match.raw)
            writer.write(varint: received.raw)
            writer.write(varint: commit.raw)
        case .appendRefused(let previous, let hint):
            writer.write(varint: previous.raw)
            hint.write(into: &writer)
        case .probe(let round), .probeAnswer(let round):
            writer.write(varint: round)
        case .transferNow, .resigned, .heldAsk:
            break
        case .acknowledged(let point): point.write(into: &writer)
        case .snapshotChunk(let chunk):
            chunk.identity.write(into: &writer)
            writer.write(varint: UInt64(chunk.sequence))
            writer.write(flag: chunk.isLast)
            writer.write(prefixed: chunk.bytes)
        case .snapshotAnswer(let index, let next, let unneeded):
            writer.write(varint: index.raw)
            writer.write(varint: UInt64(next))
            writer.write(flag: unneeded)
        case .digest(let index, let digest):
            writer.write(varint: index.raw)
            writer.write(fixed: digest.high)
            writer.write(fixed: digest.low)
        case .held(let index), .snapshotUntrue(let index): writer.write(varint: index.raw)
        }
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        let kind = try reader.byte()
        let term = Term(try reader.varint())
        let body: Body
        switch kind {
        case 1: body = .preVoteRequest(last: try LogPoint(reading: &reader))
        case 2: body = .preVoteAnswer(granted: try reader.flag())
        case 3:
            body = .voteRequest(
                last: try LogPoint(reading: &reader), isTransfer: try reader.flag())
        case 4: body = .voteAnswer(granted: try reader.flag())
        case 5:
            let previous = try LogPoint(reading: &reader)
            let commit = LogIndex(try reader.varint())
            let count = try reader.count(minimumSize: 6)
            guard previous.index.raw <= UInt64.max - UInt64(count) else {
                throw DecodingError(.malformed, at: reader.offset)
            }
            var entries: [Entry] = []
            entries.reserveCapacity(count)
            var index = previous.index
            for _ in 0..<count {
                index = index.next
                entries.append(try Entry(readingAt: index, from: &reader))
            }
            body = .append(previous: previous, entries: entries, commit: commit)
        case 6:
            body = .appendAccepted(
                match: LogIndex(try reader.varint()), received: LogIndex(try reader.varint()),
                commit: LogIndex(try reader.varint()))
        case 7:
            body = .appendRefused(
                previous: LogIndex(try reader.varint()), hint: try LogPoint(reading: &reader))
        case 8: body = .probe(round: try reader.varint())
        case 9: body = .probeAnswer(round: try reader.varint())
        case 10: body = .transferNow
        case 11: body = .resigned
        case 12:
            let identity = try SnapshotIdentity(reading: &reader)
            body = .snapshotChunk(
                SnapshotChunk(
                    identity: identity, sequence: try reader.varint32(),
                    isLast: try reader.flag(), bytes: try reader.prefixed()))
        case 13:
            body = .snapshotAnswer(
                index: LogIndex(try reader.varint()), next: try reader.varint32(),
                unneeded: try reader.flag())
        case 14:
            body = .digest(
                index: LogIndex(try reader.varint()),
                StateDigest(high: try reader.fixed64(), low: try reader.fixed64()))
        case 15: body = .heldAsk
        case 16: body = .held(through: LogIndex(try reader.varint()))
        case 17: body = .acknowledged(through: try LogPoint(reading: &reader))
        case 18: body = .snapshotUntrue(index: LogIndex(try reader.varint()))
        default: throw DecodingError(.malformed, at: 1)
        }
        try reader.finish()
        self.init(term: term, body)
    }
}

extension NodeHeartbeat {
    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 48)
        writer.write(1 as UInt8)
        writer.write(fixed: self.incarnation.raw)
        writer.write(varint: self.sequence)
        writer.write(varint: UInt64(self.unsyncedMilliseconds))
        writer.write(signed: self.wallMilliseconds)
        writer.write(flag: self.declinesLeadership)
        writer.write(count: self.resigned.count)
        for resigned in self.resigned {
            writer.write(fixed: resigned.group.raw)
            writer.write(varint: resigned.term.raw)
        }
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        let incarnation = NodeIncarnation(try reader.fixed64())
        let sequence = try reader.varint()
        let unsynced = try reader.varint32()
        let wall = try reader.signed()
        let declines = try reader.flag()
        var resigned: [ResignedGroup] = []
        for _ in 0..<(try reader.count(minimumSize: 3)) {
            resigned.append(
                ResignedGroup(
                    group: GroupID(try reader.fixed16()), term: Term(try reader.varint())))
        }
        try reader.finish()
        self.init(
            incarnation: incarnation, sequence: sequence, unsyncedMilliseconds: unsynced,
            wallMilliseconds: wall, declinesLeadership: declines, resigned: resigned)
    }
}

extension ConsensusMessage.Body {
    var number: UInt8 {
        switch self {
        case .preVoteRequest: 1
        case .preVoteAnswer: 2
        case .voteRequest: 3
        case .voteAnswer: 4
        case .append: 5
        case .appendAccepted: 6
        case .appendRefused: 7
        case .probe: 8
        case .probeAnswer: 9
        case .transferNow: 10
        case .resigned: 11
        case .snapshotChunk: 12
        case .snapshotAnswer: 13
        case .digest: 14
        case .heldAsk: 15
        case .held: 16
        case .acknowledged: 17
        case .snapshotUntrue: 18
        }
    }
}

extension LogPoint {
    fileprivate func write(into writer: inout ByteWriter) {
        writer.write(varint: self.index.raw)
        writer.write(varint: self.term.raw)
    }

    fileprivate init(reading reader: inout ByteReader) throws(DecodingError) {
        self.init(index: LogIndex(try reader.varint()), term: Term(try reader.varint()))
    }
}

extension Entry {
    fileprivate func writeFollowing(into writer: inout ByteWriter) {
        writer.write(varint: self.term.raw)
        writer.write(signed: self.time.milliseconds)
        writer.write(fixed: self.time.count)
        writer.write(self.kind.rawValue)
        writer.write(prefixed: self.payload)
    }

    fileprivate init(readingAt index: LogIndex, from reader: inout ByteReader)
        throws(DecodingError)
    {
        let term = Term(try reader.varint())
        let time = HybridTime(
            milliseconds: try reader.signed(), count: try reader.fixed16())
        guard let kind = Kind(rawValue: try reader.byte()) else {
            throw DecodingError(.malformed, at: reader.offset - 1)
        }
        self.init(
            index: index, term: term, time: time, kind: kind, payload: try reader.prefixed())
    }
}

extension SnapshotIdentity {
    fileprivate func write(into writer: inout ByteWriter) {
        LogPoint(index: self.index, term: self.term).write(into: &writer)
        writer.write(signed: self.time.milliseconds)
        writer.write(fixed: self.time.count)
        self.configuration.write(into: &writer)
        writer.write(fixed: self.digest.high)
        writer.write(fixed: self.digest.low)
    }

    fileprivate init(reading reader: inout ByteReader) throws(DecodingError) {
        let point = try LogPoint(reading: &reader)
        let time = HybridTime(
            milliseconds: try reader.signed(), count: try reader.fixed16())
        let configuration = try Configuration(reading: &reader)
        self.init(
            index: point.index, term: point.term, time: time, configuration: configuration,
            digest: StateDigest(high: try reader.fixed64(), low: try reader.fixed64()))
    }
}

extension ByteReader {
    mutating func varint32() throws(DecodingError) -> UInt32 {
        let start = self.offset
        guard let value = UInt32(exactly: try self.varint()) else {
            throw DecodingError(.malformed, at: start)
        }
        return value
    }
}
