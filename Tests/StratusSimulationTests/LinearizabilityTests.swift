import Foundation
import StratusDoubles
import StratusModel
import StratusSimulation
import Testing

/// The checker agrees with histories whose verdict is known.
@Suite struct LinearizabilityTests {
    typealias Checker = LinearizabilityChecker
    typealias Event = LinearizabilityChecker.Event

    static let rows: [(name: String, events: [Event], isFine: Bool)] = [
        ("nothing", [], true),
        (
            "a read of what was written",
            [
                Event(.write(1), calledAt: 0, returnedAt: 1),
                Event(.read(1), calledAt: 2, returnedAt: 3),
            ], true
        ),
        (
            "a stale read",
            [
                Event(.write(1), calledAt: 0, returnedAt: 1),
                Event(.write(2), calledAt: 2, returnedAt: 3),
                Event(.read(1), calledAt: 4, returnedAt: 5),
            ], false
        ),
        (
            "reads that go back while a write is under way",
            [
                Event(.write(1), calledAt: 0, returnedAt: 10),
                Event(.read(1), calledAt: 1, returnedAt: 2),
                Event(.read(nil), calledAt: 3, returnedAt: 4),
            ], false
        ),
        (
            "an unknown write seen late",
            [
                Event(.write(1), calledAt: 0, returnedAt: nil),
                Event(.read(nil), calledAt: 1, returnedAt: 2),
                Event(.read(1), calledAt: 3, returnedAt: 4),
            ], true
        ),
        (
            "an unknown write seen, then not",
            [
                Event(.write(1), calledAt: 0, returnedAt: nil),
                Event(.read(1), calledAt: 1, returnedAt: 2),
                Event(.read(nil), calledAt: 3, returnedAt: 4),
            ], false
        ),
        (
            "two winners of one compare-and-set",
            [
                Event(.compareAndSet(expected: nil, value: 1), calledAt: 0, returnedAt: 2),
                Event(.compareAndSet(expected: nil, value: 2), calledAt: 1, returnedAt: 3),
            ], false
        ),
        (
            "a loser of a compare-and-set",
            [
                Event(.compareAndSet(expected: nil, value: 1), calledAt: 0, returnedAt: 2),
                Event(.failedCompareAndSet(expected: nil), calledAt: 1, returnedAt: 3),
            ], true
        ),
        (
            "a lost write",
            [
                Event(.write(1), calledAt: 0, returnedAt: 1),
                Event(.read(nil), calledAt: 2, returnedAt: 3),
            ], false
        ),
    ]

    @Test(arguments: rows.map(\.name)) func `a history is fine or not`(name: String) throws {
        let row = try #require(Self.rows.first { $0.name == name })
        let verdict = Checker.check(row.events)
        #expect((verdict == .linearizable) == row.isFine, "\(name): \(verdict)")
    }

    // MARK: Drawn histories

    /// A register that works, asked by a few clients at once, some of which never hear.
    static func history(
        of count: Int, clients: Int, unknown: Int, values: Int, _ random: inout SeededGenerator
    ) -> [Event] {
        var held: Int?
        var free = Array(repeating: 0 as Int64, count: clients)
        var events: [Event] = []
        for number in 0..<count {
            // Each takes effect at a moment of its own, and the call and the return are about it.
            let effect = Int64(number) * 10
            let client = (0..<clients).filter { free[$0] < effect }.randomElement(using: &random)
            guard let client else { continue }
            let called = Int64.random(in: max(free[client], effect - 40)...effect, using: &random)
            let returned = effect + .random(in: 1...40, using: &random)
            free[client] = returned
            let value = Int.random(in: 0..<values, using: &random)
            let isUnknown = Int.random(in: 0..<100, using: &random) < unknown
            let isLost = isUnknown && Bool.random(using: &random)
            let operation: Checker.Operation
            switch Int.random(in: 0..<4, using: &random) {
            case 0: operation = .write(value)
            case 1:
                let expected = Bool.random(using: &random) ? held : value
                operation =
                    expected == held || isUnknown
                    ? .compareAndSet(expected: expected, value: number % values)
                    : .failedCompareAndSet(expected: expected)
            default: operation = .read(held)
            }
            switch operation {
            case .write(let value) where !isLost: held = value
            case .compareAndSet(held, let value) where !isLost: held = value
            default: break
            }
            events.append(
                Event(operation, calledAt: called, returnedAt: isUnknown ? nil : returned))
        }
        return events
    }

    /// Tries every order; an operation nobody knows the outcome of may be left out.
    static func isExplained(_ left: [Event], holding value: Int?) -> Bool {
        if left.allSatisfy({ $0.returnedAt == nil }) { return true }
        let first = left.compactMap(\.returnedAt).min() ?? .max
        for (place, event) in left.enumerated() where event.calledAt <= first {
            var others = left
            others.remove(at: place)
            let after: Int?
            switch event.operation {
            case .read(let seen):
                guard seen == value else { continue }
                after = value
            case .write(let new): after = new
            case .compareAndSet(let expected, let new):
                guard expected == value else { continue }
                after = new
            case .failedCompareAndSet(let expected):
                guard expected != value else { continue }
                after = value
            }
            if Self.isExplained(others, holding: after) { return true }
        }
        return false
    }

    @Test func `small histories get the verdict that comes of trying every order`() {
        var counts = [true: 0, false: 0]
        for seed in 1...4_000 as ClosedRange<UInt64> {
            var random = SeededGenerator(seed: seed)
            var events = Self.history(of: 9, clients: 3, unknown: 30, values: 3, &random)
            // Every other one has a read that may have seen what was not there.
            if seed.isMultiple(of: 2), let place = events.indices.randomElement(using: &random),
                case .read = events[place].operation
            {
                events[place].operation = .read(Int.random(in: 0..<3, using: &random))
            }
            events.removeAll {
                if case .read = $0.operation { $0.returnedAt == nil } else { false }
            }
            let isFine = Self.isExplained(events, holding: nil)
            #expect(
                (Checker.check(events) == .linearizable) == isFine, "seed \(seed): \(events)")
            counts[isFine, default: 0] += 1
        }
        #expect(counts.values.allSatisfy { $0 > 300 }, "\(counts)")
    }

    @Test func `a long history of which much is unknown is decided in few steps`() {
        var random = SeededGenerator(seed: 7)
        var events = Self.history(
            of: 60_000, clients: 8, unknown: 2, values: .max, &random)
        let unknown = events.count { $0.returnedAt == nil }
        #expect(unknown > 500)
        #expect(Checker.check(events, stepCountMax: 10 * events.count) == .linearizable)
        // One read late in the history of what was overwritten long before.
        let old = events.lazy.compactMap { event -> Int? in
            if case .read(let value?) = event.operation { value } else { nil }
        }.first
        let last = events.lastIndex { if case .read = $0.operation { true } else { false } }
        if let last { events[last] = Event(.read(old), calledAt: 500_000, returnedAt: 500_001) }
        let verdict = Checker.check(events, stepCountMax: 100 * events.count)
        guard case .violated = verdict else { Issue.record("\(verdict)"); return }
    }

    /// The folder `shared/vectors/linearizability`, beside the package or where STRATUS_SHARED
    /// says.
    static let folder: URL? = {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let places =
            [ProcessInfo.processInfo.environment["STRATUS_SHARED"]].compactMap { $0 }
            .map { URL(fileURLWithPath: $0) }
            + ["../shared", "../../shared"].map { root.appendingPathComponent($0) }
        return places.map { $0.appendingPathComponent("vectors/linearizability") }
            .first { FileManager.default.fileExists(atPath: $0.path) }
    }()

    @Test(.enabled(if: folder != nil, "skipped: shared/vectors/linearizability is not here"))
    func `recorded histories get the verdict they are known to have`() throws {
        let folder = try #require(Self.folder)
        let verdicts = try String(
            contentsOf: folder.appendingPathComponent("verdicts.tsv"), encoding: .utf8)
        var count = 0
        for line in verdicts.split(separator: "\n") {
            let fields = line.split(whereSeparator: { $0 == "\t" || $0 == " " }).map(String.init)
            guard fields.count >= 2, fields[0].hasSuffix(".log") else { continue }
            let text = try String(
                contentsOf: folder.appendingPathComponent(fields[0]), encoding: .utf8)
            let isKnownFine = ["1", "true", "ok", "linearizable", "yes"].contains(
                fields[1].lowercased())
            let verdict = Checker.check(Self.parse(text))
            #expect(verdict != .undecided, "\(fields[0])")
            #expect((verdict == .linearizable) == isKnownFine, "\(fields[0]): \(verdict)")
            count += 1
        }
        #expect(count >= 50, "the verdicts were not understood")
    }

    /// Lines of `… jepsen.util - process :invoke|:ok|:fail|:info :read|:write|:cas value`.
    static func parse(_ text: String) -> [Event] {
        var open: [Int: Int] = [:]
        var events: [Event?] = []
        var time: Int64 = 0
        for line in text.split(separator: "\n") {
            let words = line.split(whereSeparator: { $0 == " " || $0 == "\t" }).map(String.init)
            guard let start = words.firstIndex(of: "jepsen.util"), words.count > start + 4,
                let process = Int(words[start + 2])
            else { continue }
            time += 1
            let values = words[(start + 5)...].map {
                Int($0.trimmingCharacters(in: CharacterSet(charactersIn: "[]")))
            }
            switch words[start + 3] {
            case ":invoke":
                open[process] = events.count
                let operation: Checker.Operation =
                    switch words[start + 4] {
                    case ":read": .read(nil)
                    case ":write": .write(values[0])
                    default: .compareAndSet(expected: values[0], value: values[1])
                    }
                events.append(Event(operation, calledAt: time, returnedAt: nil))
            case ":ok":
                guard let number = open.removeValue(forKey: process) else { continue }
                events[number]?.returnedAt = time
                if case .read = events[number]?.operation {
                    events[number]?.operation = .read(values[0])
                }
            case ":fail":
                guard let number = open.removeValue(forKey: process) else { continue }
                if case .compareAndSet(let expected, _) = events[number]?.operation {
                    events[number]?.operation = .failedCompareAndSet(expected: expected)
                    events[number]?.returnedAt = time
                } else {
                    events[number] = nil
                }
            default: open[process] = nil
            }
        }
        return events.compactMap { $0 }
    }
}
