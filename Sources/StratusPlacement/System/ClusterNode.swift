import StratusCoding
package import StratusModel

// Node, version 1: a row of the system partition
//
// | bytes  | what                                                                      |
// | ------ | ------------------------------------------------------------------------- |
// | 1      | version, 1                                                                |
// | 4      | identifier                                                                |
// | 1      | state: 1 joining, 2 active, 3 draining, 4 removed                         |
// | 1      | flag: is removed once it holds nothing                                    |
// | text   | name                                                                      |
// | text   | address                                                                   |
// | varint | weight                                                                    |
// | text   | rack                                                                      |
// | 8      | incarnation of its process, 0: never heard                                |
// | 8      | identity of its data directory, 0: never heard                            |
// | varint | feature level                                                             |
// | bytes  | fingerprint of its key, empty: formed with the cluster, never heard       |

/// A machine's place in the cluster, as consensus committed it.
package struct ClusterNode: Sendable, Equatable {
    package enum State: UInt8, Sendable {
        /// Admitted by a token, not heard of yet: it gets nothing.
        case joining = 1
        case active = 2
        /// Its replicas leave it. It serves until then.
        case draining = 3
        /// For ever: its identifier, key and data never come back.
        case removed = 4
    }
    package let id: NodeID
    package var state: State
    /// Once it holds nothing it is removed without another word.
    package var leavesWhenEmpty: Bool
    package var name: String
    /// The address at which peers reach it: `host:port`.
    package var address: String
    package var weight: UInt32
    package var rack: String
    package var incarnation: NodeIncarnation
    /// Drawn when its data directory was made. A node that comes back with another value has lost
    /// what it promised to remember, and must not vote under its old name.
    package var directory: UInt64
    package var featureLevel: UInt32
    package var key: Bytes

    package init(
        id: NodeID, state: State = .active, leavesWhenEmpty: Bool = false, name: String,
        address: String, weight: UInt32 = PlacementNode.ordinaryWeight, rack: String = "",
        incarnation: NodeIncarnation = NodeIncarnation(0), directory: UInt64 = 0,
        featureLevel: UInt32 = 1, key: Bytes = []
    ) {
        self.id = id
        self.state = state
        self.leavesWhenEmpty = leavesWhenEmpty
        self.name = name
        self.address = address
        self.weight = weight
        self.rack = rack
        self.incarnation = incarnation
        self.directory = directory
        self.featureLevel = featureLevel
        self.key = key
    }

    /// Belongs to the cluster now.
    package var isMember: Bool { self.state != .removed }

    /// The node as the planner sees it; nil if it should hold nothing.
    package var forPlacement: PlacementNode? {
        self.state == .active ? PlacementNode(self.id, weight: self.weight, rack: self.rack) : nil
    }
}

extension ClusterNode {
    func write(to writer: inout ByteWriter) {
        writer.write(1 as UInt8)
        writer.write(fixed: self.id.raw)
        writer.write(self.state.rawValue)
        writer.write(flag: self.leavesWhenEmpty)
        writer.write(text: self.name)
        writer.write(text: self.address)
        writer.write(varint: UInt64(self.weight))
        writer.write(text: self.rack)
        writer.write(fixed: self.incarnation.raw)
        writer.write(fixed: self.directory)
        writer.write(varint: UInt64(self.featureLevel))
        writer.write(prefixed: self.key)
    }

    init(from reader: inout ByteReader) throws(DecodingError) {
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        let id = NodeID(try reader.fixed32())
        guard let state = State(rawValue: try reader.byte()) else {
            throw DecodingError(.malformed, at: reader.offset - 1)
        }
        let leavesWhenEmpty = try reader.flag()
        let name = try reader.text()
        let address = try reader.text()
        let weight = try reader.number(max: PlacementNode.weightMax)
        let rack = try reader.text()
        let incarnation = NodeIncarnation(try reader.fixed64())
        let directory = try reader.fixed64()
        let featureLevel = try reader.number(max: .max)
        self.init(
            id: id, state: state, leavesWhenEmpty: leavesWhenEmpty, name: name, address: address,
            weight: weight, rack: rack, incarnation: incarnation, directory: directory,
            featureLevel: featureLevel, key: try reader.prefixed())
    }
}

extension ByteReader {
    /// A varint that fits 32 bits and stays within `max`.
    mutating func number(max: UInt32) throws(DecodingError) -> UInt32 {
        let start = self.offset
        let value = try self.varint()
        guard value <= UInt64(max) else { throw DecodingError(.malformed, at: start) }
        return UInt32(value)
    }
}
