import Testing

@testable import StratusModel

/// Every number on disk and among nodes stands once in one table.
@Suite struct NumberRegistryTests {
    @Test func `no family has a gap or gives a number twice`() {
        for family in NumberFamily.all { #expect(family.faults == []) }
        #expect(Set(NumberFamily.all.map(\.name)).count == NumberFamily.all.count)
    }

    @Test func `a gap, a duplicate number and a duplicate name are found`() {
        #expect(NumberFamily("rows", [1: "a", 3: "b"]).faults.count == 1)
        #expect(NumberFamily("rows", [1: "a", 3: "b"], blocks: [3]).faults == [])
        #expect(
            NumberFamily("rows", [1: "a", 2: "b"], later: [(.two, [2: "c"])]).faults.count == 1)
        #expect(NumberFamily("rows", [1: "a", 2: "a"]).faults.count == 1)
    }

    @Test func `nothing is registered above the level of this build`() {
        for family in NumberFamily.all {
            for entry in family.entries { #expect(entry.since <= .build, "\(family.name)") }
        }
        #expect(FeatureLevel.build.release != nil)
    }

    @Test func `what level 1 has is what commit 4e52292 had`() {
        // The sums are of the numbers of that commit, which nobody can change any more.
        let sums = NumberFamily.all.map { family in
            "\(family.name) "
                + String(
                    family.entries.filter { $0.since == .one }.reduce(0) { $0 + Int($1.number) })
        }
        #expect(
            sums == [
                "table 78", "snapshot version 1", "snapshot frame 3", "job 277",
                "identity row 91", "subscription row 0", "index kind 15", "system row 28",
                "notice 6",
                "entry version 1",
                "entry kind 10", "command version 1", "command kind 265", "principal kind 10",
                "record command version 1", "record command 55", "identity command version 1",
                "system command version 1", "system command 136", "mail command version 1",
                "mail command 6", "mail version 1", "mail 28", "register command version 1",
                "register command 6", "peer protocol 3", "peer message 190", "peer refusal 36",
                "consensus version 1", "consensus message 91", "heartbeat version 1",
                "node question version 1", "node question 28", "node reply 10",
                "record query version 1", "record query 55", "identity query version 1",
                "identity query 3", "system query version 1", "system query 6",
            ])
    }

    @Test func `the enumerations of this module are registered`() {
        let all = UInt8.min...UInt8.max
        for number in all {
            #expect(
                Table.all.contains { $0.rawValue == number }
                    == (NumberFamily.table.level(of: number) != nil))
            #expect(
                (Command.Kind(rawValue: number) != nil)
                    == (NumberFamily.commandKind.level(of: number) != nil))
            #expect(
                (Entry.Kind(rawValue: number) != nil)
                    == (NumberFamily.entryKind.level(of: number) != nil))
            #expect(
                (Principal.Kind(rawValue: number) != nil)
                    == (NumberFamily.principalKind.level(of: number) != nil))
            #expect(
                (PeerRefusal.Reason(rawValue: number) != nil)
                    == (NumberFamily.peerRefusal.level(of: number) != nil))
        }
    }

    // MARK: Reading a command by its numbers

    private static func command(_ kind: Command.Kind, _ body: Bytes) -> Command {
        Command(
            kind: kind, identity: RequestIdentity(high: 1, low: 1), deadlineMilliseconds: 1,
            container: ContainerReference(container: "c", environment: .production),
            schemaVersion: 0, principal: Principal(kind: .system), body: body)
    }

    @Test func `an unknown kind or version is newer, damage is malformed`() {
        let known = Self.command(.records, [1, 1, 9, 9])
        #expect(known.reading == .readable(since: .one))
        #expect(known.level == .one)
        #expect(Self.command(.records, [1, 200]).reading == .newer("record command 200"))
        #expect(Self.command(.records, [200, 1]).reading == .newer("record command version 200"))
        #expect(Self.command(.system, [1, 200]).reading == .newer("system command 200"))
        #expect(Self.command(.mail, [1, 200]).reading == .newer("mail command 200"))
        #expect(Self.command(.records, [200, 1]).level == .unregistered)
        for body: Bytes in [[], [0], [1], [0, 1], [1, 0]] {
            #expect(Self.command(.records, body).reading == .malformed)
        }
    }

    @Test func `an envelope that cannot be read is newer by its version or kind alone`() {
        #expect(Command.readingOfEnvelope([9, 1]) == .newer("command version 9"))
        #expect(Command.readingOfEnvelope([1, 77]) == .newer("command kind 77"))
        #expect(Command.readingOfEnvelope([1, 1]) == .malformed)
        #expect(Command.readingOfEnvelope([1]) == .malformed)
        #expect(Command.readingOfEnvelope([]) == .malformed)
        #expect(Command.readingOfEnvelope([0, 1]) == .malformed)
    }

    @Test func `a build takes what its level has for readable and the rest for newer`() {
        let two = CommandReading.readable(since: .two)
        #expect(two.asSeen(by: .one) == .newer("a format of feature level 2"))
        #expect(two.asSeen(by: .two) == two)
        #expect(CommandReading.malformed.asSeen(by: .one) == .malformed)
        #expect(two.joined(with: .readable(since: .one)) == two)
        #expect(two.joined(with: .malformed) == .malformed)
        #expect(CommandReading.malformed.joined(with: .newer("x")) == .newer("x"))
    }

    @Test func `a level is asked when it matters, not when it is passed in`() {
        let box = Box()
        let level = ClusterLevel { box.level }
        #expect(!level.allows(.two))
        box.level = .two
        #expect(level.allows(.two))
        #expect(!ClusterLevel.build.allows(.unregistered))
    }

    /// Unchecked: Sendable because one test alone uses it, on one thread.
    private final class Box: @unchecked Sendable {
        var level = FeatureLevel.one
    }
}
