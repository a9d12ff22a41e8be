import StratusAssets
import StratusModel
import Testing

/// A writer over members that lose, repeat and delay, on a clock of its own.
@Suite struct BodyWriterTests {
    static let body = BodyID(7)

    static func writer(
        _ members: Set<UInt32> = [1, 2, 3], voters: [Set<UInt32>] = [[1, 2, 3]],
        seconds: Int = 30
    ) -> BodyWriter {
        BodyWriter(
            Self.body, orphanAfterMilliseconds: 99, members: Set(members.map { NodeID($0) }),
            voterSets: voters.map { Set($0.map { NodeID($0) }) },
            deadline: MonotonicTime(nanoseconds: Int64(seconds) * 1_000_000_000))
    }

    struct Run {
        var holdings: [CopyHolding]?
        var failure: BodyWriter.Failure?
        var disks: [NodeID: Set<UInt32>] = [:]
        var dropped: Set<NodeID> = []
        var chunksMax = 0
        var undoneMax = 0
    }

    /// Plays one upload of `count` chunks to its end.
    static func play(_ seed: UInt64, count: Int, dead: Set<NodeID>, voters: [Set<UInt32>]) -> Run {
        var random = SeededGenerator(seed: seed)
        let members: Set<UInt32> = voters.reduce([9]) { $0.union($1) }
        var writer = Self.writer(members, voters: voters)
        var run = Run()
        // What is on its way to the writer, by the time it arrives.
        var events: [(at: Int64, order: Int, node: NodeID, ordinal: UInt32, answer: CopyAnswer)] =
            []
        var now: Int64 = 0
        var order = 0
        var given = 0
        var lastIndex: [NodeID: UInt64] = [:]
        func take(_ actions: [BodyWriter.Action]) {
            for action in actions {
                switch action {
                case .put(let copy, let node):
                    let isLost = dead.contains(node) || Int.random(in: 0..<8, using: &random) == 0
                    // A lost answer may be to a put that was stored.
                    let isStored =
                        !dead.contains(node)
                        && (!isLost || Bool.random(using: &random))
                    if isStored { run.disks[node, default: []].insert(copy.name.ordinal) }
                    lastIndex[node, default: 10] += .random(in: 0...2, using: &random)
                    let answer: CopyAnswer =
                        isLost ? .silent : .stored(at: LogIndex(lastIndex[node]!))
                    let times = isLost || Int.random(in: 0..<6, using: &random) > 0 ? 1 : 2
                    for _ in 0..<times {
                        order += 1
                        let delay =
                            Int64.random(
                                in: 1...(isLost ? 400 : 80), using: &random) * 1_000_000
                        events.append((now + delay, order, node, copy.name.ordinal, answer))
                    }
                case .drop(let node): run.dropped.insert(node)
                case .stored(let holdings): run.holdings = holdings
                case .failed(let failure): run.failure = failure
                }
            }
        }
        while run.holdings == nil, run.failure == nil {
            while given < count, writer.wantsChunk {
                take(writer.add(Bytes(repeating: UInt8(given & 255), count: 20)))
                given += 1
                run.chunksMax = max(run.chunksMax, writer.chunkCount)
            }
            if given == count { take(writer.end()); given += 1 }
            if run.holdings != nil || run.failure != nil { break }
            events.sort { ($0.at, $0.order) < ($1.at, $1.order) }
            let wake = writer.nextWake?.nanoseconds ?? .max
            if let next = events.first, next.at <= wake {
                events.removeFirst()
                now = max(now, next.at)
                take(
                    writer.answered(
                        next.answer, to: next.ordinal, by: next.node,
                        at: MonotonicTime(nanoseconds: now)))
            } else {
                now = max(now, wake)
                take(writer.tick(MonotonicTime(nanoseconds: now)))
            }
        }
        #expect(writer.isOver && writer.nextWake == nil)
        // What comes afterwards changes nothing.
        #expect(
            writer.answered(
                .stored(at: LogIndex(1)), to: 0, by: NodeID(1), at: .init(nanoseconds: now)
            ).isEmpty)
        #expect(writer.cancel().isEmpty)
        return run
    }

    @Test(arguments: 0..<300 as Range<UInt64>)
    func `A-33 what is called stored is whole on a majority of every voter set`(seed: UInt64) {
        let voters: [Set<UInt32>] = seed % 3 == 0 ? [[1, 2, 3], [3, 4, 5]] : [[1, 2, 3]]
        let dead: Set<NodeID> = seed % 2 == 0 ? [NodeID(UInt32(seed % 3) + 1)] : []
        let count = Int(seed % 25)
        let run = Self.play(seed, count: count, dead: dead, voters: voters)
        if let holdings = run.holdings {
            for holding in holdings where count > 0 {
                #expect(
                    run.disks[holding.node] == Set(0..<UInt32(count)),
                    "seed \(seed): \(holding.node) has not all of it")
            }
            let nodes = Set(holdings.map(\.node.raw))
            for set in voters {
                #expect(nodes.intersection(set).count * 2 > set.count, "seed \(seed)")
            }
            #expect(run.dropped.isEmpty, "seed \(seed): what may be pinned is dropped")
        } else {
            #expect(run.failure == .noMajority, "seed \(seed)")
            #expect(run.dropped.count >= 4, "seed \(seed): everybody is told")
        }
        #expect(run.chunksMax <= 9, "seed \(seed): \(run.chunksMax) chunks in memory")
    }

    @Test func `most uploads over poor links are stored`() {
        let stored = (0..<100 as Range<UInt64>).count { seed in
            Self.play(seed &+ 5_000, count: 10, dead: [], voters: [[1, 2, 3]]).holdings != nil
        }
        #expect(stored >= 95, "\(stored) of 100")
    }

    /// Chunk 0 on 1 and 2, chunk 1 on 2 and 3: each has a majority, and the whole is on one node
    /// only.
    @Test func `chunks on different majorities are not a stored body`() {
        var writer = Self.writer()
        let now = MonotonicTime(nanoseconds: 0)
        _ = writer.add([1])
        _ = writer.add([2])
        _ = writer.answered(.stored(at: LogIndex(5)), to: 0, by: NodeID(1), at: now)
        _ = writer.answered(.stored(at: LogIndex(6)), to: 0, by: NodeID(2), at: now)
        _ = writer.answered(.stored(at: LogIndex(8)), to: 1, by: NodeID(2), at: now)
        _ = writer.answered(.stored(at: LogIndex(7)), to: 1, by: NodeID(3), at: now)
        #expect(writer.end().isEmpty)
        let actions = writer.answered(.stored(at: LogIndex(9)), to: 1, by: NodeID(1), at: now)
        #expect(
            actions == [
                .stored([
                    CopyHolding(node: NodeID(1), at: LogIndex(5)),
                    CopyHolding(node: NodeID(2), at: LogIndex(6)),
                ])
            ], "each with the least of its indexes")
    }

    @Test func `at most four chunks are not done, and a member that lags is given up`() {
        var writer = Self.writer()
        let now = MonotonicTime(nanoseconds: 0)
        var given: UInt32 = 0
        while writer.wantsChunk {
            _ = writer.add([1])
            given += 1
        }
        #expect(given == 4)
        // 1 and 2 answer, 3 never does.
        while given < 40 {
            for node in [1, 2] as [UInt32] {
                for ordinal in 0..<given {
                    _ = writer.answered(
                        .stored(at: LogIndex(1)), to: ordinal, by: NodeID(node), at: now)
                }
            }
            while writer.wantsChunk, given < 40 {
                let puts = writer.add([1])
                #expect(puts.count == (given < 10 ? puts.count : 2), "chunk \(given)")
                given += 1
            }
            #expect(writer.chunkCount <= 12)
        }
    }

    @Test func `a member that refuses is not asked again, and two of three end the upload`() {
        var writer = Self.writer()
        let now = MonotonicTime(nanoseconds: 0)
        _ = writer.add([1])
        #expect(writer.answered(.refused(.nearlyFull), to: 0, by: NodeID(1), at: now).isEmpty)
        #expect(writer.add([2]).count == 2)
        let actions = writer.answered(.refused(.noReplica), to: 0, by: NodeID(3), at: now)
        #expect(
            actions == (1...3).map { .drop(on: NodeID($0)) } + [.failed(.noMajority)])
    }

    @Test func `a deadline and a client that goes away end the upload, once`() {
        for isCancelled in [true, false] {
            var writer = Self.writer()
            _ = writer.add([1])
            let end = MonotonicTime(nanoseconds: 30_000_000_000)
            let actions = isCancelled ? writer.cancel() : writer.tick(end)
            #expect(actions.last == .failed(isCancelled ? .cancelled : .deadline))
            #expect(actions.count == 4)
            #expect(writer.tick(end).isEmpty && writer.cancel().isEmpty && !writer.wantsChunk)
        }
    }

    /// Nothing wakes a writer at its deadline: an upload whose members fell silent just before it
    /// waited for ever.
    @Test func `silence just before the deadline ends the upload`() {
        var writer = Self.writer()
        _ = writer.add([1])
        let end = MonotonicTime(nanoseconds: 29_999_999_999)
        var actions: [BodyWriter.Action] = []
        for node in 1...3 as ClosedRange<UInt32> {
            actions += writer.answered(.silent, to: 0, by: NodeID(node), at: end)
        }
        #expect(actions.last == .failed(.noMajority))
        #expect(writer.isOver)
    }

    @Test func `an empty file is stored on everybody at once`() {
        var writer = Self.writer()
        guard case .stored(let holdings)? = writer.end().first else {
            Issue.record("nothing was stored")
            return
        }
        #expect(holdings.count == 3)
    }
}
