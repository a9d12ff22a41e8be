import StratusCoding
import StratusModel
import StratusRows

// Keys of Table.system, version 1
//
// | bytes | key                                            | row                              |
// | ----- | ---------------------------------------------- | -------------------------------- |
// | 1     | 1                                              | settings                         |
// | 1 + 4 | 2, node big-endian                             | node                             |
// | 1 + 2 | 3, group big-endian                            | replicas: 1 version, count, 4 each |
// | 1 + 2 | 4, group big-endian                            | move                             |
// | 1 + 32 | 5, hash                                       | join token                       |
// | 1 + 8 | 6, sequence big-endian                         | notice                           |
// | 1 + 16 + 4 | 7, cluster, node big-endian               | 1: the node's recovery was taken |
// | 1 + 32 | 8, fingerprint                                | 1: the certificate is withdrawn  |

/// The keys of the system partition's rows.
enum SystemRows {
    static let settings: Bytes = [1]

    static func node(_ node: NodeID) -> Bytes {
        [2] + stride(from: 24, through: 0, by: -8).map { UInt8(node.raw >> UInt32($0) & 0xFF) }
    }

    static func replicas(_ group: GroupID) -> Bytes { [3] + self.bytes(group) }
    static func move(_ group: GroupID) -> Bytes { [4] + self.bytes(group) }
    static func token(_ hash: Bytes) -> Bytes { [5] + hash }

    static func notice(_ sequence: UInt64) -> Bytes {
        var key: Bytes = [6]
        OrderedKey.append(bits: sequence, to: &key)
        return key
    }

    static func recovery(_ recovery: ClusterRecovery) -> Bytes {
        var key: Bytes = [7]
        OrderedKey.append(bits: recovery.cluster.high, to: &key)
        OrderedKey.append(bits: recovery.cluster.low, to: &key)
        return key + Self.node(recovery.node).dropFirst()
    }

    static func withdrawn(_ fingerprint: Bytes) -> Bytes { [8] + fingerprint }

    private static func bytes(_ group: GroupID) -> Bytes {
        [UInt8(group.raw >> 8), UInt8(group.raw & 0xFF)]
    }

    static func encoded(replicas: [NodeID]) -> Bytes {
        var writer = ByteWriter(reserving: 16)
        writer.write(1 as UInt8)
        writer.write(count: replicas.count)
        for node in replicas { writer.write(fixed: node.raw) }
        return writer.bytes
    }

    static func replicas(decoding row: Bytes) throws(DecodingError) -> [NodeID] {
        var reader = ByteReader(row)
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        var replicas: [NodeID] = []
        for _ in 0..<(try reader.count(minimumSize: 4)) {
            replicas.append(NodeID(try reader.fixed32()))
        }
        try reader.finish()
        return replicas
    }

    /// The view that the rows hold; nil before the cluster is formed.
    static func view(_ rows: RowView) throws(StoreError) -> ClusterView? {
        guard let row = try rows.row(.system, Self.settings) else { return nil }
        let settings = try Self.decoding(row, ClusterSettings.init(from:))
        var view = ClusterView(
            settings: settings, nodes: [], systemReplicas: [],
            table: PlacementTable(partitionCount: settings.partitionCount), moves: [])
        view.table.epoch = settings.epoch
        for (_, row) in try rows.all(2) {
            view.nodes.append(try Self.decoding(row, ClusterNode.init(from:)))
        }
        for (key, row) in try rows.all(3) {
            let group = try Self.group(key, settings)
            do throws(DecodingError) {
                view.setReplicas(try Self.replicas(decoding: row), of: group)
            } catch { throw StoreError(.unreadable, "replicas of \(group): \(error)") }
        }
        for (_, row) in try rows.all(4) {
            view.moves.append(try Self.decoding(row, ReplicaMove.init(from:)))
        }
        for (key, _) in try rows.all(8) { view.withdrawn.append(Bytes(key.dropFirst())) }
        return view
    }

    private static func group(_ key: Bytes, _ settings: ClusterSettings) throws(StoreError)
        -> GroupID
    {
        guard key.count == 3 else { throw StoreError(.corrupt, "a key of \(key.count) bytes") }
        let group = GroupID(UInt16(key[1]) << 8 | UInt16(key[2]))
        guard Int(group.raw) <= settings.partitionCount else {
            throw StoreError(.corrupt, "\(group) of \(settings.partitionCount) partitions")
        }
        return group
    }

    static func decoding<Value>(
        _ row: Bytes, _ read: (inout ByteReader) throws(DecodingError) -> Value
    ) throws(StoreError) -> Value {
        do throws(DecodingError) {
            var reader = ByteReader(row)
            let value = try read(&reader)
            try reader.finish()
            return value
        } catch { throw StoreError(.unreadable, "a row of the system partition: \(error)") }
    }
}

extension RowView {
    /// Every row whose key begins with `first`.
    func all(_ first: UInt8) throws(StoreError) -> [(key: Bytes, row: Bytes)] {
        try self.rows(from: [first], to: [first + 1], limit: .max)
    }

    func rows(from start: Bytes, to end: Bytes, limit: Int) throws(StoreError)
        -> [(key: Bytes, row: Bytes)]
    {
        var found: [(key: Bytes, row: Bytes)] = []
        guard limit > 0 else { return found }
        try unsafe self.scan(
            .system, from: start.span.bytes, to: end.span.bytes, descending: false
        ) { key, row in
            found.append((Bytes(copying: key), Bytes(copying: row)))
            return found.count < limit ? .next : .stop
        }
        return found
    }
}

extension Rows {
    func put(_ key: Bytes, _ row: Bytes) throws(StoreError) {
        try unsafe self.put(.system, key.span.bytes, row.span.bytes)
    }

    func remove(_ key: Bytes) throws(StoreError) {
        try unsafe self.remove(.system, key.span.bytes)
    }
}
