import StratusCoding
import StratusDoubles
import StratusModel
import StratusStorage
import Testing

/// A partition stops before an entry that only a newer build can apply. An entry that nobody can
/// read changes nothing (C-34).
@Suite struct NewerEntryTests {
    private static func entry(_ index: UInt64, _ payload: Bytes) -> Entry {
        Entry(
            index: LogIndex(index), term: Term(1),
            time: HybridTime(milliseconds: 1_700_000_000_000 + Int64(index)), kind: .command,
            payload: payload)
    }

    private static func payload(_ index: UInt64, body: Bytes) -> Bytes {
        Command(
            kind: .reference, identity: RequestIdentity(high: 5, low: index),
            deadlineMilliseconds: .max,
            container: ContainerReference(container: "iCloud.test", environment: .production),
            schemaVersion: 0, principal: Principal(kind: .system), body: body
        ).encoded()
    }

    private static func newer(_ index: UInt64) -> Entry {
        let body = RegisterCommand.write(Bytes("r0".utf8), value: Bytes("new".utf8))
        return Self.entry(index, Self.payload(index, body: body.encoded(for: .next)))
    }

    @Test func `O-05 an older build applies what is before it, and goes on after an upgrade`()
        throws
    {
        let bench = PartitionBench()
        var limits = PartitionStore<RegisterState>.Limits()
        limits.build = .one
        let old = try bench.open(limits)
        let entries =
            Array(PartitionBench.entries(1...3)) + [Self.newer(4)]
            + Array(PartitionBench.entries(5...6))
        var outcomes: [Outcome] = []
        try old.apply(entries[...], into: &outcomes)
        try old.commit()
        #expect(outcomes.count == 3 && old.applied == LogIndex(3))
        let newer = try #require(old.newer)
        #expect(newer.index == LogIndex(4) && newer.build == .one)
        #expect(newer.description.contains("install the build"))
        let digest = old.digest
        outcomes = []
        try old.apply(entries[3...], into: &outcomes)
        #expect(outcomes.isEmpty && old.digest == digest && old.applied == LogIndex(3))
        try old.close()

        limits.build = .next
        let new = try bench.open(limits)
        #expect(new.applied == LogIndex(3) && new.digest == digest)
        try new.apply(entries[3...], into: &outcomes)
        try new.commit()
        #expect(outcomes.map(\.verdict) == [.decided, .decided, .decided] && new.newer == nil)
        let value = try RegisterState.value(
            in: new.answer(RegisterQuery.value(Bytes("r0".utf8)).query))
        #expect(value == Bytes("new".utf8))
    }

    @Test func `an envelope that cannot be read is newer or malformed`() throws {
        let cases: [(name: String, payload: Bytes, isNewer: Bool)] = [
            ("a command kind of later", [1, 77, 0, 0], true),
            ("a command version of later", [9, 1, 0, 0], true), ("nothing", [], false),
            ("version zero", [0, 1, 0], false),
            ("a known kind that is cut off", [1, 1, 0, 0], false),
        ]
        for (name, payload, isNewer) in cases {
            let store = try PartitionBench().open()
            var outcomes: [Outcome] = []
            try store.apply([Self.entry(1, payload)][...], into: &outcomes)
            #expect((store.newer != nil) == isNewer, "\(name)")
            #expect(outcomes == (isNewer ? [] : [Outcome(.unreadable)]), "\(name)")
        }
    }

    @Test func `C-34 a body that is malformed changes nothing, one of later stops`() throws {
        let cases: [(body: Bytes, isNewer: Bool)] = [
            ([9, 1], true), ([1, 99], true), ([0, 1], false), ([], false), ([1], false),
            ([1, 1, 200], false),
        ]
        for (body, isNewer) in cases {
            let store = try PartitionBench().open()
            var outcomes: [Outcome] = []
            try store.apply(
                [Self.entry(1, Self.payload(1, body: body))][...], into: &outcomes)
            #expect((store.newer != nil) == isNewer, "\(body)")
            #expect(outcomes.map(\.verdict) == (isNewer ? [] : [.unreadable]), "\(body)")
        }
    }
}
