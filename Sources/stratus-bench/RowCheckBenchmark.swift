import StratusCoding
import StratusModel
import StratusRuntime
import StratusSQLite
import StratusStorage

/// What it costs to add up the rows of a partition, and to replace them by those of another.
extension StorageBenchmark {
    /// - Parameter count: of records of 300 bytes, each with four index rows.
    func check(_ count: Int) throws {
        let world = try self.world("check")
        let store = try PartitionStore(
            BenchState(indexCount: 4), group: Self.group, in: "partitions",
            of: FileSystem(world.files))
        var index: UInt64 = 0
        var outcomes: [Outcome] = []
        for number in 0..<UInt64(count) {
            index += 1
            var key = SeededGenerator(seed: number)
            let (high, low) = (key.next(), key.next())
            let command = Command(
                kind: .reference, identity: RequestIdentity(high: 1, low: index),
                deadlineMilliseconds: Int64(index) + 30_000,
                container: ContainerReference(container: "b", environment: .production),
                schemaVersion: 0, principal: Principal(kind: .system),
                body: (0..<16).map {
                    UInt8(truncatingIfNeeded: ($0 < 8 ? high : low) >> ($0 % 8 * 8))
                }
                    + Bytes(repeating: UInt8(truncatingIfNeeded: high), count: 300))
            outcomes.removeAll(keepingCapacity: true)
            try store.apply([Self.entry(index, command.encoded())][...], into: &outcomes)
            try store.publish()
            if index % 2_000 == 0 { try store.commit() }
            if index % 20_000 == 0 { try store.checkpoint() }
        }
        try store.checkpoint()
        let size = Double(try store.snapshotSize.raw) / 1e6
        print("\(count) records of 300 bytes, 4 index rows each: \(Self.text(size)) MB of pages")
        var (checks, slices, spools, installs): ([Double], [Double], [Double], [Double]) =
            ([], [], [], [])
        for round in 0..<self.rounds {
            let check = try self.drain(try store.check(), in: world)
            checks.append(check.all)
            slices.append(check.longest)
            let spooling = try store.snapshot()
            spools.append(try self.drain(spooling, in: world).all)
            let other = try PartitionStore(
                BenchState(indexCount: 4), group: Self.group, in: "partitions",
                of: FileSystem(try self.world("replaced-\(round)").files))
            let identity = SnapshotIdentity(
                index: store.applied, term: Term(1), configuration: Configuration(voters: []),
                digest: store.digest)
            installs.append(
                try self.drain(try other.install(identity, from: spooling.source()), in: world).all)
        }
        let what = [
            ("its digest added up, s", checks), ("the longest slice of that, ms", slices),
            ("spooled for a peer, s", spools), ("installed, s", installs),
        ]
        for (name, values) in what { print("  \(name): \(Self.text(Self.median(values)))") }
    }

    /// - Returns: seconds for all slices, and milliseconds for the longest.
    private func drain(_ work: any SnapshotWork, in world: RealWorld) throws -> (
        all: Double, longest: Double
    ) {
        let start = world.now
        var longest = 0.0
        while true {
            let before = world.now
            let isMore = try work.advance() != nil
            longest = max(longest, Self.seconds(world.now - before))
            if !isMore { return (Self.seconds(world.now - start), longest * 1_000) }
        }
    }
}
