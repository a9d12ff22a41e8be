package import StratusModel

// Frame of a peer link, protocol 1
//
// | bytes | what                                                                          |
// | ----- | ----------------------------------------------------------------------------- |
// | 1     | low seven bits: priority, 0 to 3; high bit: the message goes on in the next   |
// |       | frame of the same priority                                                    |
// | 2     | length of the payload, 1 to 65,532                                            |
// | …     | payload: a piece of one message                                               |
//
// Messages of one priority come one after the other; those of different priorities interleave frame
// by frame. There is no checksum: TLS authenticates every byte.

/// The frames of one direction of a link: messages that wait to be sent, the most urgent first.
///
/// Promises:
/// - At most the bytes of one ``fill(_:sizeMax:)`` stand between a vital message and the wire.
/// - Only vital messages are begun while more than `windowSize` bytes are not yet taken by the
///   receiver. A message larger than the window goes when nothing else is under way.
/// - The queue is bounded: beyond its limit ``add(_:_:)`` refuses, and the caller knows that
///   nothing was sent.
package struct PeerFrameQueue: Sendable {
    package struct Limits: Sendable, Equatable {
        /// Payload of one frame.
        package var frameSizeMax = 65_532
        /// One message, whole.
        package var messageSizeMax = 64 << 20
        /// Under way and not yet taken.
        package var windowSize = 16 << 20
        /// Waiting for their turn, for each priority.
        package var queueSizeMax = 64 << 20
        package var queueCountMax = 16_384
        package init() {}
    }

    private struct Lane: Sendable {
        var messages: [Bytes] = []
        /// Those before it are sent and wait to be removed.
        var head = 0
        /// The bytes of the first message that are already sent.
        var sent = 0
        var size = 0

        var isEmpty: Bool { self.head == self.messages.count }
        var count: Int { self.messages.count - self.head }

        mutating func removeFirst() {
            self.size -= self.messages[self.head].count
            self.messages[self.head] = []
            self.head += 1
            self.sent = 0
            if self.head == self.messages.count || self.head >= 256 {
                self.messages.removeFirst(self.head)
                self.head = 0
            }
        }
    }

    package let limits: Limits
    private var lanes: [Lane]
    /// Bytes of messages begun since the link was opened, vital ones not counted.
    package private(set) var begun: UInt64 = 0
    package private(set) var taken: UInt64 = 0

    package init(limits: Limits = Limits()) {
        self.limits = limits
        self.lanes = PeerMessage.Priority.allCases.map { _ in Lane() }
    }

    /// - Returns: false when it was not taken, and will not be sent.
    package mutating func add(_ message: Bytes, _ priority: PeerMessage.Priority) -> Bool {
        precondition(!message.isEmpty, "a message without a kind")
        let lane = Int(priority.rawValue)
        guard message.count <= self.limits.messageSizeMax,
            self.lanes[lane].count < self.limits.queueCountMax,
            self.lanes[lane].isEmpty
                || self.lanes[lane].size + message.count <= self.limits.queueSizeMax
        else { return false }
        self.lanes[lane].messages.append(message)
        self.lanes[lane].size += message.count
        return true
    }

    /// Whether ``fill(_:sizeMax:)`` would add anything now.
    package var canSend: Bool {
        self.lanes.indices.contains { !self.lanes[$0].isEmpty && self.mayBegin($0) }
    }

    package var waitingSize: Int { self.lanes.reduce(0) { $0 + $1.size } }

    /// The receiver has taken so many bytes in all. False when that cannot be.
    package mutating func noteTaken(_ count: UInt64) -> Bool {
        guard count >= self.taken, count <= self.begun else { return false }
        self.taken = count
        return true
    }

    /// Appends frames, no more than one past `sizeMax` bytes.
    package mutating func fill(_ output: inout Bytes, sizeMax: Int) {
        while output.count < sizeMax, let lane = self.next { self.appendFrame(of: lane, &output) }
    }

    /// Forgets messages that were begun and not finished, for a new connection: the receiver starts
    /// afresh, and their senders send again. Messages not yet begun stay.
    package mutating func restart() {
        for lane in self.lanes.indices where self.lanes[lane].sent > 0 {
            self.lanes[lane].removeFirst()
        }
        self.begun = 0
        self.taken = 0
    }

    private var next: Int? {
        self.lanes.indices.first { !self.lanes[$0].isEmpty && self.mayBegin($0) }
    }

    private func mayBegin(_ lane: Int) -> Bool {
        if lane == 0 || self.lanes[lane].sent > 0 { return true }
        let underWay = self.begun - self.taken
        let size = self.lanes[lane].messages[self.lanes[lane].head].count
        return underWay == 0 || underWay + UInt64(size) <= UInt64(self.limits.windowSize)
    }

    private mutating func appendFrame(of lane: Int, _ output: inout Bytes) {
        let message = self.lanes[lane].messages[self.lanes[lane].head]
        let sent = self.lanes[lane].sent
        if sent == 0, lane > 0 { self.begun += UInt64(message.count) }
        let size = min(self.limits.frameSizeMax, message.count - sent)
        let goesOn = sent + size < message.count
        output.append(UInt8(lane) | (goesOn ? 0x80 : 0))
        output.append(UInt8(truncatingIfNeeded: size))
        output.append(UInt8(truncatingIfNeeded: size >> 8))
        output.append(contentsOf: message[sent..<(sent + size)])
        if goesOn { self.lanes[lane].sent += size } else { self.lanes[lane].removeFirst() }
    }
}

/// Puts the messages of a link together again from whatever pieces the network delivers.
///
/// Holds at most one unfinished message for each priority, none larger than the limit.
package struct PeerFrameReader: Sendable {
    package struct Message: Sendable, Equatable {
        package var priority: PeerMessage.Priority
        package var bytes: Bytes
    }

    package enum Violation: Error, Sendable, Equatable {
        case unknownPriority(UInt8)
        case emptyFrame
        case messageTooLarge
    }

    private let messageSizeMax: Int
    private var header: (UInt8, UInt8, UInt8) = (0, 0, 0)
    private var headerCount = 0
    /// Payload bytes of the frame in progress that are still to come.
    private var missing = 0
    private var partial: [Bytes]

    package init(limits: PeerFrameQueue.Limits = PeerFrameQueue.Limits()) {
        self.messageSizeMax = limits.messageSizeMax
        self.partial = PeerMessage.Priority.allCases.map { _ in [] }
    }

    /// After a violation the link is beyond repair: close it.
    package mutating func take(_ bytes: Bytes, into messages: inout [Message]) throws(Violation) {
        var position = 0
        while position < bytes.count {
            if self.missing == 0 {
                try self.takeHeader(bytes[position])
                position += 1
                continue
            }
            let lane = Int(self.header.0 & 0x7F)
            let size = min(self.missing, bytes.count - position)
            self.partial[lane].append(contentsOf: bytes[position..<(position + size)])
            position += size
            self.missing -= size
            guard self.missing == 0 else { return }
            self.headerCount = 0
            guard self.header.0 & 0x80 == 0,
                let priority = PeerMessage.Priority(rawValue: UInt8(lane))
            else { continue }
            var whole: Bytes = []
            swap(&whole, &self.partial[lane])
            messages.append(Message(priority: priority, bytes: whole))
        }
    }

    private mutating func takeHeader(_ byte: UInt8) throws(Violation) {
        switch self.headerCount {
        case 0:
            guard PeerMessage.Priority(rawValue: byte & 0x7F) != nil else {
                throw .unknownPriority(byte)
            }
            self.header.0 = byte
        case 1: self.header.1 = byte
        default:
            self.header.2 = byte
            let size = Int(self.header.1) | Int(self.header.2) << 8
            guard size > 0 else { throw .emptyFrame }
            guard self.partial[Int(self.header.0 & 0x7F)].count + size <= self.messageSizeMax
            else { throw .messageTooLarge }
            self.missing = size
        }
        self.headerCount += 1
    }
}
