import StratusCluster
import StratusDoubles
import StratusModel
import StratusStorage
import Testing

/// One node alone: groups of one replica, on the log, consensus and the partition store.
@Suite struct OneNodeTests {
    @Test func `a router that was stopped gives up at once, and says that nothing happened`() throws
    {
        let node = try OneNode(seed: 90)
        node.router.stop()
        let before = node.world.now
        let held = Shared<Result<Outcome, RouteError>?>(nil)
        Task(executorPreference: node.executor) {
            let result = await node.submit(
                .write([1], value: [1]), RequestIdentity(high: 1, low: 1))
            let took = node.world.now - before
            #expect(took < .seconds(1))
            held.withLock { $0 = result }
        }
        node.settle()
        #expect(
            held.withLock { $0 } == .failure(.notExecuted(retryAfter: .milliseconds(100))))
    }

    /// Nobody may be left to decide it: here the log waits for room, elsewhere for a majority.
    @Test func `G-38 what waits when a node stops is told so, long before its deadline`() throws {
        var logLimits = SegmentedLog.Limits()
        logLimits.segmentSize = .kibibytes(64)
        logLimits.spareCountMax = 0
        let node = try OneNode(seed: 91, logLimits: logLimits)
        let results = Shared<[Result<Outcome, RouteError>]>([])
        func write() {
            let identity = node.world.drawIdentity()
            Task(executorPreference: node.executor) {
                let value = Bytes(repeating: 1, count: 5_000)
                let result = await node.submit(.write([1], value: value), identity)
                results.withLock { $0.append(result) }
            }
            node.executor.run(until: node.world.now + .seconds(1))
        }
        write()
        let files = node.world.simulatedFiles
        files.plan(
            DiskFault(at: files.operationCount, .fail(.full), isSticky: true, kinds: [.open]))
        for _ in 0..<40 where !node.log.isFull { write() }
        #expect(node.log.isFull)
        let before = results.withLock { $0.count }
        node.router.hurry(within: .seconds(3))
        // One that comes now ends by itself.
        write()
        node.executor.run(until: node.world.now + .seconds(4))
        #expect(results.withLock { $0.count } == before + 1)
        Task(executorPreference: node.executor) {
            await node.replicas.giveUp(dueAfter: node.world.now + .seconds(3))
        }
        node.executor.run(until: node.world.now + .seconds(1))
        let all = results.withLock { $0 }
        #expect(all.count == before + 2 && all.last == .failure(.outcomeUnknown))
    }

    @Test(arguments: 0..<10 as Range<UInt64>)
    func `a read sees every write that was acknowledged before it`(seed: UInt64) throws {
        let node = try OneNode(seed: seed)
        let done = Shared(0)
        for writer in 0..<8 as Range<UInt8> {
            let identities = (0..<10).map { _ in node.world.drawIdentity() }
            Task(executorPreference: node.executor) {
                for (round, identity) in identities.enumerated() {
                    let value: Bytes = [writer, UInt8(round)]
                    let result = await node.submit(.write([writer], value: value), identity)
                    #expect((try? result.get())?.verdict == .decided)
                    let held = try? await node.value([writer])
                    #expect(held == value)
                    await node.executor.sleep(for: .milliseconds(Int(writer)))
                }
                done.withLock { $0 += 1 }
            }
        }
        node.settle()
        #expect(done.withLock { $0 } == 8)
    }

    @Test func `commands that wait together share one sync`() throws {
        let node = try OneNode(seed: 1)
        func operations(_ count: Int) -> Int {
            let before = node.world.simulatedFiles.operationCount
            for number in 0..<count {
                let identity = node.world.drawIdentity()
                Task(executorPreference: node.executor) {
                    _ = await node.submit(.write([UInt8(number)], value: [1]), identity)
                }
            }
            node.settle()
            return node.world.simulatedFiles.operationCount - before
        }
        _ = operations(1)
        let one = operations(1)
        #expect(operations(64) < one * 16)
    }

    @Test(arguments: ["queued", "waiting", "bytes"])
    func `C-35 beyond its bound a node refuses, and what it refused did not happen`(
        _ bound: String
    ) throws {
        var limits = Limits()
        switch bound {
        case "queued": limits.pendingCommandCountMax = 3
        case "waiting": limits.waitingCountMax = 3
        default: limits.waitingSizeMax = ByteCount(1_000)
        }
        let node = try OneNode(seed: 1, limits: limits)
        let results = Shared<[UInt8: Result<Outcome, RouteError>]>([:])
        for number in 0..<12 as Range<UInt8> {
            let identity = node.world.drawIdentity()
            Task(executorPreference: node.executor) {
                let result = await node.submit(.write([number], value: [1]), identity)
                results.withLock { $0[number] = result }
            }
        }
        node.settle()
        var refusedCount = 0
        for (number, result) in results.withLock({ $0 }) {
            let held = try node.readNow([number]).get()
            switch result {
            case .success: #expect(held == [1])
            case .failure(.notExecuted(let retryAfter)):
                #expect(held == nil)
                #expect(retryAfter > .zero)
                refusedCount += 1
            case .failure(let error): Issue.record("\(error)")
            }
        }
        #expect(refusedCount > 0 && refusedCount < 12)
    }

    @Test func `S-42 a start counts the partitions that it opens`() throws {
        let first = try OneNode(seed: 3, groupCount: 5)
        for number in 0..<5 {
            let identity = first.world.drawIdentity()
            Task(executorPreference: first.executor) {
                _ = await first.submit(
                    .write([1], value: [1]), identity, to: .account("\(number)"))
            }
        }
        first.settle()
        let counts = Shared<[[Int]]>([])
        let node = try OneNode(seed: 4, world: first.world, groupCount: 5) {
            $0.events.opened = { count, total in counts.withLock { $0.append([count, total]) } }
        }
        Task(executorPreference: node.executor) { while await node.replicas.openNext() {} }
        node.settle()
        #expect(
            counts.withLock { $0 }
                == [[0, 5], [1, 5], [2, 5], [3, 5], [4, 5], [5, 5], [5, 5]])
    }

    @Test func `S-30 answers that nobody has let go of bound what is read`() throws {
        let budget = AnswerBudget(ByteCount(50_000))
        let node = try OneNode(seed: 1) { $0.answers = budget }
        let identity = node.world.drawIdentity()
        Task(executorPreference: node.executor) {
            _ = await node.submit(.write([1], value: Bytes(repeating: 1, count: 20_000)), identity)
        }
        node.settle()
        let answers = Shared<[QueryAnswer]>([])
        let refusedCount = Shared(0)
        func read(times: Int) {
            for _ in 0..<times {
                Task(executorPreference: node.executor) {
                    do throws(RouteError) {
                        let answer = try await node.router.read(
                            RegisterQuery.value([1]).query, at: .key(OneNode.key),
                            deadline: node.deadline
                        )
                        answers.withLock { $0.append(answer) }
                    } catch {
                        guard case .notExecuted(let retryAfter) = error, retryAfter > .zero else {
                            Issue.record("\(error)")
                            return
                        }
                        refusedCount.withLock { $0 += 1 }
                    }
                }
            }
            node.settle()
        }
        // All of them in one turn.
        read(times: 10)
        #expect(answers.withLock { $0.count } == 2)
        #expect(refusedCount.withLock { $0 } == 8)
        #expect(budget.size > 40_000 && budget.size <= 50_000)
        answers.withLock { _ = $0.removeLast() }
        read(times: 1)
        #expect(answers.withLock { $0.count } == 2)
        answers.withLock { $0 = [] }
        #expect(budget.size == 0)
    }

    @Test func `S-05 a full disk is told, and that there is room again without anybody asking`()
        throws
    {
        let news = Shared<[Bool]>([])
        var logLimits = SegmentedLog.Limits()
        logLimits.segmentSize = .kibibytes(64)
        logLimits.spareCountMax = 0
        let node = try OneNode(seed: 1, logLimits: logLimits) {
            $0.checkpointSize = .kibibytes(32)
            $0.events.roomChanged = { hasRoom in news.withLock { $0.append(hasRoom) } }
        }
        func write(_ number: UInt8) throws -> Bool {
            let identity = node.world.drawIdentity()
            let isDone = Shared(false)
            Task(executorPreference: node.executor) {
                let value = Bytes(repeating: number, count: 5_000)
                if case .success = await node.submit(.write([1], value: value), identity) {
                    isDone.withLock { $0 = true }
                }
            }
            node.executor.run(until: node.world.now + .seconds(2))
            return isDone.withLock { $0 }
        }
        for number in 0..<10 as Range<UInt8> { #expect(try write(number)) }
        let files = node.world.simulatedFiles
        // Room for the rows, none for another segment of the log.
        files.plan(
            DiskFault(at: files.operationCount, .fail(.full), isSticky: true, kinds: [.open]))
        var last: UInt8 = 0
        for number in 10..<60 as Range<UInt8> {
            if try write(number) { last = number }
            if node.log.isFull { break }
        }
        #expect(node.log.isFull)
        #expect(news.withLock { $0 } == [false])

        files.clearFaults()
        node.settle()
        #expect(news.withLock { $0 } == [false, true])
        #expect(try node.readNow([1]).get()?.first.map { $0 >= last } == true)
        #expect(try write(60))
    }

    @Test func `S-04 S-05 a disk full for the rows is told, though the log has room`() throws {
        let news = Shared<[Bool]>([])
        let node = try OneNode(seed: 1) {
            $0.events.roomChanged = { hasRoom in news.withLock { $0.append(hasRoom) } }
        }
        func write(_ number: UInt8) {
            let identity = node.world.drawIdentity()
            Task(executorPreference: node.executor) {
                _ = await node.submit(.write([1], value: [number]), identity)
            }
            node.executor.run(until: node.world.now + .seconds(2))
        }
        write(1)
        let files = node.world.simulatedFiles
        files.setCapacity(files.usedSize)
        write(2)
        #expect(!node.log.isFull)
        #expect(news.withLock { $0 } == [false])
        files.setCapacity(nil)
        node.settle()
        #expect(news.withLock { $0 } == [false, true])
        #expect(try node.readNow([1]).get() == [2])
    }

    /// Core audit 8: whoever routes by readiness sends nothing to a node that is not ready.
    @Test func `S-04 S-05 a checkpoint that found no room is tried again, though nobody writes`()
        throws
    {
        let news = Shared<[Bool]>([])
        let node = try OneNode(seed: 1) {
            $0.checkpointSize = .kibibytes(16)
            $0.events.roomChanged = { hasRoom in news.withLock { $0.append(hasRoom) } }
        }
        func write(_ number: UInt8) {
            let identity = node.world.drawIdentity()
            Task(executorPreference: node.executor) {
                let value = Bytes(repeating: number, count: 2_000)
                _ = await node.submit(.write([number], value: value), identity)
            }
            node.executor.run(until: node.world.now + .milliseconds(300))
        }
        let files = node.world.simulatedFiles
        for number in 0..<4 as Range<UInt8> { write(number) }
        // The WAL has room, the first page of the rows' file has none: every checkpoint fails, but
        // no write does.
        files.plan(
            DiskFault(
                at: files.operationCount, .fail(.full), isSticky: true, kinds: [.write],
                prefix: "partitions/", offset: 0))
        for number in 4..<40 as Range<UInt8> where news.withLock({ $0.isEmpty }) { write(number) }
        // What is still under way ends, and so that nothing is applied any more.
        node.executor.run(until: node.world.now + .seconds(3))
        #expect(news.withLock { $0 } == [false])
        files.clearFaults()
        node.settle()
        #expect(news.withLock { $0 } == [false, true])
    }

    /// Without the fix a node at rest copies the same WAL again four times a second.
    @Test func `a WAL that was copied is left alone until the next commit`() throws {
        let node = try OneNode(seed: 1) { $0.checkpointSize = .kibibytes(16) }
        let files = node.world.simulatedFiles
        var counts: [Int] = []
        for number in 0..<20 as Range<UInt8> {
            let identity = node.world.drawIdentity()
            Task(executorPreference: node.executor) {
                let value = Bytes(repeating: number, count: 2_000)
                _ = await node.submit(.write([number], value: value), identity)
            }
            node.executor.run(until: node.world.now + .milliseconds(300))
        }
        for _ in 0..<3 {
            node.executor.run(until: node.world.now + .seconds(5))
            counts.append(files.operationCount)
        }
        #expect(counts[2] - counts[1] < 10, "\(counts)")
    }

    /// Core audit 9: the development setting has another segment size, and a directory goes there
    /// and back.
    @Test func `a node opens with another segment size, and back, with its records`() throws {
        var world: SimulatedWorld?
        for (round, size) in [32, 64, 32].enumerated() {
            var logLimits = SegmentedLog.Limits()
            logLimits.segmentSize = .kibibytes(size)
            let node = try OneNode(seed: UInt64(round), logLimits: logLimits, world: world)
            if round > 0 { #expect(try node.readNow([1]).get()?.first == UInt8(round - 1)) }
            for number in 0..<20 {
                let identity = node.world.drawIdentity()
                Task(executorPreference: node.executor) {
                    let value = Bytes(repeating: UInt8(round), count: 5_000 + number)
                    _ = await node.submit(.write([1], value: value), identity)
                }
                node.executor.run(until: node.world.now + .seconds(1))
            }
            node.world.simulatedFiles.restart(after: .powerLoss)
            world = node.world
        }
    }

    /// Core audit 10. Without the fix this never ends: the storage thread is woken again at the
    /// same time, for ever.
    @Test func `the only voter without its rows rests, says so, and stops`() throws {
        let first = try OneNode(seed: 1) {
            $0.checkpointSize = ByteCount(1)
            $0.tuning.trailingEntryCount = 0
        }
        for number in 0..<5 as Range<UInt8> {
            let identity = first.world.drawIdentity()
            Task(executorPreference: first.executor) {
                _ = await first.submit(.write([1], value: [number]), identity)
            }
            first.settle()
            first.world.advance(by: .seconds(1))
        }
        let files = first.world.simulatedFiles
        files.restart(after: .processCrash)
        for name in try files.list("partitions") {
            try files.remove(DiskPath("partitions").appending(name.raw))
        }
        let problems = Shared<[String]>([])
        let node = try OneNode(seed: 2, world: first.world) {
            $0.isClustered = true
            $0.events.alarm = { _, text in problems.withLock { $0.append(text) } }
        }
        Task(executorPreference: node.executor) { while await node.replicas.openNext() {} }
        node.settle()
        #expect(problems.withLock { $0 }.contains { $0.contains("only voter") })
        let isStopped = Shared(false)
        Task(executorPreference: node.executor) {
            await node.replicas.stop()
            isStopped.withLock { $0 = true }
        }
        node.settle()
        #expect(isStopped.withLock { $0 })
    }

    @Test func `S-42 the log that a start reads back is short, however much was written`() throws {
        var logLimits = SegmentedLog.Limits()
        logLimits.segmentSize = .kibibytes(64)
        let node = try OneNode(seed: 1, logLimits: logLimits) {
            $0.checkpointSize = .kibibytes(64)
        }
        var most = 0
        for number in 0..<400 as Range<UInt64> {
            let identity = node.world.drawIdentity()
            Task(executorPreference: node.executor) {
                let value = Bytes(repeating: UInt8(truncatingIfNeeded: number), count: 5_000)
                _ = await node.submit(.write([1], value: value), identity)
            }
            node.executor.run(until: node.world.now + .seconds(1))
            node.world.advance(by: .milliseconds(300))
            most = max(most, node.log.segmentCount)
        }
        // Thirty segments were written: three are allowed, and what comes while they are let go.
        #expect(most <= 6, "\(most) segments")
        node.world.simulatedFiles.restart(after: .processCrash)
        let next = try OneNode(seed: 2, logLimits: logLimits, world: node.world)
        #expect(next.log.segmentCount <= 6)
        #expect(try next.readNow([1]).get()?.count == 5_000)
    }

    @Test func `C-07 a command sent twice is applied once and answered the same`() throws {
        let node = try OneNode(seed: 1)
        let identity = node.world.drawIdentity()
        let outcomes = Shared<[Outcome]>([])
        for _ in 0..<3 {
            Task(executorPreference: node.executor) {
                let result = await node.submit(
                    .compareAndSet([1], expected: nil, value: [5]), identity)
                if case .success(let outcome) = result { outcomes.withLock { $0.append(outcome) } }
            }
        }
        node.settle()
        let all = outcomes.withLock { $0 }
        #expect(all.count == 3)
        for outcome in all {
            #expect(try RegisterOutcome(decoding: outcome.body).tookEffect)
        }
    }

    @Test func `a stopped node refuses, and has carried out what waited`() throws {
        let node = try OneNode(seed: 1)
        let identities = (0..<2).map { _ in node.world.drawIdentity() }
        let results = Shared<[Bool]>([])
        Task(executorPreference: node.executor) {
            let first = await node.submit(.write([1], value: [1]), identities[0])
            await node.replicas.stop()
            let second = await node.submit(.write([1], value: [2]), identities[1])
            results.withLock {
                $0 = [(try? first.get()) != nil, (try? second.get()) != nil]
            }
        }
        node.settle()
        #expect(results.withLock { $0 } == [true, false])
    }

    @Test func `partitions that nobody writes to have no file`() throws {
        let node = try OneNode(seed: 1, groupCount: 64)
        for number in 0..<64 {
            Task(executorPreference: node.executor) {
                _ = try? await node.value([1], at: .account("\(number)"))
            }
        }
        node.settle()
        let identity = node.world.drawIdentity()
        Task(executorPreference: node.executor) {
            _ = await node.submit(.write([1], value: [1]), identity, to: .account("7"))
        }
        node.settle()
        #expect(try node.world.files.list("partitions").map(\.raw) == ["00008"])
        // And after a restart the entries that made none are found in the log.
        node.world.simulatedFiles.restart(after: .powerLoss)
        let again = try OneNode(seed: 2, world: node.world, groupCount: 64)
        let held = Shared<[Int: Bytes?]>([:])
        for number in 0..<64 {
            Task(executorPreference: again.executor) {
                if let value = try? await again.value([1], at: .account("\(number)")) {
                    held.withLock { $0[number] = value }
                } else {
                    held.withLock { $0[number] = .some(nil) }
                }
            }
        }
        again.settle()
        #expect(held.withLock { $0 }.count == 64)
        #expect(held.withLock { $0[7] } == [1])
    }

    @Test func `S-22 the log goes round: old segments are freed whoever holds them`() throws {
        let node = try OneNode(seed: 3, groupCount: 8) { setup in
            setup.checkpointSize = .kibibytes(256)
            setup.openPartitionCountMax = 6
        }
        let value = Bytes(repeating: 7, count: 6_000)
        // One group writes once and never again; the others keep the log moving.
        for round in 0..<24 {
            let identities = (0..<8).map { _ in node.world.drawIdentity() }
            for number in 0..<8 where number > 0 || round == 0 {
                Task(executorPreference: node.executor) {
                    let result = await node.submit(
                        .write([UInt8(round % 10)], value: value), identities[number],
                        to: .account("\(number)"))
                    #expect((try? result.get()) != nil)
                }
            }
            node.settle()
            node.world.advance(by: .milliseconds(300))
        }
        #expect(node.log.segmentCount < 8, "\(node.log.segmentCount) segments of 64 KiB")
        node.world.simulatedFiles.restart(after: .powerLossLosingAll)
        let again = try OneNode(seed: 4, world: node.world, groupCount: 8)
        let found = Shared(0)
        for number in 0..<8 {
            Task(executorPreference: again.executor) {
                if (try? await again.value([0], at: .account("\(number)"))) == value {
                    found.withLock { $0 += 1 }
                }
            }
        }
        again.settle()
        #expect(found.withLock { $0 } == 8)
    }

    @Test func `a failed sync of the log fences the node: nothing more is promised`() throws {
        let fenced = Shared<[String]>([])
        let node = try OneNode(seed: 5) { setup in
            setup.events.fenced = { why in fenced.withLock { $0.append(why) } }
        }
        _ = node.readNow([1])
        node.world.simulatedFiles.plan(
            DiskFault(
                at: node.world.simulatedFiles.operationCount + 1, .fail(.io), isSticky: true,
                kinds: [.sync]))
        let identities = (0..<2).map { _ in node.world.drawIdentity() }
        let results = Shared<[Result<Outcome, RouteError>]>([])
        Task(executorPreference: node.executor) {
            for identity in identities {
                let result = await node.submit(.write([1], value: [1]), identity)
                results.withLock { $0.append(result) }
            }
        }
        node.settle()
        #expect(fenced.withLock { $0 }.count == 1)
        #expect(node.replicas.fault != nil)
        #expect(results.withLock { $0 }.first == .failure(.outcomeUnknown))
        #expect(results.withLock { $0 }.count == 2)
        #expect(throws: RouteError.self) { try node.readNow([1]).get() }
    }

    @Test(arguments: 0..<30 as Range<UInt64>)
    func `C-01 S-34 clients over lives that end anywhere: nothing acknowledged is lost`(
        seed: UInt64
    ) throws {
        let world = SimulatedWorld(seed: seed)
        var random = SeededGenerator(seed: seed)
        // For each writer's register: what it may hold.
        let possible = Shared<[UInt8: [Bytes?]]>([:])
        for life in 0..<4 as Range<UInt8> {
            world.simulatedFiles.plan(
                DiskFault(
                    at: world.simulatedFiles.operationCount
                        + Int.random(in: 10...150, using: &random),
                    .crash))
            // A missing disk is tried again, but seldom enough that the clients' half minute stays
            // cheap.
            let living = try? OneNode(seed: seed &* 7 &+ UInt64(life), world: world) { setup in
                setup.tuning.retryDelay = .seconds(10)
            }
            if let node = living {
                for writer in 0..<5 as Range<UInt8> {
                    let identities = (0..<6).map { _ in world.drawIdentity() }
                    Task(executorPreference: node.executor) {
                        for (round, identity) in identities.enumerated() {
                            let value: Bytes = [life, writer, UInt8(round)]
                            let result = await node.submit(
                                .write([writer], value: value), identity)
                            possible.withLock { possible in
                                switch result {
                                case .success: possible[writer] = [value]
                                case .failure(.outcomeUnknown):
                                    possible[writer, default: [nil]].append(value)
                                case .failure: break
                                }
                            }
                        }
                    }
                }
                node.settle()
            }
            world.simulatedFiles.clearFaults()
            world.simulatedFiles.restart(
                after: [.powerLoss, .processCrash, .powerLossLosingAll].randomElement(
                    using: &random)!)
            let node = try OneNode(seed: seed, world: world)
            for (writer, values) in possible.withLock({ $0 }).sorted(by: { $0.key < $1.key }) {
                let value = try node.readNow([writer]).get()
                #expect(values.contains(value), "seed \(seed), life \(life), writer \(writer)")
                // From here on this is what it holds.
                possible.withLock { $0[writer] = [value] }
            }
            let stopped = Shared(false)
            Task(executorPreference: node.executor) {
                await node.replicas.stop()
                stopped.withLock { $0 = true }
            }
            node.settle()
            #expect(stopped.withLock { $0 })
        }
    }
}
