import StratusModel
import StratusRows
import Testing

@testable import StratusQuery
@testable import StratusRecords

/// What a look-up of a record costs that its caller may not read: by counted work, not by time.
@Suite struct HiddenNameTests {
    private static let stranger = Principal(kind: .user, userRecordName: "_stranger")

    /// Secrets that their creators alone read, of many sizes, beside notes that everybody reads.
    private static func bench() throws -> Bench {
        var bench = Bench()
        let fields = [FieldDefinition(name: "t", type: FieldType(.string))]
        let schema = Schema(
            version: 1,
            types: [
                RecordType(name: "Note", fields: fields),
                RecordType(
                    name: "Secret", fields: fields,
                    grants: [
                        Grant(role: "_creator", permissions: [.read, .write]),
                        Grant(role: "_icloud", permissions: [.create]),
                    ]),
            ])
        _ = try bench.apply(.schema(.install(schema)), as: Bench.system)
        for (name, size) in [("small", 1), ("middle", 40_000), ("large", 1_000_000)] {
            for type in ["Note", "Secret"] {
                try bench.modify(
                    in: ZoneID.defaultName, of: Bench.publicDatabase,
                    .create(
                        "\(type)-\(name)", [text("t", String(repeating: "x", count: size))],
                        type: type))
            }
        }
        return bench
    }

    private static func work(
        _ names: [String], as principal: Principal = Self.stranger, over bench: Bench
    ) throws -> (items: [LookupAnswer.Item], work: ReadWork) {
        let meter = ReadMeter()
        var state = bench.state
        let ask = RecordLookup(
            database: Bench.publicDatabase, zone: ZoneID.defaultName, names: names)
        // What the state remembers of schemas and zones is read before.
        _ = try state.answer(
            RecordQuery(principal: principal, .lookup(ask)).enveloped(), within: nil, ReadMeter(),
            over: bench.rows.view)
        let answer = try state.answer(
            RecordQuery(principal: principal, .lookup(ask)).enveloped(), within: nil, meter,
            over: bench.rows.view)
        guard case .lookup(let found) = try RecordAnswer(decoding: answer.body) else {
            throw BenchError("no look-up")
        }
        return (found.items, meter.work)
    }

    private static let absent = LookupAnswer.Item.refused(RecordRefusal(.notFound))

    @Test(arguments: ["small", "middle", "large"])
    func `an invisible record of 1 MiB takes the units of an absent one, within two`(
        size: String
    ) throws {
        let bench = try Self.bench()
        let hidden = try Self.work(["Secret-\(size)"], over: bench)
        let none = try Self.work(["Secret-nobody"], over: bench)
        #expect(hidden.items == [Self.absent] && none.items == [Self.absent])
        #expect(abs(hidden.work.touchCount - none.work.touchCount) <= 2)
        #expect(hidden.work.seekCount == none.work.seekCount)
        // Their creator reads them, and everybody the notes.
        for (name, principal) in [
            ("Secret-\(size)", Bench.user), ("Note-\(size)", Self.stranger),
        ] {
            let items = try Self.work([name], as: principal, over: bench).items
            guard case .found(let record)? = items.first else {
                Issue.record("\(name) is \(items)")
                continue
            }
            #expect(record.name == name)
        }
    }

    @Test(arguments: ["Secret-large", "Secret-nobody", "Note-small"])
    func `equal reads for repeated names`(name: String) throws {
        let bench = try Self.bench()
        let once = try Self.work([name], over: bench)
        let often = try Self.work(Array(repeating: name, count: 200), over: bench)
        #expect(often.work == once.work)
        #expect(often.items == Array(repeating: once.items[0], count: 200))
        // Each place has its own answer.
        let mixed = try Self.work([name, "Note-middle", name, "nobody", name], over: bench).items
        #expect(mixed[0] == once.items[0] && mixed[2] == mixed[0] && mixed[4] == mixed[0])
        #expect(mixed[3] == Self.absent && mixed[1] != Self.absent)
    }
}
