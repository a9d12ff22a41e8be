package import StratusModel

// Configuration, version 1: the payload of an entry of kind `configuration`
//
// | bytes | what                                          |
// | ----- | --------------------------------------------- |
// | 1     | version, 1                                    |
// | count | voters, each 4 bytes                          |
// | count | incoming voters, each 4 bytes; none: not joint |
// | count | learners, each 4 bytes                        |

extension Configuration {
    package func encoded() -> Bytes {
        var writer = ByteWriter()
        writer.write(1 as UInt8)
        self.write(into: &writer)
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        try self.init(reading: &reader)
        try reader.finish()
    }

    func write(into writer: inout ByteWriter) {
        for nodes in [self.voters, self.incoming, self.learners] {
            writer.write(count: nodes.count)
            for node in nodes { writer.write(fixed: node.raw) }
        }
    }

    init(reading reader: inout ByteReader) throws(DecodingError) {
        var lists: [[NodeID]] = []
        for _ in 0..<3 {
            var nodes: [NodeID] = []
            for _ in 0..<(try reader.count(minimumSize: 4)) {
                nodes.append(NodeID(try reader.fixed32()))
            }
            lists.append(nodes)
        }
        self.init(voters: lists[0], incoming: lists[1], learners: lists[2])
    }
}
