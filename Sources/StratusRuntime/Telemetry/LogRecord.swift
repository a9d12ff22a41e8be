/// How much somebody needs to know.
package enum LogLevel: UInt8, Sendable, Comparable, CaseIterable {
    /// A step that a developer follows in detail.
    case debug = 0
    /// A line that shows an operator that all is well.
    case info = 1
    /// Something is wrong and Stratus deals with it.
    case warning = 2
    /// Something is wrong and a person has to look.
    case error = 3

    package var name: String {
        switch self {
        case .debug: "debug"
        case .info: "info"
        case .warning: "warning"
        case .error: "error"
        }
    }

    package init?(name: String) {
        guard let level = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = level
    }

    package static func < (one: Self, other: Self) -> Bool { one.rawValue < other.rawValue }
}

/// The value of a field. Never a record's contents, never a secret: a ``Secret`` cannot be turned
/// into one.
package enum LogValue: Sendable, Equatable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByBooleanLiteral
{
    case text(String)
    case integer(Int64)
    case double(Double)
    case bool(Bool)
    /// Written in milliseconds.
    case duration(Duration)

    package init(stringLiteral value: String) { self = .text(value) }
    package init(integerLiteral value: Int64) { self = .integer(value) }
    package init(booleanLiteral value: Bool) { self = .bool(value) }

    package static func count(_ value: Int) -> LogValue { .integer(Int64(value)) }
    /// An error, a state, an identifier: whatever describes itself.
    package static func describing(_ value: some CustomStringConvertible) -> LogValue {
        .text(value.description)
    }
}

/// The fields of a line, in the order written: `["address": .text(address), "attempt": 3]`.
package struct LogFields: Sendable, ExpressibleByDictionaryLiteral {
    package var all: [(name: StaticString, value: LogValue)]

    package init(dictionaryLiteral elements: (StaticString, LogValue)...) {
        self.all = elements.map { (name: $0.0, value: $0.1) }
    }

    package mutating func append(_ name: StaticString, _ value: LogValue) {
        self.all.append((name, value))
    }
}

/// One line of the log before it is written.
package struct LogRecord: Sendable {
    package var wallMilliseconds: Int64
    package var level: LogLevel
    /// Static, so that lines can be counted by it and nothing foreign gets in.
    package var text: StaticString
    package var fields: LogFields

    package init(
        wallMilliseconds: Int64, level: LogLevel, text: StaticString, fields: LogFields = [:]
    ) {
        self.wallMilliseconds = wallMilliseconds
        self.level = level
        self.text = text
        self.fields = fields
    }
}
