/// One `--option` of a command.
package struct OptionDefinition: Sendable, Equatable {
    /// Without the dashes: `data`, `token-file`.
    package var name: String
    /// The one-letter form, without its dash.
    package var letter: Character?
    package var value: ValueKind?
    /// One sentence for `--help`, without a full stop.
    package var summary: String
    /// The value when the option is absent. The help shows it and ``Invocation`` gives it.
    package var `default`: String?
    /// The variable of the environment that stands for the option where it is absent.
    package var variable: String?
    package var required: Bool
    /// May stand more than once; every value counts.
    package var repeats: Bool

    /// An option that is there or not.
    package static func flag(_ name: String, _ letter: Character? = nil, _ summary: String)
        -> OptionDefinition
    {
        OptionDefinition(
            name: name, letter: letter, value: nil, summary: summary, default: nil, variable: nil,
            required: false, repeats: false)
    }

    /// An option that takes a value.
    package static func value(
        _ name: String, _ value: ValueKind, default: String? = nil, variable: String? = nil,
        required: Bool = false, repeats: Bool = false, _ summary: String
    ) -> OptionDefinition {
        OptionDefinition(
            name: name, letter: nil, value: value, summary: summary, default: `default`,
            variable: variable, required: required, repeats: repeats)
    }
}

/// A word that stands alone: its position says what it is.
package struct PositionalDefinition: Sendable, Equatable {
    /// For `Invocation` and for the help, where it stands in capitals.
    package var name: String
    package var value: ValueKind
    package var summary: String
    package var required: Bool

    package init(_ name: String, _ value: ValueKind, required: Bool = true, _ summary: String) {
        self.name = name
        self.value = value
        self.summary = summary
        self.required = required
    }
}

/// The allowed form of a value. Checked while parsing, so that no command meets a value it cannot
/// read.
package enum ValueKind: Sendable, Equatable {
    /// Anything but the empty string. The word stands for it in the help: `ID`, `NAME`.
    case text(String)
    case file
    case directory
    /// `HOST:PORT`, `[V6]:PORT`, or `unix:PATH`.
    case address
    case integer(ClosedRange<Int>)
    /// `250ms`, `5s`, `2m`, `1h`, `7d`.
    case duration
    case choice([String])

    package var placeholder: String {
        switch self {
        case .text(let word): word
        case .file: "FILE"
        case .directory: "DIR"
        case .address: "ADDRESS"
        case .integer: "N"
        case .duration: "DURATION"
        case .choice(let words): words.joined(separator: "|")
        }
    }

    /// Nil when `value` is one of these; otherwise what would be.
    package func refusal(of value: String) -> String? {
        switch self {
        case .text, .file, .directory:
            return value.isEmpty ? "something other than an empty value" : nil
        case .address:
            return ListenAddress(value) == nil
                ? "HOST:PORT, [IPV6]:PORT or unix:PATH, for example 127.0.0.1:8080" : nil
        case .integer(let range):
            guard let number = Int(value), range.contains(number) else {
                return "a whole number from \(range.lowerBound) to \(range.upperBound)"
            }
            return nil
        case .duration:
            return DurationText.parse(value) == nil
                ? "a number with ms, s, m, h or d, for example 30s" : nil
        case .choice(let words):
            if words.contains(value) { return nil }
            let list = words.joined(separator: ", ")
            guard let near = Suggestion.nearest(to: value, among: words) else {
                return "one of \(list)"
            }
            return "one of \(list) (did you mean '\(near)'?)"
        }
    }
}
