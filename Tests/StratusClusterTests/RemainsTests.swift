import StratusCoding
import StratusDoubles
import StratusModel
import StratusSQLite
import StratusStorage
import Testing

@testable import StratusCluster

/// what was erased is gone from every file of every node, also of nodes where nothing else
/// happens, and also if a node ends in the middle.
@Suite struct RemainsTests {
    private static let secret = "the secret of somebody, "

    private static func holds(_ files: SimulatedFiles) -> [String] {
        files.allFiles.filter { path in
            guard let bytes = files.contents(of: path) else { return false }
            return String(decoding: bytes, as: UTF8.self).contains(Self.secret)
        }.map(\.raw)
    }

    private static func opens(
        _ system: FileSystem
    ) -> @Sendable (GroupID) throws(StoreError) -> sending any NodePartition {
        { (group) throws(StoreError) in
            var limits = PartitionStore<ErasingState>.Limits()
            limits.snapshotFrameSize = 1_000
            return try PartitionStore(
                ErasingState(), group: group, in: "partitions", of: system, limits: limits)
        }
    }

    private static func value(_ number: Int) -> Bytes {
        Bytes(String(repeating: Self.secret + "\(number) ", count: 20).utf8)
    }

    // MARK: One node

    private func alone(
        _ world: SimulatedWorld, seed: UInt64, rate: ByteCount? = nil
    ) throws -> OneNode {
        try OneNode(seed: seed, world: world) { setup in
            if let rate { setup.snapshotRate = rate }
            setup.events.alarm = { group, what in
                if !world.simulatedFiles.isCrashed { Issue.record("\(group): \(what)") }
            }
            setup.openPartition = Self.opens(FileSystem(world.files))
        }
    }

    private func submit(_ node: OneNode, _ bodies: [RegisterCommand]) {
        for body in bodies {
            let identity = node.world.drawIdentity()
            Task(executorPreference: node.executor) {
                let result = await node.submit(body, identity)
                #expect((try? result.get())?.verdict == .decided)
            }
            node.executor.run(until: node.world.now + .milliseconds(200))
        }
    }

    /// What a job runner does once the time of the outcomes is over.
    private func forget(_ node: OneNode) {
        node.executor.run(until: node.world.now + .seconds(31))
        self.submit(node, [.remove(Bytes("outcomes".utf8))])
    }

    private static let writes = (0..<9).map {
        RegisterCommand.write(Bytes("secret\($0)".utf8), value: Self.value($0))
    }
    private static let erasures = (0..<9).map {
        RegisterCommand.remove(Bytes("secret\($0)".utf8))
    }
    private static let others = (0..<30).map {
        RegisterCommand.write(Bytes("other\($0)".utf8), value: Bytes(repeating: 7, count: 500))
    }

    @Test func `a node alone is rid of what was erased within a minute, and says so`() throws {
        let world = SimulatedWorld(seed: 7)
        let node = try self.alone(world, seed: 7)
        self.submit(node, Self.others + Self.writes)
        #expect(node.replicas.remainsFigures == .init())
        self.submit(node, Self.erasures)
        let files = Self.holds(world.simulatedFiles)
        #expect(files.contains { $0.hasPrefix("log/") } && files.contains { $0.hasSuffix("-wal") })
        node.executor.run(until: world.now + .seconds(2))
        let before = node.replicas.remainsFigures
        #expect(before.partitionCount == 1 && before.isInLog && before.sinceMilliseconds != nil)
        #expect(world.simulatedFiles.allFiles.contains("ERASED"))
        self.forget(node)
        #expect(!Self.holds(world.simulatedFiles).isEmpty)
        node.settle()
        #expect(Self.holds(world.simulatedFiles) == [])
        let after = node.replicas.remainsFigures
        #expect(after.partitionCount == 0 && !after.isInLog && after.sinceMilliseconds == nil)
        #expect(after.clearedMilliseconds != nil && after.rebuiltCount == 1)
        #expect(!world.simulatedFiles.allFiles.contains("ERASED"))
        let held = node.readNow(Bytes("other3".utf8))
        #expect(try held.get() == Bytes(repeating: 7, count: 500))
    }

    @Test func `however many are erased, a large file is made anew once in ten minutes`() throws {
        let world = SimulatedWorld(seed: 8)
        // At this rate the file takes longer than half a minute.
        let node = try self.alone(world, seed: 8, rate: ByteCount(400))
        self.submit(node, Self.others + Self.writes)
        for erasure in Self.erasures {
            self.submit(node, [erasure])
            self.forget(node)
            node.executor.run(until: world.now + .seconds(30))
        }
        #expect(node.replicas.remainsFigures.rebuiltCount == 1)
        node.executor.run(until: world.now + .seconds(900))
        #expect(node.replicas.remainsFigures.rebuiltCount == 2)
        #expect(Self.holds(world.simulatedFiles) == [])
    }

    @Test func `a small file is made anew again soon`() throws {
        let world = SimulatedWorld(seed: 8)
        let node = try self.alone(world, seed: 8)
        self.submit(node, Self.writes)
        for erasure in Self.erasures {
            self.submit(node, [erasure])
            self.forget(node)
            node.settle()
        }
        // Some wait for outcomes of those that follow them.
        #expect(node.replicas.remainsFigures.rebuiltCount > 3)
        #expect(Self.holds(world.simulatedFiles) == [])
    }

    @Test(arguments: 0..<12 as Range<Int>)
    func `a node that ends anywhere in between goes on after its restart`(place: Int) throws {
        let world = SimulatedWorld(seed: UInt64(place) &+ 100)
        do {
            let node = try self.alone(world, seed: 9)
            self.submit(node, Self.others + Self.writes + Self.erasures)
            let files = world.simulatedFiles
            // The file is begun after five seconds of quiet; the log lets go after it.
            self.forget(node)
            #expect(files.allFiles.contains("ERASED"))
            node.executor.run(until: world.now + .seconds(3))
            files.plan(DiskFault(at: files.operationCount + place * 20, .crash))
            node.settle()
        }
        world.simulatedFiles.clearFaults()
        world.simulatedFiles.restart(after: place % 2 == 0 ? .processCrash : .powerLoss)
        let node = try self.alone(world, seed: 10)
        _ = node.readNow(Bytes("other3".utf8))
        node.executor.run(until: world.now + .seconds(1_500))
        #expect(Self.holds(world.simulatedFiles) == [], "ended at \(place)")
        #expect(node.replicas.remainsFigures.sinceMilliseconds == nil)
        #expect(try node.readNow(Bytes("other3".utf8)).get() == Bytes(repeating: 7, count: 500))
        #expect(try node.readNow(Bytes("secret3".utf8)).get() == nil)
    }

    // MARK: Three nodes

    private func three(seed: UInt64) throws -> ThreeNodes {
        try ThreeNodes(seed: seed, opens: Self.opens)
    }

    private func ask(_ three: ThreeNodes, _ bodies: [RegisterCommand]) throws {
        for body in bodies {
            let leader = try #require(three.leader())
            let command = three.command(body)
            let deadline = three.clock.now + .seconds(20)
            let answer = three.get {
                await leader.replicas.ask(
                    .command(command), of: ThreeNodes.group, deadline: deadline)
            }
            guard case .outcome? = answer else {
                Issue.record("\(body): \(String(describing: answer))")
                continue
            }
        }
    }

    @Test func `every node of three is rid of it, and one that was away as well`() throws {
        let three = try self.three(seed: 21)
        try self.ask(three, Self.others + Self.writes)
        three.run(for: .seconds(2))
        for node in three.nodes { #expect(Self.holds(node.files) != []) }
        let leader = try #require(three.leader())
        let away = try #require(three.nodes.first { $0.id != leader.id })
        three.hang(away)
        three.run(for: .seconds(2))
        try self.ask(three, Self.erasures)
        three.run(for: .seconds(31))
        try self.ask(three, [.remove(Bytes("outcomes".utf8))])
        let positions = try #require(three.get { await leader.replicas.nodeRemains() }).positions
        let wanted = Dictionary(uniqueKeysWithValues: positions.map { ($0.group, $0.applied) })
        func isCleared(_ node: ThreeNodes.Node) -> Bool {
            three.get { await node.replicas.nodeRemains() }?.isCleared(through: wanted) == true
        }
        func open(_ node: ThreeNodes.Node) {
            _ = three.get { while await node.replicas.openNext() {} }
        }
        three.nodes.forEach(open)
        #expect(three.nodes.allSatisfy { !isCleared($0) })
        // The log keeps entries for the one that is away, for twenty minutes.
        three.run(for: .seconds(60))
        #expect(Self.holds(leader.files).allSatisfy { $0.hasPrefix("log/") })
        #expect(!isCleared(away), "it does not even know of it")
        three.run(for: .seconds(1_800))
        for node in three.nodes where node.id != away.id {
            #expect(Self.holds(node.files) == [], "\(node.id)")
            let remains = three.get { await node.replicas.nodeRemains() }
            #expect(isCleared(node), "\(node.id): \(String(describing: remains)), \(wanted)")
        }
        three.hearAgain()
        three.run(for: .seconds(120))
        #expect(Self.holds(away.files) == [])
        #expect(isCleared(away))
        let digests = three.nodes.map { three.value(Bytes("other3".utf8), at: $0) }
        #expect(digests.allSatisfy { $0 == Bytes(repeating: 7, count: 500) })
        try self.ask(three, Self.others)
    }

    /// A leader that has its rows from a snapshot does not know of the erasure.
    @Test func `a follower asks for outcomes to be forgotten when the leader does not`() throws {
        let three = try self.three(seed: 22)
        try self.ask(three, Self.writes + Self.erasures)
        let leader = try #require(three.leader())
        func areRemembered(_ node: ThreeNodes.Node) -> Bool {
            three.get { await node.replicas.groupsThatRemember() } == [ThreeNodes.group]
        }
        three.run(for: .seconds(29))
        #expect(!three.nodes.contains(where: areRemembered))
        three.run(for: .seconds(3))
        #expect(three.nodes.filter(areRemembered).map(\.id) == [leader.id])
        three.run(for: .seconds(5))
        #expect(three.nodes.allSatisfy(areRemembered))
        try self.ask(three, [.remove(Bytes("outcomes".utf8))])
        three.run(for: .seconds(1))
        #expect(!three.nodes.contains(where: areRemembered))
    }

    /// The new file follows by entries that the log must not let go of meanwhile.
    @Test(arguments: 0..<4 as Range<UInt64>)
    func `clients go on writing while files are made anew`(seed: UInt64) throws {
        let three = try ThreeNodes(
            seed: 30 + seed,
            adjust: {
                $0.checkpointSize = .kibibytes(16)
                $0.tuning.trailingEntryCount = 0
                $0.snapshotRate = .kibibytes(8)
            }, opens: Self.opens)
        try self.ask(three, Self.others + Self.writes + Self.erasures)
        three.run(for: .seconds(31))
        try self.ask(three, [.remove(Bytes("outcomes".utf8))])
        // At 8 KiB a second a file takes seconds.
        for number in 0..<120 {
            let value = Bytes(repeating: UInt8(number), count: 300)
            try self.ask(three, [.write(Bytes("other\(number % 30)".utf8), value: value)])
            three.run(for: .milliseconds(150))
        }
        three.run(for: .seconds(120))
        for node in three.nodes {
            #expect(Self.holds(node.files) == [], "\(node.id), seed \(30 + seed)")
            #expect(node.replicas.remainsFigures.rebuiltCount == 1)
            for number in 90..<120 {
                let name = Bytes("other\(number % 30)".utf8)
                let held = three.value(name, at: node)
                #expect(held == Bytes(repeating: UInt8(number), count: 300), "\(node.id)")
            }
        }
        #expect(three.alarms.withLock { $0 } == [])
    }

    /// The outcomes of each erasure are remembered for half a minute, so there is never a moment at
    /// which nothing is to be removed.
    @Test func `what was erased first is gone within the hour although erasures never pause`()
        throws
    {
        let world = SimulatedWorld(seed: 41)
        let node = try self.alone(world, seed: 41)
        self.submit(node, Self.others + Self.writes)
        self.submit(node, Self.erasures)
        let begun = world.now
        var number = 0
        while world.now < begun + .seconds(3_600) {
            self.submit(node, [.write(Bytes("more\(number % 9)".utf8), value: [1, 2, 3])])
            self.submit(node, [.remove(Bytes("more\(number % 9)".utf8))])
            number += 1
            node.executor.run(until: world.now + .seconds(20))
        }
        #expect(Self.holds(world.simulatedFiles) == [])
        #expect(node.replicas.remainsFigures.partitionCount == 1, "they never paused")
        #expect(node.replicas.remainsFigures.isInLog)
        self.forget(node)
        node.executor.run(until: world.now + .seconds(1_300))
        #expect(node.replicas.remainsFigures.sinceMilliseconds == nil)
        #expect(!world.simulatedFiles.allFiles.contains("ERASED"))
    }

    // MARK: What is due

    @Test func `a file is due after a quiet time, and at the latest after a minute`() {
        var remains = Remains()
        let start = MonotonicTime(nanoseconds: 0)
        let group = GroupID(3)
        var now = start
        for number in 0..<59 as Range<UInt64> {
            now = start + .seconds(Int64(number))
            remains.see([group: LogIndex(number + 1)], at: now)
            #expect(remains.due(at: now) == [])
        }
        #expect(remains.due(at: start + .seconds(60)) == [group])
        var quiet = Remains()
        quiet.see([group: LogIndex(1), GroupID(4): LogIndex(9)], at: start)
        #expect(quiet.due(at: start + .seconds(4)) == [])
        #expect(quiet.due(at: start + .seconds(5)) == [group, GroupID(4)])
        quiet.failed(group, at: start + .seconds(5))
        #expect(quiet.due(at: start + .seconds(6)) == [GroupID(4)])
    }

    @Test(arguments: [(0, 20), (1, 20), (3, 60), (31, 600)])
    func `a file rests for twenty times as long as it took to make`(seconds: Int64, rest: Int64) {
        var remains = Remains()
        let group = GroupID(4)
        let begun = MonotonicTime(nanoseconds: 0)
        remains.see([group: LogIndex(9)], at: begun)
        remains.rebuildBegun(group, at: begun)
        let rebuilt = begun + .seconds(seconds)
        remains.rebuilt(group, at: rebuilt)
        let rested = rebuilt + .seconds(rest)
        // More is erased at once.
        for now in [rebuilt, rebuilt + .seconds(rest - 1), rested] {
            remains.see([group: LogIndex(10)], at: now)
            #expect(remains.due(at: now) == (now < rested ? [] : [group]))
        }
    }
}
