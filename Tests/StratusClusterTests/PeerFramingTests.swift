import StratusCoding
import StratusModel
import Testing

/// Messages cut into frames and put together again, whatever the network makes of the bytes.
@Suite struct PeerFramingTests {
    private static func small() -> PeerFrameQueue.Limits {
        var limits = PeerFrameQueue.Limits()
        limits.frameSizeMax = 7
        limits.messageSizeMax = 400
        limits.windowSize = 100
        limits.queueSizeMax = 500
        limits.queueCountMax = 5
        return limits
    }

    @Test(arguments: 0..<50 as Range<UInt64>)
    func `what is sent arrives whole and, within a priority, in order`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var queue = PeerFrameQueue(limits: Self.small())
        var reader = PeerFrameReader(limits: Self.small())
        var sent: [PeerMessage.Priority: [Bytes]] = [:]
        var arrived: [PeerMessage.Priority: [Bytes]] = [:]
        var taken: UInt64 = 0
        var wire: Bytes = []
        for _ in 0..<400 {
            let priority = PeerMessage.Priority.allCases.randomElement(using: &random)!
            let size = Int.random(in: 1...120, using: &random)
            let message = Bytes((0..<size).map { _ in .random(in: 0...255, using: &random) })
            if queue.add(message, priority) { sent[priority, default: []].append(message) }
            queue.fill(&wire, sizeMax: Int.random(in: 0...60, using: &random))
            let piece = Bytes(wire.prefix(Int.random(in: 0...40, using: &random)))
            wire.removeFirst(piece.count)
            var messages: [PeerFrameReader.Message] = []
            try reader.take(piece, into: &messages)
            for message in messages {
                arrived[message.priority, default: []].append(message.bytes)
                if message.priority != .vital { taken += UInt64(message.bytes.count) }
            }
            let isPossible = queue.noteTaken(taken)
            #expect(isPossible)
        }
        for _ in 0..<2_000 {
            queue.fill(&wire, sizeMax: 100)
            var messages: [PeerFrameReader.Message] = []
            try reader.take(wire, into: &messages)
            wire = []
            for message in messages {
                arrived[message.priority, default: []].append(message.bytes)
                if message.priority != .vital { taken += UInt64(message.bytes.count) }
            }
            _ = queue.noteTaken(taken)
        }
        #expect(sent == arrived, "seed \(seed)")
        #expect(queue.waitingSize == 0)
    }

    @Test func `a heartbeat overtakes a snapshot that is under way`() {
        var queue = PeerFrameQueue(limits: Self.small())
        let isTaken1 = queue.add(Bytes(repeating: 9, count: 90), .snapshot)
        #expect(isTaken1)
        var wire: Bytes = []
        queue.fill(&wire, sizeMax: 10)
        let isTaken2 = queue.add([1, 2], .vital)
        #expect(isTaken2)
        let isTaken3 = queue.add([3], .consensus)
        #expect(isTaken3)
        var next: Bytes = []
        queue.fill(&next, sizeMax: 1)
        #expect(next == [0, 2, 0, 1, 2])
    }

    @Test func `beyond the window only vital messages are begun`() {
        var queue = PeerFrameQueue(limits: Self.small())
        let isTaken4 = queue.add(Bytes(repeating: 1, count: 80), .consensus)
        #expect(isTaken4)
        let isTaken5 = queue.add(Bytes(repeating: 2, count: 30), .consensus)
        #expect(isTaken5)
        let isTaken6 = queue.add([3], .vital)
        #expect(isTaken6)
        var wire: Bytes = []
        queue.fill(&wire, sizeMax: .max)
        #expect(queue.waitingSize == 30)
        #expect(queue.begun == 80)
        #expect(!queue.canSend)
        let couldTakeMore = queue.noteTaken(81)
        #expect(!couldTakeMore)
        let tookSome = queue.noteTaken(80)
        #expect(tookSome)
        #expect(queue.canSend)
    }

    @Test func `a message larger than the window goes alone`() {
        var queue = PeerFrameQueue(limits: Self.small())
        let isTaken7 = queue.add(Bytes(repeating: 1, count: 300), .client)
        #expect(isTaken7)
        #expect(queue.canSend)
        var wire: Bytes = []
        queue.fill(&wire, sizeMax: .max)
        #expect(queue.waitingSize == 0)
    }

    @Test func `what waits is bounded by number and by size`() {
        var queue = PeerFrameQueue(limits: Self.small())
        let isTaken8 = queue.add(Bytes(repeating: 1, count: 401), .client)
        #expect(!isTaken8)
        for _ in 0..<5 { _ = queue.add([1], .client) }
        let isTaken9 = queue.add([1], .client)
        #expect(!isTaken9)
        let isTaken10 = queue.add(Bytes(repeating: 1, count: 400), .consensus)
        #expect(isTaken10)
        let isTaken11 = queue.add(Bytes(repeating: 1, count: 101), .consensus)
        #expect(!isTaken11)
        let isTaken12 = queue.add([1], .vital)
        #expect(isTaken12)
    }

    static let violations: [(name: String, bytes: Bytes, violation: PeerFrameReader.Violation)] = [
        ("a priority nobody knows", [4, 1, 0, 7], .unknownPriority(4)),
        ("HTTP instead", Bytes("GET / HTTP/1.1".utf8), .unknownPriority(0x47)),
        ("an empty frame", [1, 0, 0], .emptyFrame),
        ("a message that never ends", [0x81, 0xFF, 0xFF], .messageTooLarge),
    ]

    @Test(arguments: violations.map(\.name))
    func `X-25 bytes that are no frames end the link`(name: String) throws {
        let row = try #require(Self.violations.first { $0.name == name })
        var reader = PeerFrameReader(limits: Self.small())
        var messages: [PeerFrameReader.Message] = []
        #expect(throws: row.violation) { try reader.take(row.bytes, into: &messages) }
        #expect(messages.isEmpty)
    }

    @Test(arguments: 0..<2_000 as Range<UInt64>)
    func `X-22 X-25 hostile bytes never trap, and never hold more than the limits`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var reader = PeerFrameReader(limits: Self.small())
        for _ in 0..<8 {
            var bytes = Bytes()
            // Mostly sound headers, so that the reader gets past the first.
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                let size = Int.random(in: 0...12, using: &random)
                bytes.append(
                    .random(in: 0...4, using: &random) | (random.next() % 2 == 0 ? 0x80 : 0))
                bytes += [UInt8(size), 0]
                bytes += (0..<size).map { _ in .random(in: 0...255, using: &random) }
            }
            if random.next() % 4 == 0 {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] ^= 0xFF
            }
            var messages: [PeerFrameReader.Message] = []
            do throws(PeerFrameReader.Violation) {
                try reader.take(bytes, into: &messages)
            } catch { return }
            for message in messages {
                #expect(message.bytes.count <= 400)
                _ = try? PeerMessage(decoding: message.bytes)
            }
        }
    }
}
