import Foundation
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

    /// `shared/vectors/linearizability`, where it is: beside the package or where STRATUS_SHARED says.
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
