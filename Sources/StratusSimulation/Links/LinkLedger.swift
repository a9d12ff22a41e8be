import StratusCluster
import StratusCoding
import StratusModel

/// A ledger of the messages that processes sent on their links and of those that arrived, kept by
/// an observer that sees both ends. It checks three rules:
///
/// - An arriving message was sent on that very connection, byte for byte; those of one priority
///   arrive in order, with nothing missing before them.
/// - The queue for a peer, and the bytes it has not yet taken, stay within the limits.
/// - Vital messages leave before all others.
struct LinkLedger {
    private struct Said {
        let connection: Int
        let size: Int
        let check: UInt32
    }

    private struct Way: Hashable {
        let from: NodeID
        let life: UInt64
        let to: NodeID
        let priority: PeerMessage.Priority
    }

    /// The messages of one priority on one connection, since it was opened for messages.
    private struct Lane {
        var saidCount = 0
        var saidSize = 0
        var leftCount = 0
        var leftSize = 0
        var largest = 0
        /// The frames of the message that is leaving.
        var frameCount = 0
    }

    private struct Flow {
        var lanes = PeerMessage.Priority.allCases.map { _ in Lane() }
        var settledSize = 0
    }

    private let tuning: PeerLinks.Tuning
    private var ways: [Way: ArraySlice<Said>] = [:]
    private var flows: [Int: Flow] = [:]
    private var open: [NodeID: [NodeID: Int]] = [:]
    /// Messages that were sent in many frames.
    private(set) var longCount = 0
    private static let manyFrameCount = 16

    init(_ tuning: PeerLinks.Tuning) { self.tuning = tuning }

    // MARK: Saying

    /// A process' link to another was opened, on this connection.
    mutating func opens(_ connection: Int, from: NodeID, to: NodeID) {
        self.open[from, default: [:]][to] = connection
        self.flows[connection] = Flow()
    }

    /// A link has taken a message.
    mutating func says(
        _ bytes: Bytes, _ priority: PeerMessage.Priority, _ from: SimulatedNode, to: NodeID
    ) -> Violation? {
        guard let connection = self.open[from.id]?[to], var flow = self.flows[connection] else {
            return Violation("link open", "\(from.id) says something to \(to) on no link")
        }
        let way = Way(from: from.id, life: from.incarnation, to: to, priority: priority)
        self.ways[way, default: []].append(
            Said(connection: connection, size: bytes.count, check: CRC32C.of(bytes)))
        let lane = Int(priority.rawValue)
        flow.lanes[lane].saidCount += 1
        flow.lanes[lane].saidSize += bytes.count
        flow.lanes[lane].largest = max(flow.lanes[lane].largest, bytes.count)
        self.flows[connection] = flow
        let waiting = flow.lanes[lane].saidSize - flow.lanes[lane].leftSize
        let count = flow.lanes[lane].saidCount - flow.lanes[lane].leftCount
        let limits = self.tuning.frames
        if waiting > max(limits.queueSizeMax, flow.lanes[lane].largest)
            || count > limits.queueCountMax
        {
            return Violation(
                "link queues bounded",
                "\(from.id) keeps \(count) messages of \(waiting) bytes for \(to)")
        }
        return nil
    }

    // MARK: Leaving

    /// A link gives out what is to be sent next.
    mutating func fills(_ output: Bytes, at stream: SimulatedStream) -> Violation? {
        guard stream.side == 0, var flow = self.flows[stream.connection] else { return nil }
        let isVitalWaiting = flow.lanes[0].leftCount < flow.lanes[0].saidCount
        var position = 0
        while position + 3 <= output.count {
            let lane = Int(output[position] & 0x7F)
            let size = Int(output[position + 1]) | Int(output[position + 2]) << 8
            if position == 0, lane != 0, isVitalWaiting {
                return Violation("vital first", "\(stream.host) sends priority \(lane) before")
            }
            let isLast = output[position] & 0x80 == 0
            position += 3 + size
            flow.lanes[lane].leftSize += size
            flow.lanes[lane].frameCount += 1
            guard isLast else { continue }
            flow.lanes[lane].leftCount += 1
            if flow.lanes[lane].frameCount >= Self.manyFrameCount { self.longCount += 1 }
            flow.lanes[lane].frameCount = 0
        }
        self.flows[stream.connection] = flow
        if position != output.count
            || output.count >= self.tuning.fillSizeMax + 3 + self.tuning.frames.frameSizeMax
        {
            return Violation("fills bounded", "\(stream.host) gives out \(output.count) bytes")
        }
        let under = flow.lanes.dropFirst().reduce(0) { $0 + $1.leftSize } - flow.settledSize
        let largest = flow.lanes.dropFirst().reduce(0) { max($0, $1.largest) }
        if under > max(self.tuning.frames.windowSize, largest) {
            return Violation("link window", "\(stream.host) has \(under) bytes under way")
        }
        return nil
    }

    /// Whether something waits for the receiver to take what it has.
    func awaitsCredit(_ stream: SimulatedStream) -> Bool {
        guard stream.side == 0, let flow = self.flows[stream.connection] else { return false }
        return flow.lanes.contains { $0.leftCount < $0.saidCount }
    }

    // MARK: Hearing

    mutating func hears(
        _ bytes: Bytes, _ priority: PeerMessage.Priority, from: NodeID, by node: SimulatedNode,
        at stream: SimulatedStream?, opener: SimulatedStream?
    ) -> Violation? {
        guard let stream, let opener, stream.side == 1, opener.host == from,
            stream.host == node.id, stream.life == node.incarnation
        else {
            return Violation("link ends", "\(node.id) hears \(from) on a connection of others")
        }
        let way = Way(from: from, life: opener.life, to: node.id, priority: priority)
        let check = CRC32C.of(bytes)
        var expected = "nothing"
        while let next = self.ways[way]?.popFirst() {
            // Went with its connection.
            if next.connection < stream.connection { continue }
            guard next.connection == stream.connection else {
                return Violation(
                    "old connection", "\(node.id) hears \(from) on one that another has replaced")
            }
            if next.size == bytes.count, next.check == check { return nil }
            expected = "\(next.size) bytes"
            break
        }
        return Violation(
            "whole and in order",
            "\(node.id) hears \(bytes.count) bytes of \(from) on connection "
                + "\(stream.connection), where \(expected) of priority \(priority) was next")
    }

    mutating func settles(_ size: Int, _ connection: Int) {
        self.flows[connection]?.settledSize += size
    }

    mutating func forget(_ connection: Int) { self.flows[connection] = nil }
}
