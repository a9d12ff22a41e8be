package import StratusDoubles
import StratusHTTP
package import StratusModel

/// The observations of clients on a few records used as registers: a history that can be checked.
package struct RegisterHistory: Sendable {
    package struct Entry: Sendable, Equatable {
        package var register: Int
        package var client: Int
        package var event: LinearizabilityChecker.Event

        package init(register: Int, client: Int, event: LinearizabilityChecker.Event) {
            self.register = register
            self.client = client
            self.event = event
        }
    }

    package var entries: [Entry]

    package init(_ entries: [Entry] = []) { self.entries = entries }

    package struct Finding: Sendable {
        package var register: Int
        package var verdict: LinearizabilityChecker.Verdict
    }

    /// The registers whose results no single order of operations explains, or for which the search
    /// gave up. Empty if all is well.
    package func findings() -> [Finding] {
        var registers: [Int: [LinearizabilityChecker.Event]] = [:]
        for entry in self.entries { registers[entry.register, default: []].append(entry.event) }
        return registers.sorted { $0.key < $1.key }.compactMap { register, events in
            let verdict = LinearizabilityChecker.check(events)
            return verdict == .linearizable ? nil : Finding(register: register, verdict: verdict)
        }
    }

    // MARK: Lines

    /// One JSON object a line.
    package var lines: Bytes {
        var bytes = Bytes()
        for entry in self.entries {
            var json = JSONWriter()
            json.object {
                $0.member("register", entry.register)
                $0.member("client", entry.client)
                switch entry.event.operation {
                case .read(let value):
                    $0.member("operation", "read")
                    if let value { $0.member("value", value) }
                case .write(let value):
                    $0.member("operation", "write")
                    if let value { $0.member("value", value) }
                case .compareAndSet(let expected, let value):
                    $0.member("operation", "cas")
                    if let expected { $0.member("expected", expected) }
                    if let value { $0.member("value", value) }
                case .failedCompareAndSet(let expected):
                    $0.member("operation", "failed-cas")
                    if let expected { $0.member("expected", expected) }
                }
                $0.member("called", entry.event.calledAt)
                if let returned = entry.event.returnedAt { $0.member("returned", returned) }
            }
            bytes += json.finish()
            bytes.append(UInt8(ascii: "\n"))
        }
        return bytes
    }

    package struct Unreadable: Error, CustomStringConvertible {
        package var line: Int
        package var description: String { "line \(self.line) is no entry of a history" }
    }

    package init(lines: Bytes) throws(Unreadable) {
        self.entries = []
        for (number, line) in lines.split(separator: UInt8(ascii: "\n")).enumerated() {
            guard let root = (try? JSONDocument(parsing: Bytes(line)))?.root,
                let register = root["register"]?.int64, let client = root["client"]?.int64,
                let called = root["called"]?.int64
            else { throw Unreadable(line: number + 1) }
            let value = root["value"]?.int64.map { Int($0) }
            let expected = root["expected"]?.int64.map { Int($0) }
            let operation: LinearizabilityChecker.Operation
            switch root["operation"]?.string {
            case "read": operation = .read(value)
            case "write": operation = .write(value)
            case "cas": operation = .compareAndSet(expected: expected, value: value)
            case "failed-cas": operation = .failedCompareAndSet(expected: expected)
            default: throw Unreadable(line: number + 1)
            }
            self.entries.append(
                Entry(
                    register: Int(register), client: Int(client),
                    event: LinearizabilityChecker.Event(
                        operation, calledAt: called, returnedAt: root["returned"]?.int64)))
        }
    }
}

typealias RegisterOperation = LinearizabilityChecker.Operation
