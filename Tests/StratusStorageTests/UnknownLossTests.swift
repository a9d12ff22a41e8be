import StratusDoubles
import StratusModel
import StratusStorage
import Testing

/// S-08, S-13: a batch that cannot be read may have replaced what was read before it.
@Suite struct UnknownLossTests {
    private static let groups: [UInt16] = [1, 2]

    /// A log of several segments whose groups lose tails to entries of later terms, and its
    /// expected content.
    private struct History {
        let bench: LogBench
        var entries: [UInt16: [Entry]] = [:]

        init(seed: UInt64, bugs: PlantedBugs = PlantedBugs()) throws {
            self.bench = LogBench(seed: seed, segmentSize: 4_096)
            self.bench.limits.bugs = bugs
            var random = SeededGenerator(seed: seed)
            let log = try self.bench.open()
            for term in 1...30 as ClosedRange<UInt64> {
                let group = UnknownLossTests.groups[Int.random(in: 0...1, using: &random)]
                var held = self.entries[group] ?? []
                let cutCount = min(held.count, Int.random(in: 0...3, using: &random))
                held.removeLast(cutCount)
                let first = UInt64(held.count) + 1
                let last = first + UInt64.random(in: 0...4, using: &random)
                let added = LogBench.entries(first...last, term: term, size: 60)
                log.submit([
                    LogBatch(
                        group: GroupID(group), hardState: HardState(term: Term(term), vote: nil),
                        truncateFrom: cutCount > 0 ? LogIndex(first) : nil, entries: added)
                ])
                log.flushAll()
                self.entries[group] = held + added
            }
        }

        /// Segments, oldest first, but for the newest: damage at its end looks like a tear.
        var oldSegments: [DiskPath] {
            func sequence(_ path: DiskPath) -> UInt64 {
                (self.bench.files.contents(of: path) ?? [])[8..<16].reversed()
                    .reduce(0) { $0 << 8 | UInt64($1) }
            }
            return self.bench.files.allFiles.filter { $0.raw.hasSuffix(".seg") }
                .sorted { sequence($0) < sequence($1) }.dropLast()
        }

        /// The error in a log that was read back; nil if there is none.
        func problem(_ log: SegmentedLog) -> String? {
            if log.damage.hasUnknownLoss { return nil }
            for group in UnknownLossTests.groups {
                let id = GroupID(group)
                let expected = self.entries[group] ?? []
                if log.last(of: id).index.raw != UInt64(expected.count) {
                    return "\(id) ends at \(log.last(of: id)), not \(expected.count)"
                }
                let damaged = log.damage.entries.first { $0.group == id }?.indexes ?? []
                for entry in expected where !damaged.contains(entry.index) {
                    let read = try? log.read(id, from: entry.index, limit: ByteCount(1)).first
                    if read != entry { return "\(id) holds another entry at \(entry.index)" }
                }
            }
            return nil
        }
    }

    /// Flips bits in old segments, one at a time.
    /// - Returns: the first problem that a start did not notice.
    private static func search(seed: UInt64, bugs: PlantedBugs = PlantedBugs()) throws -> String? {
        let history = try History(seed: seed, bugs: bugs)
        let files = history.bench.files
        var random = SeededGenerator(seed: seed &+ 1_000)
        for path in history.oldSegments {
            let sound = try #require(files.contents(of: path))
            for _ in 0..<150 {
                let offset = Int.random(in: 0..<sound.count, using: &random)
                files.flip(bit: Int.random(in: 0...7, using: &random), at: offset, of: path)
                files.restart(after: .processCrash)
                // A log that refuses to open has noticed.
                if let log = try? history.bench.open(isNew: false),
                    let problem = history.problem(log)
                {
                    return "seed \(seed), byte \(offset) of \(path): \(problem)"
                }
                files.plant(sound, at: path)
            }
        }
        return nil
    }

    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `core audit 4: a bit that flips in an older segment changes no entry unnoticed`(
        seed: UInt64
    ) throws {
        #expect(try Self.search(seed: seed) == nil)
    }

    @Test(.enabled(if: PlantedBugs.isPossible))
    func `core audit 4: a log that forgives the loss is found`() throws {
        #if STRATUS_PLANTED
            let found = try (1...8 as ClosedRange<UInt64>).contains {
                try Self.search(seed: $0, bugs: PlantedBugs([.unknownLossForgiven])) != nil
            }
            #expect(found)
        #endif
    }

    /// The batch of one group is lost. The state behind it proves what the other held.
    @Test func `core audit 4: what the next segment proves to be unchanged is kept`() throws {
        let bench = LogBench(segmentSize: 4_096)
        let log = try bench.open()
        log.append(1, 1...4)
        log.flushAll()
        log.append(2, 1...4)
        log.flushAll()
        log.submit([
            LogBatch(
                group: GroupID(2), truncateFrom: LogIndex(3),
                entries: LogBench.entries(3...4, term: 2))
        ])
        log.flushAll()
        let path = try #require(bench.files.allFiles.first { $0.raw.hasSuffix(".seg") })
        let end = try #require(bench.files.contents(of: path)?.lastIndex { $0 != 0 })
        var index: UInt64 = 5
        while log.segmentCount < 3 {
            log.append(2, index...index, term: 2)
            log.flushAll()
            index += 1
        }
        // In the list of the items of the batch with the cut: before its two payloads of some 200
        // bytes.
        bench.files.flip(bit: 1, at: end - 450, of: path)
        let again = try bench.open(isNew: false)
        #expect(again.damage.entries.map(\.group) == [GroupID(2)])
        #expect(try again.all(1) == LogBench.entries(1...4))
        #expect(
            try again.read(GroupID(2), from: LogIndex(index - 1), limit: ByteCount(1)).count == 1)
    }

    /// A log of one segment: group 1 has four entries in a batch each, and then group 2 has one.
    private static func short(_ bench: LogBench, closes: Bool) async throws {
        let log = try bench.open()
        for index in 1...4 as ClosedRange<UInt64> {
            log.append(1, index...index)
            log.flushAll()
        }
        if closes { await log.close() }
        log.append(2, 1...1)
        log.flushAll()
    }

    /// Flips a bit in the list of the batch of an entry of group 1.
    private static func flipList(of index: UInt64, _ bench: LogBench) throws {
        bench.files.restart(after: .processCrash)
        try bench.damage(entry: index, at: -20)
    }

    @Test func `core audit 3.1: a state behind a lost batch names what it held`() async throws {
        for closes in [false, true] {
            let bench = LogBench(segmentSize: 65_536)
            try await Self.short(bench, closes: closes)
            try Self.flipList(of: 3, bench)
            let log = try bench.open(isNew: false)
            #expect(log.hasUnknownLoss == !closes)
            guard closes else { continue }
            #expect(log.damage.entries == [.init(group: GroupID(1), indexes: [LogIndex(3)])])
            #expect(try log.all(2) == LogBench.entries(1...1))
            #expect(log.loss(of: GroupID(1), from: LogIndex(1))?.last == LogIndex(4))
        }
    }

    @Test func `a log in doubt writes no state before its owner has settled the loss`()
        async throws
    {
        let bench = LogBench(segmentSize: 4_096)
        try await Self.short(bench, closes: false)
        try Self.flipList(of: 3, bench)
        do {
            let log = try bench.open(isNew: false)
            log.noteState()
            await log.close()
            // A segment begins without a state, too.
            var index: UInt64 = 2
            while log.segmentCount < 2 {
                log.append(2, index...index)
                log.flushAll()
                index += 1
            }
            await log.close()
        }
        do {
            let log = try bench.open(isNew: false)
            #expect(log.hasUnknownLoss)
            log.settleLoss()
            await log.close()
            #expect(!log.hasUnknownLoss)
        }
        #expect(try !bench.open(isNew: false).hasUnknownLoss)
    }

    @Test func `a state takes no more than a sixteenth of the log`() throws {
        let bench = LogBench(segmentSize: 65_536)
        let log = try bench.open()
        var sizes: [Int] = []
        for index in 1...100 as ClosedRange<UInt64> {
            log.append(1, index...index)
            log.flushAll()
            log.noteState()
            if log.hasWork { sizes.append(Int(index)) }
            log.flushAll()
        }
        #expect(sizes.count > 2)
        #expect(zip(sizes, sizes.dropFirst()).allSatisfy { $1 - $0 >= 6 }, "\(sizes)")
    }

    /// Millions of entries may lie before the first that is kept.
    @Test func `entries behind a loss do not make those before the log's start missing`()
        async throws
    {
        let bench = LogBench(segmentSize: 65_536)
        do {
            let log = try bench.open()
            let start = SnapshotIdentity(
                index: LogIndex(50_000_000), term: Term(1),
                configuration: Configuration(voters: []),
                digest: .empty)
            log.restart(GroupID(1), after: start)
            log.flushAll()
            for index in 50_000_001...50_000_004 as ClosedRange<UInt64> {
                log.append(1, index...index)
                log.flushAll()
            }
        }
        bench.files.restart(after: .processCrash)
        try bench.damage(entry: 50_000_002, at: -20)
        let log = try bench.open(isNew: false)
        #expect(log.hasUnknownLoss)
        #expect(
            log.damage.entries == [.init(group: GroupID(1), indexes: [LogIndex(50_000_002)])])
    }
}
