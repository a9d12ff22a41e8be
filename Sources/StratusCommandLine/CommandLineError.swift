/// Why a command line was not understood, in words for the person who typed it.
package struct CommandLineError: Error, Sendable, Equatable, CustomStringConvertible {
    package enum Kind: Sendable, Equatable {
        case unknownCommand, unknownOption, unexpectedArgument
        case missingCommand, missingValue, missingOption, missingArgument
        case unwantedValue, wrongValue, repeatedOption
    }

    package var kind: Kind
    /// The program and the commands understood so far: `stratus config`.
    package var command: String
    /// The error, with the words as typed.
    package var text: String
    /// The word that was probably meant, ready to be typed; nil if nothing is near.
    package var suggestion: String?

    package init(kind: Kind, command: String, text: String, suggestion: String? = nil) {
        self.kind = kind
        self.command = command
        self.text = text
        self.suggestion = suggestion
    }

    /// Two or three lines: what is wrong, what was meant, where to read on.
    package var description: String {
        var lines = ["\(self.command): \(self.text)"]
        if let suggestion { lines.append("Did you mean '\(suggestion)'?") }
        lines.append("Run '\(self.command) --help' to see what there is.")
        return lines.joined(separator: "\n")
    }
}
