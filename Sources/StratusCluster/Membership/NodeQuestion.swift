package import StratusCoding
package import StratusModel
package import StratusPlacement

// A question for a node, version 1: the body of a `PeerRequest` of kind 3
//
// | bytes | what                                                                              |
// | ----- | --------------------------------------------------------------------------------- |
// | 1     | version, 1                                                                        |
// | 1     | kind, then                                                                        |
// |       | 1 view: varint revision known                                                     |
// |       | 2 observe: count of groups to wake, 2 each                                        |
// |       | 3 configure: 2 group, varint index, count of voters, 4 each, count of learners,   |
// |       |   4 each                                                                          |
// |       | 4 transfer: 2 group, 4 node                                                       |
// |       | 5 changed: varint revision                                                        |
// |       | 6 health                                                                          |
// |       | 7 offer: prefixed view                                                            |
// |       | 8 attend: 4 node, flag whole, count of databases, 8 each                          |
// |       | 9 stirred: count of databases, 8 each                                             |
// |       | 10 support                                                                        |
// |       | 11 remains                                                                        |
//
// Its answer, version 1
//
// | bytes | what                                                                              |
// | ----- | --------------------------------------------------------------------------------- |
// | 1     | version, 1                                                                        |
// | 1     | kind, then                                                                        |
// |       | 1 view: varint revision, flag newer, then the view, prefixed                      |
// |       | 2 observed: count of groups, each as `GroupObservation`                           |
// |       | 3 done: flag                                                                      |
// |       | 4 health: text version, 8 wall milliseconds, 8 free bytes, 8 bytes of the disk,   |
// |       |   8 end of the certificate, count of complaints, each two texts, count of groups led, |
// |       |   varint revision, 8 resident bytes, 8 requests in flight                         |
// |       | 5 support: count of files, each a text name and prefixed bytes                    |
// |       | 6 remains: see `NodeRemains.swift`                                                |
// | …     | observation: 2 group, 4 leader, prefixed configuration, varint index, flag        |
// |       |   committed, count of nodes caught up, 4 each                                      |

/// A question that one node asks another for the cluster.
package enum NodeQuestion: Sendable, Equatable {
    /// The view, if it is newer than `revision`.
    case view(newerThan: UInt64)
    /// Asks for observations of the groups led there. Opens `waking` first, so that they get a
    /// leader.
    case observe(waking: [GroupID])
    /// To the leader of a group: change its configuration, if the latest still stands at `index`.
    case configure(GroupID, at: LogIndex, voters: [NodeID], learners: [NodeID])
    case transfer(GroupID, to: NodeID)
    /// There is a view of this revision.
    case changed(revision: UInt64)
    case health
    /// A view for a node that it removes: nobody will answer its questions any more.
    case offer(ClusterView)
    /// Polls at `node` wait for changes of these databases; if `isWhole`, of no others. See
    /// ``Attendance``.
    case attend(node: NodeID, databases: [UInt64], isWhole: Bool)
    /// These databases have changed.
    case stirred([UInt64])
    /// What the node says of itself to whoever looks into a problem.
    case support
    /// What the node has still to do so that nothing of what was erased is left on its disk.
    case remains
}

package enum NodeReply: Sendable, Equatable {
    case view(revision: UInt64, ClusterView?)
    case observed([GroupObservation])
    case done(Bool)
    case health(NodeHealth)
    case support([SupportFile])
    case remains(NodeRemains)
}

/// One part of what a node says of itself to whoever looks into a problem: its status, its metrics,
/// its last log lines.
package struct SupportFile: Sendable, Equatable {
    /// `status.json`.
    package var name: String
    package var contents: Bytes

    package init(name: String, contents: Bytes) {
        self.name = name
        self.contents = contents
    }
}

/// A node's report about itself, for diagnosis.
package struct NodeHealth: Sendable, Equatable {
    package struct Complaint: Sendable, Equatable {
        package var component: String
        package var reason: String
        package init(component: String, reason: String) {
            self.component = component
            self.reason = reason
        }
    }
    package var version = ""
    package var wallMilliseconds: Int64 = 0
    /// The free bytes of the disk that holds the data.
    package var freeBytes: UInt64 = 0
    package var diskBytes: UInt64 = 0
    /// When the certificate among peers ends, in seconds since 1970; 0 where there is none.
    package var certificateEnds: Int64 = 0
    package var complaints: [Complaint] = []
    package var ledCount = 0
    package var revision: UInt64 = 0
    package var residentBytes: UInt64 = 0
    package var requestsInFlight: UInt64 = 0

    package init() {}
}

extension NodeQuestion {
    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 64)
        writer.write(1 as UInt8)
        switch self {
        case .view(let revision):
            writer.write(1 as UInt8)
            writer.write(varint: revision)
        case .observe(let groups):
            writer.write(2 as UInt8)
            writer.write(count: groups.count)
            for group in groups { writer.write(fixed: group.raw) }
        case .configure(let group, let index, let voters, let learners):
            writer.write(3 as UInt8)
            writer.write(fixed: group.raw)
            writer.write(varint: index.raw)
            writer.write(nodes: voters)
            writer.write(nodes: learners)
        case .transfer(let group, let node):
            writer.write(4 as UInt8)
            writer.write(fixed: group.raw)
            writer.write(fixed: node.raw)
        case .changed(let revision):
            writer.write(5 as UInt8)
            writer.write(varint: revision)
        case .health: writer.write(6 as UInt8)
        case .offer(let view):
            writer.write(7 as UInt8)
            writer.write(prefixed: view.encoded())
        case .attend(let node, let databases, let isWhole):
            writer.write(8 as UInt8)
            writer.write(fixed: node.raw)
            writer.write(flag: isWhole)
            writer.write(names: databases)
        case .stirred(let databases):
            writer.write(9 as UInt8)
            writer.write(names: databases)
        case .support: writer.write(10 as UInt8)
        case .remains: writer.write(11 as UInt8)
        }
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        switch try reader.byte() {
        case 1: self = .view(newerThan: try reader.varint())
        case 2:
            var groups: [GroupID] = []
            for _ in 0..<(try reader.count(minimumSize: 2)) {
                groups.append(GroupID(try reader.fixed16()))
            }
            self = .observe(waking: groups)
        case 3:
            let group = GroupID(try reader.fixed16())
            let index = LogIndex(try reader.varint())
            let voters = try reader.nodes()
            self = .configure(group, at: index, voters: voters, learners: try reader.nodes())
        case 4:
            let group = GroupID(try reader.fixed16())
            self = .transfer(group, to: NodeID(try reader.fixed32()))
        case 5: self = .changed(revision: try reader.varint())
        case 6: self = .health
        case 7: self = .offer(try ClusterView(decoding: try reader.prefixed()))
        case 8:
            let node = NodeID(try reader.fixed32())
            let isWhole = try reader.flag()
            self = .attend(node: node, databases: try reader.names(), isWhole: isWhole)
        case 9: self = .stirred(try reader.names())
        case 10: self = .support
        case 11: self = .remains
        default: throw DecodingError(.malformed, at: 1)
        }
        try reader.finish()
    }
}

extension ByteWriter {
    fileprivate mutating func write(names: [UInt64]) {
        self.write(count: names.count)
        for name in names { self.write(fixed: name) }
    }
}

extension ByteReader {
    fileprivate mutating func names() throws(DecodingError) -> [UInt64] {
        var names: [UInt64] = []
        for _ in 0..<(try self.count(minimumSize: 8)) { names.append(try self.fixed64()) }
        return names
    }
}

extension NodeReply {
    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 1_024)
        writer.write(1 as UInt8)
        switch self {
        case .view(let revision, let view):
            writer.write(1 as UInt8)
            writer.write(varint: revision)
            writer.write(flag: view != nil)
            if let view { writer.write(prefixed: view.encoded()) }
        case .observed(let groups):
            writer.write(2 as UInt8)
            writer.write(count: groups.count)
            for group in groups { group.write(to: &writer) }
        case .done(let isDone):
            writer.write(3 as UInt8)
            writer.write(flag: isDone)
        case .health(let health):
            writer.write(4 as UInt8)
            health.write(to: &writer)
        case .support(let files):
            writer.write(5 as UInt8)
            writer.write(count: files.count)
            for file in files {
                writer.write(text: file.name)
                writer.write(prefixed: file.contents)
            }
        case .remains(let remains):
            writer.write(6 as UInt8)
            remains.write(to: &writer)
        }
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        switch try reader.byte() {
        case 1:
            let revision = try reader.varint()
            self = .view(
                revision: revision,
                try reader.flag() ? try ClusterView(decoding: try reader.prefixed()) : nil)
        case 2:
            var groups: [GroupObservation] = []
            for _ in 0..<(try reader.count(minimumSize: 10)) {
                groups.append(try GroupObservation(from: &reader))
            }
            self = .observed(groups)
        case 3: self = .done(try reader.flag())
        case 4: self = .health(try NodeHealth(from: &reader))
        case 5:
            var files: [SupportFile] = []
            for _ in 0..<(try reader.count(minimumSize: 2)) {
                let name = try reader.text()
                files.append(SupportFile(name: name, contents: Bytes(try reader.prefixed())))
            }
            self = .support(files)
        case 6: self = .remains(try NodeRemains(from: &reader))
        default: throw DecodingError(.malformed, at: 1)
        }
        try reader.finish()
    }
}

extension NodeHealth {
    fileprivate func write(to writer: inout ByteWriter) {
        writer.write(text: self.version)
        writer.write(fixed: UInt64(bitPattern: self.wallMilliseconds))
        writer.write(fixed: self.freeBytes)
        writer.write(fixed: self.diskBytes)
        writer.write(fixed: UInt64(bitPattern: self.certificateEnds))
        writer.write(count: self.complaints.count)
        for complaint in self.complaints {
            writer.write(text: complaint.component)
            writer.write(text: complaint.reason)
        }
        writer.write(count: self.ledCount)
        writer.write(varint: self.revision)
        writer.write(fixed: self.residentBytes)
        writer.write(fixed: self.requestsInFlight)
    }

    fileprivate init(from reader: inout ByteReader) throws(DecodingError) {
        self.init()
        self.version = try reader.text()
        self.wallMilliseconds = Int64(bitPattern: try reader.fixed64())
        self.freeBytes = try reader.fixed64()
        self.diskBytes = try reader.fixed64()
        self.certificateEnds = Int64(bitPattern: try reader.fixed64())
        for _ in 0..<(try reader.count(minimumSize: 2)) {
            let component = try reader.text()
            self.complaints.append(Complaint(component: component, reason: try reader.text()))
        }
        self.ledCount = Int(clamping: try reader.varint())
        self.revision = try reader.varint()
        self.residentBytes = try reader.fixed64()
        self.requestsInFlight = try reader.fixed64()
    }
}

extension GroupObservation {
    fileprivate func write(to writer: inout ByteWriter) {
        writer.write(fixed: self.group.raw)
        writer.write(fixed: self.leader.raw)
        writer.write(prefixed: self.configuration.encoded())
        writer.write(varint: self.configurationIndex.raw)
        writer.write(flag: self.isCommitted)
        writer.write(nodes: self.caughtUp)
        writer.write(flag: self.isTroubled)
    }

    fileprivate init(from reader: inout ByteReader) throws(DecodingError) {
        let group = GroupID(try reader.fixed16())
        let leader = NodeID(try reader.fixed32())
        let configuration = try Configuration(decoding: try reader.prefixed())
        let index = LogIndex(try reader.varint())
        let isCommitted = try reader.flag()
        self.init(
            group: group, leader: leader, configuration: configuration,
            configurationIndex: index, isCommitted: isCommitted, caughtUp: try reader.nodes(),
            isTroubled: try reader.flag())
    }
}

extension ByteWriter {
    fileprivate mutating func write(nodes: [NodeID]) {
        self.write(count: nodes.count)
        for node in nodes { self.write(fixed: node.raw) }
    }
}

extension ByteReader {
    fileprivate mutating func nodes() throws(DecodingError) -> [NodeID] {
        var nodes: [NodeID] = []
        for _ in 0..<(try self.count(minimumSize: 4)) {
            nodes.append(NodeID(try self.fixed32()))
        }
        return nodes
    }
}
