import StratusCoding
import StratusDoubles
import StratusModel
import StratusPlacement
import StratusSQLite
import StratusStorage
import Testing

@testable import StratusCluster

/// M-19: a survivor's data directory after a recovery, wherever the first attempts were cut off.
@Suite struct SalvageTests {
    private static let lost = [NodeID(2), NodeID(3)]
    private static let partitionCount = 4

    private static func formation() -> ClusterFormation {
        ClusterFormation(
            peers: ["a", "b", "c"].map { ClusterFormation.Peer(name: $0, host: $0, port: 7_400) },
            name: "a", secret: [1, 2, 3], partitionCount: Self.partitionCount)
    }

    private static var limits: SegmentedLog.Limits {
        var limits = SegmentedLog.Limits()
        limits.segmentSize = .kibibytes(64)
        return limits
    }

    private static func command(_ number: UInt64) -> Command {
        Command(
            kind: .reference, identity: RequestIdentity(high: 1, low: number),
            deadlineMilliseconds: .max,
            container: ContainerReference(container: "", environment: .production),
            schemaVersion: 0, principal: Principal(kind: .system), body: [])
    }

    /// A founder of three that has some entries of the system group and of partition 1.
    ///
    /// - Parameter ahead: milliseconds by which their times are ahead of this node's clock.
    private static func survivor(seed: UInt64, ahead: Int64 = 0) throws -> SimulatedWorld {
        let world = SimulatedWorld(seed: seed)
        try Self.formation().keep(in: world)
        let log = try SegmentedLog.open(
            in: "log", of: world, limits: Self.limits, reportingTo: ReplicaInbox())
        for (group, term) in [(GroupID.system, Term(7)), (GroupID(2), Term(1 << 20 | 5))] {
            log.submit([
                LogBatch(
                    group: group, hardState: HardState(term: term, vote: NodeID(2)),
                    entries: (1...5).map { index in
                        Entry(
                            index: LogIndex(index), term: term,
                            time: HybridTime(
                                milliseconds: (ahead > 0 ? world.wallMilliseconds + ahead : 0)
                                    + Int64(index)), kind: .command,
                            payload: Self.command(index).encoded())
                    })
            ])
        }
        while log.flush() {}
        return world
    }

    private static func open(_ world: SimulatedWorld) throws -> Salvage {
        let formation = try #require(try ClusterFormation.kept(in: world))
        return try Salvage(
            in: world, formation: formation,
            founding: ClusterView.formed(by: Self.formation().formation()),
            logLimits: Self.limits
        ) { (group) throws(StoreError) in
            if group == .system { return .start }
            return try PartitionStore(
                RegisterState(), group: group, in: "partitions", of: FileSystem(world.files)
            ).appliedPosition
        }
    }

    private static func recover(_ world: SimulatedWorld, lost: [NodeID] = Self.lost) throws {
        let salvage = try Self.open(world)
        let plan = RecoveryPlan(
            for: salvage.view, at: NodeID(1), lost: lost, keep: nil,
            configurations: salvage.replicas.mapValues(\.configuration))
        try salvage.write(lost: lost, groups: plan.here, first: Self.first(in: world))
    }

    /// - Parameter deadline: of the first command, by the time of its entry.
    private static func first(
        in world: SimulatedWorld,
        deadline: @escaping (HybridTime) -> Int64 = { $0.milliseconds }
    ) -> FirstCommand {
        FirstCommand { group, time in
            if group == .system { return nil }
            var command = Self.command(100)
            command.identity = world.drawIdentity()
            command.deadlineMilliseconds = deadline(time)
            command.body = RegisterCommand.write([1], value: [2]).encoded()
            return command
        } open: { (group) throws(StoreError) in
            try PartitionStore(
                RegisterState(), group: group, in: "partitions", of: FileSystem(world.files))
        } isDone: {
            $0.verdict == .decided
        }
    }

    /// Checks the state that the next start finds.
    ///
    /// - Parameter isRepeated: whether the command runs again after an interrupted attempt, so that
    ///   groups already forced are forced once more.
    private static func check(_ world: SimulatedWorld, _ what: String, isRepeated: Bool = false)
        throws
    {
        let name = Salvage.name(after: Self.formation().cluster, lost: Self.lost)
        let kept = try #require(try ClusterFormation.kept(in: world))
        #expect(kept == Self.formation().renamed(name), "\(what)")
        let note = try #require(try RecoveryNote.kept(in: world.files))
        #expect(
            note.cluster == name && note.lost == Self.lost
                && note.groups == (0...UInt16(Self.partitionCount)).map { GroupID($0) }, "\(what)")
        let salvage = try Self.open(world)
        #expect(salvage.view.settings.cluster == name, "\(what)")
        // The view that the system partition will have is newer.
        #expect(salvage.view.settings.revision == 0, "\(what)")
        #expect(salvage.view.nodes.filter(\.isMember).map(\.id) == [NodeID(1)], "\(what)")
        for group in salvage.view.groups {
            let replica = try #require(salvage.replicas[group])
            #expect(replica.configuration == Configuration(voters: [NodeID(1)]), "\(what)")
            let had: UInt64 = [.system, GroupID(2)].contains(group) ? 5 : 0
            let added: UInt64 = group == .system ? 1 : 2
            let term: UInt64 = group == GroupID(2) ? 2 : 1
            let isOnce =
                replica.index.raw == had + added && replica.term == Term(term << 20 + 1)
            let isAgain =
                replica.index.raw > had + added && replica.term == Term((term + 1) << 20 + 1)
            #expect(isOnce || isRepeated && isAgain, "\(what) \(group) \(replica)")
            if group == .system { continue }
            // The first command is in the rows.
            let rows = try PartitionStore(
                RegisterState(), group: group, in: "partitions", of: FileSystem(world.files))
            #expect(rows.applied == replica.index, "\(what) \(group)")
            let value = try RegisterState.value(
                in: rows.answer(RegisterQuery.value([1]).query))
            #expect(value == [2], "\(what) \(group)")
        }
    }

    @Test func `everything goes on from here, under another name, with all that was there`() throws
    {
        let world = try Self.survivor(seed: 1)
        try Self.recover(world)
        try Self.check(world, "at once")
    }

    @Test func `cut off at any operation of the disk, the same command said again completes it`()
        throws
    {
        let whole = try Self.survivor(seed: 2)
        let before = whole.simulatedFiles.operationCount
        try Self.recover(whole)
        let count = whole.simulatedFiles.operationCount - before
        try #require(count > 20)
        for number in stride(from: 1, through: count, by: max(1, count / 150)) {
            for restart in [DiskRestart.powerLossLosingAll, .processCrash] {
                let world = try Self.survivor(seed: 2)
                let files = world.simulatedFiles
                files.plan(DiskFault(at: files.operationCount + number, .crash))
                try? Self.recover(world)
                files.restart(after: restart)
                files.clearFaults()
                let isDone = try ClusterFormation.kept(in: world) != Self.formation()
                if !isDone { try Self.recover(world) }
                try Self.check(world, "\(number) of \(count), \(restart)", isRepeated: true)
            }
        }
    }

    /// A partition whose clock was once wrong is a day and more ahead of this node's.
    @Test func `core audit 6: a partition whose time is far ahead is recovered as well`() throws {
        let world = try Self.survivor(seed: 5, ahead: 48 * 3_600_000)
        try Self.recover(world)
        try Self.check(world, "ahead")
    }

    @Test func `core audit 6: a first command that does nothing stops the recovery, loudly`()
        throws
    {
        let world = try Self.survivor(seed: 6, ahead: 48 * 3_600_000)
        let salvage = try Self.open(world)
        let first = Self.first(in: world) { _ in world.wallMilliseconds + 24 * 3_600_000 }
        do {
            try salvage.write(lost: Self.lost, groups: [.system, GroupID(2)], first: first)
            Issue.record("nobody noticed")
        } catch {
            guard case .notDone(GroupID(2), _) = error else {
                Issue.record("\(error)")
                return
            }
        }
        // The node does not start: its name is the old one, and the note is there.
        #expect(try ClusterFormation.kept(in: world) == Self.formation())
        #expect(try RecoveryNote.kept(in: world.files) != nil)
    }

    @Test func `another recovery waits until the first is complete`() throws {
        let world = try Self.survivor(seed: 3)
        let name = Salvage.name(after: Self.formation().cluster, lost: Self.lost)
        try RecoveryNote.keep(
            ClusterRecovery(cluster: name, node: NodeID(1), lost: Self.lost, groups: []),
            in: world.files)
        let rows = world.simulatedFiles.allFiles
        #expect(throws: Salvage.Refusal.another) {
            try Self.recover(world, lost: [NodeID(3)])
        }
        #expect(world.simulatedFiles.allFiles == rows)
        try Self.recover(world)
        try Self.check(world, "after all")
        try RecoveryNote.remove(from: world.files)
        #expect(try RecoveryNote.kept(in: world.files) == nil)
    }

    @Test func `a note that is damaged is not believed`() throws {
        let world = try Self.survivor(seed: 4)
        try Self.recover(world)
        let bytes = try #require(world.simulatedFiles.contents(of: RecoveryNote.path))
        for position in bytes.indices {
            world.simulatedFiles.flip(bit: 0, at: position, of: RecoveryNote.path)
            #expect(throws: RecoveryNote.Refusal.self) { try RecoveryNote.kept(in: world.files) }
            world.simulatedFiles.flip(bit: 0, at: position, of: RecoveryNote.path)
        }
        #expect(try RecoveryNote.kept(in: world.files) != nil)
    }
}
