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
        // Twice: by the number itself, and because there are two numbers and one level.
        #expect(NumberFamily("rows", [1: "a", 1: "b"]).faults.count == 2)
        #expect(NumberFamily("rows", [1: "a"], since: [2: .next]).faults.count == 1)
        #expect(NumberFamily("rows", [1: "a", 2: "a"]).faults.count == 1)
    }

    @Test func `nothing but the example is registered above the level of this build`() {
        var above: [String] = []
        for family in NumberFamily.all {
            above += family.entries.filter { $0.since > .build }.map {
                "\(family.name) \($0.number)"
            }
        }
        #expect(above == ["register command version 2"])
        #expect(FeatureLevel.build.release != nil && FeatureLevel.next.release == nil)
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

    /// Whether the enumeration has just the numbers of the family.
    private static func agree<Value: RawRepresentable<UInt8>>(
        _ type: Value.Type, _ family: NumberFamily
    ) -> Bool {
        (UInt8.min...UInt8.max).allSatisfy {
            (Value(rawValue: $0) != nil) == (family.level(of: $0) != nil)
        }
    }

    @Test func `the enumerations that stand inside rows and links are registered`() {
        #expect(Self.agree(Environment.self, .environment))
        #expect(Self.agree(DatabaseScope.self, .databaseScope))
        #expect(Self.agree(ScalarType.self, .scalarType))
        #expect(Self.agree(Reference.Action.self, .referenceAction))
        #expect(Self.agree(Grant.Permission.self, .permission))
        #expect(Self.agree(Comparator.self, .comparator))
        #expect(Self.agree(SystemField.self, .systemField))
        #expect(Self.agree(Outcome.Verdict.self, .verdict))
        #expect(Self.agree(PeerPurpose.self, .peerPurpose))
        #expect(Self.agree(CopyRefusal.self, .copyRefusal))
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
        let next = CommandReading.readable(since: .next)
        #expect(next.asSeen(by: .one) == .newer("a format of feature level 2"))
        #expect(next.asSeen(by: .next) == next)
        #expect(CommandReading.malformed.asSeen(by: .one) == .malformed)
        #expect(next.joined(with: .readable(since: .one)) == next)
        #expect(next.joined(with: .malformed) == .malformed)
        #expect(CommandReading.malformed.joined(with: .newer("x")) == .newer("x"))
    }

    @Test func `a level is asked when it matters, not when it is passed in`() {
        let box = Box()
        let level = ClusterLevel { box.level }
        #expect(!level.allows(.next))
        box.level = .next
        #expect(level.allows(.next))
        #expect(!ClusterLevel.build.allows(.unregistered))
    }

    /// Unchecked: Sendable because one test alone uses it, on one thread.
    private final class Box: @unchecked Sendable {
        var level = FeatureLevel.one
    }
}
