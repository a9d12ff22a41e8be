package import StratusModel

// Peer message: the payload of one or more frames of a link
//
// | kind | message   | body                                                                       |
// | ---- | --------- | -------------------------------------------------------------------------- |
// | 1    | hello     | 8 "STRATUSP", 8 + 8 cluster: high, low, 4 node, 8 incarnation, 4 receiver, |
// |      |           | 2 oldest and 2 newest protocol, 4 feature level, 8 + 8 identity of the     |
// |      |           | data directory: high, low, text name                                       |
// | 2    | welcome   | 2 protocol, 8 incarnation, 4 feature level, 8 + 8 identity as in 1          |
// | 3    | refusal   | 1 reason, text                                                             |
// | 4    | taken     | 8 bytes taken since the link was opened                                    |
// | 5    | join      | 8 "STRATUSP", text name, text address, varint weight, text rack,           |
// |      |           | varint feature level, prefixed token                                       |
// | 6    | admission | 4 node, prefixed view                                                      |
// | 7    | starts    | 8 count, varint of those remembered, the incarnations of those, 8 each     |
// | 8    | purpose   | 1: 0 ordinary, 1 bulk                                                      |
// | 9    | heartbeat | `NodeHeartbeat`                                                            |
// | 10   | consensus | 2 group, `ConsensusMessage`                                                |
// | 11   | request   | varint number, 2 group, varint epoch, varint milliseconds left, then       |
// |      |           | 1 with prefixed `Command`, 2 with 1 kind and the prefixed query, or 3 with |
// |      |           | a prefixed question for the node itself                                    |
// | 12   | response  | varint number, 1 answer, see below                                         |
// | 13   | copy      | `CopyMessage`                                                              |
//
// One byte of kind, then the body. The bodies of `NodeHeartbeat`, `ConsensusMessage` and `Command`
// begin with a version of their own. Kinds 1 to 3 never change. The protocol that both sides agreed
// on decides which other kinds there are, and their formats. This is protocol 1. A link begins with
// kind 8 in it, and then has kind 7.
//
// | answer | means           | followed by                                   |
// | ------ | --------------- | --------------------------------------------- |
// | 0      | outcome         | 1 verdict, prefixed body, prefixed detail     |
// | 1      | query answer    | prefixed body                                 |
// | 2      | not the leader  | 1 whether it is known, 4 the leader then      |
// | 3      | not executed    | varint milliseconds to wait                   |
// | 4      | outcome unknown |                                               |
// | 5      | refused         | text                                          |

extension PeerMessage {
    private static let mark = Bytes("STRATUSP".utf8)

    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 96)
        switch self {
        case .hello(let hello):
            writer.write(1 as UInt8)
            writer.write(raw: Self.mark)
            writer.write(fixed: hello.cluster.high)
            writer.write(fixed: hello.cluster.low)
            writer.write(fixed: hello.node.raw)
            writer.write(fixed: hello.incarnation.raw)
            writer.write(fixed: hello.receiver.raw)
            writer.write(fixed: hello.protocolMin)
            writer.write(fixed: hello.protocolMax)
            writer.write(fixed: hello.featureLevel)
            writer.write(fixed: hello.data.high)
            writer.write(fixed: hello.data.low)
            writer.write(text: hello.name)
        case .welcome(let welcome):
            writer.write(2 as UInt8)
            writer.write(fixed: welcome.protocolVersion)
            writer.write(fixed: welcome.incarnation.raw)
            writer.write(fixed: welcome.featureLevel)
            writer.write(fixed: welcome.data.high)
            writer.write(fixed: welcome.data.low)
        case .join(let join):
            writer.write(5 as UInt8)
            writer.write(raw: Self.mark)
            writer.write(text: join.name)
            writer.write(text: join.address)
            writer.write(varint: UInt64(join.weight))
            writer.write(text: join.rack)
            writer.write(varint: UInt64(join.featureLevel))
            writer.write(prefixed: join.token)
        case .admission(let admission):
            writer.write(6 as UInt8)
            writer.write(fixed: admission.node.raw)
            writer.write(prefixed: admission.view)
        case .refusal(let refusal):
            writer.write(3 as UInt8)
            writer.write(refusal.reason.rawValue)
            writer.write(text: refusal.text)
        case .starts(let starts):
            writer.write(7 as UInt8)
            writer.write(fixed: starts.count)
            writer.write(count: starts.incarnations.count)
            for incarnation in starts.incarnations { writer.write(fixed: incarnation.raw) }
        case .taken(let count):
            writer.write(4 as UInt8)
            writer.write(fixed: count)
        case .heartbeat(let heartbeat):
            writer.write(9 as UInt8)
            writer.write(raw: heartbeat.encoded())
        case .consensus(let group, let message):
            writer.write(10 as UInt8)
            writer.write(fixed: group.raw)
            writer.write(raw: message.encoded())
        case .request(let request):
            writer.write(11 as UInt8)
            request.write(into: &writer)
        case .response(let response):
            writer.write(12 as UInt8)
            response.write(into: &writer)
        case .purpose(let purpose):
            writer.write(8 as UInt8)
            writer.write(purpose.rawValue)
        case .copy(let message):
            let bytes = message.encoded()
            writer = ByteWriter(reserving: bytes.count + 1)
            writer.write(13 as UInt8)
            writer.write(raw: bytes)
        }
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        switch try reader.byte() {
        case 1:
            guard try reader.raw(8) == Self.mark else { throw DecodingError(.malformed, at: 1) }
            let cluster = ClusterID(high: try reader.fixed64(), low: try reader.fixed64())
            let node = NodeID(try reader.fixed32())
            let incarnation = NodeIncarnation(try reader.fixed64())
            let receiver = NodeID(try reader.fixed32())
            let (least, most) = (try reader.fixed16(), try reader.fixed16())
            let level = try reader.fixed32()
            let data = try Self.data(reading: &reader)
            self = .hello(
                PeerHello(
                    cluster: cluster, node: node, name: try reader.text(),
                    incarnation: incarnation, receiver: receiver, protocolMin: least,
                    protocolMax: most, featureLevel: level, data: data))
        case 2:
            self = .welcome(
                PeerWelcome(
                    protocolVersion: try reader.fixed16(),
                    incarnation: NodeIncarnation(try reader.fixed64()),
                    featureLevel: try reader.fixed32(), data: try Self.data(reading: &reader)))
        case 3:
            guard let reason = PeerRefusal.Reason(rawValue: try reader.byte()) else {
                throw DecodingError(.malformed, at: 1)
            }
            self = .refusal(PeerRefusal(reason, try reader.text()))
        case 4: self = .taken(try reader.fixed64())
        case 5:
            guard try reader.raw(8) == Self.mark else { throw DecodingError(.malformed, at: 1) }
            self = .join(
                PeerJoin(
                    name: try reader.text(), address: try reader.text(),
                    weight: try reader.varint32(), rack: try reader.text(),
                    featureLevel: try reader.varint32(), token: try reader.prefixed()))
        case 6:
            self = .admission(
                PeerAdmission(
                    node: NodeID(try reader.fixed32()), view: try reader.prefixed()))
        case 7: self = .starts(try Self.starts(reading: &reader))
        case 8:
            guard let purpose = PeerPurpose(rawValue: try reader.byte()) else {
                throw DecodingError(.malformed, at: 1)
            }
            self = .purpose(purpose)
        case 9: self = .heartbeat(try NodeHeartbeat(decoding: reader.raw(reader.remaining)))
        case 10:
            let group = GroupID(try reader.fixed16())
            self = .consensus(
                group, try ConsensusMessage(decoding: reader.raw(reader.remaining)))
        case 11: self = .request(try PeerRequest(reading: &reader))
        case 12: self = .response(try PeerResponse(reading: &reader))
        case 13: self = .copy(try CopyMessage(decoding: reader.raw(reader.remaining)))
        default: throw DecodingError(.malformed, at: 0)
        }
        try reader.finish()
    }

    private static func starts(reading reader: inout ByteReader) throws(DecodingError)
        -> NodeStarts
    {
        let count = try reader.fixed64()
        var incarnations: [NodeIncarnation] = []
        for _ in 0..<(try reader.count(minimumSize: 8)) {
            incarnations.append(NodeIncarnation(try reader.fixed64()))
        }
        guard let starts = NodeStarts(count: count, incarnations: incarnations) else {
            throw DecodingError(.malformed, at: 1)
        }
        return starts
    }

    private static func data(reading reader: inout ByteReader) throws(DecodingError)
        -> RequestIdentity
    {
        RequestIdentity(high: try reader.fixed64(), low: try reader.fixed64())
    }
}

extension PeerRequest {
    fileprivate func write(into writer: inout ByteWriter) {
        writer.write(varint: self.number)
        writer.write(fixed: self.group.raw)
        writer.write(varint: self.epoch)
        writer.write(varint: UInt64(self.remainingMilliseconds))
        switch self.body {
        case .command(let command):
            writer.write(1 as UInt8)
            writer.write(prefixed: command.encoded())
        case .query(let query):
            writer.write(2 as UInt8)
            writer.write(query.kind.rawValue)
            writer.write(prefixed: query.body)
        case .node(let question):
            writer.write(3 as UInt8)
            writer.write(prefixed: question)
        }
    }

    fileprivate init(reading reader: inout ByteReader) throws(DecodingError) {
        let number = try reader.varint()
        let group = GroupID(try reader.fixed16())
        let epoch = try reader.varint()
        let remaining = try reader.varint32()
        let body: Body
        switch try reader.byte() {
        case 1: body = .command(try Command(decoding: reader.prefixed()))
        case 2:
            guard let kind = Command.Kind(rawValue: try reader.byte()) else {
                throw DecodingError(.malformed, at: reader.offset - 1)
            }
            body = .query(Query(kind: kind, body: try reader.prefixed()))
        case 3: body = .node(try reader.prefixed())
        default: throw DecodingError(.malformed, at: reader.offset - 1)
        }
        self.init(
            number: number, group: group, epoch: epoch, remainingMilliseconds: remaining,
            body: body)
    }
}

extension PeerResponse {
    fileprivate func write(into writer: inout ByteWriter) {
        writer.write(varint: self.number)
        switch self.answer {
        case .outcome(let outcome):
            writer.write(0 as UInt8)
            writer.write(outcome.verdict.rawValue)
            writer.write(prefixed: outcome.body)
            writer.write(prefixed: outcome.detail)
        case .answer(let answer):
            writer.write(1 as UInt8)
            writer.write(prefixed: answer.body)
        case .notLeader(let leader):
            writer.write(2 as UInt8)
            writer.write(flag: leader != nil)
            if let leader { writer.write(fixed: leader.raw) }
        case .notExecuted(let milliseconds):
            writer.write(3 as UInt8)
            writer.write(varint: UInt64(milliseconds))
        case .outcomeUnknown: writer.write(4 as UInt8)
        case .refused(let text):
            writer.write(5 as UInt8)
            writer.write(text: text)
        }
    }

    fileprivate init(reading reader: inout ByteReader) throws(DecodingError) {
        let number = try reader.varint()
        let answer: Answer
        switch try reader.byte() {
        case 0:
            guard let verdict = Outcome.Verdict(rawValue: try reader.byte()) else {
                throw DecodingError(.malformed, at: reader.offset - 1)
            }
            answer = .outcome(
                Outcome(verdict, body: try reader.prefixed(), detail: try reader.prefixed()))
        case 1: answer = .answer(QueryAnswer(body: try reader.prefixed()))
        case 2: answer = .notLeader(try reader.flag() ? NodeID(try reader.fixed32()) : nil)
        case 3: answer = .notExecuted(retryAfterMilliseconds: try reader.varint32())
        case 4: answer = .outcomeUnknown
        case 5: answer = .refused(try reader.text())
        default: throw DecodingError(.malformed, at: reader.offset - 1)
        }
        self.init(number: number, answer: answer)
    }
}
