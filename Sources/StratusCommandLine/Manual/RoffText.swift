/// Text in the language of man pages: it grows by macros and by paragraphs that cannot be mistaken
/// for macros.
package struct RoffText {
    /// Checkers of man pages complain of longer lines.
    static let width = 74

    package private(set) var text = ""

    package init() {}

    /// The first line of a page: its title and what stands in its margins.
    package mutating func title(_ name: String, _ section: Int, _ edition: ManualPage.Edition) {
        // A date with escaped dashes is none.
        self.text +=
            ".TH \(Self.escape(name.uppercased())) \(section) \(edition.date) "
            + "\"Stratus \(Self.escape(edition.version))\" Stratus\n"
    }

    /// A line such as `.SH NAME`. What follows the name is put in quotes where it must be.
    package mutating func macro(_ name: String, _ arguments: String...) {
        self.text += "." + name
        for argument in arguments {
            let escaped = Self.escape(argument).replacing("\"", with: "\\(dq")
            self.text += escaped.contains(" ") ? " \"\(escaped)\"" : " \(escaped)"
        }
        self.text += "\n"
    }

    /// A paragraph's words, in lines.
    package mutating func words(_ text: String) {
        let breakable = text.split(separator: " ").map(Self.broken).joined(separator: " ")
        for line in HelpText.wrap(breakable, width: Self.width, indent: 0) {
            self.text += (line.hasPrefix(".") ? "\\&" : "") + line + "\n"
        }
    }

    /// A line that is shown as it is.
    package mutating func code(_ text: String) {
        let line = Self.escape(text)
        self.text += (line.hasPrefix(".") ? "\\&" : "") + line + "\n"
    }

    /// A word that may be broken where its parts end, and a long one anywhere.
    private static func broken(_ word: Substring) -> String {
        var (out, run) = ("", 0)
        for character in word {
            out += Self.escape(String(character))
            run += 1
            if character == "|" || character == "/" || run == 32 { (out, run) = (out + "\\:", 0) }
        }
        return out
    }

    /// Quotes and dashes come out as they are typed, so that a command can be copied.
    static func escape(_ text: String) -> String {
        var out = ""
        for character in text {
            switch character {
            case "\\": out += "\\e"
            case "-": out += "\\-"
            case "'": out += "\\(aq"
            case "`": out += "\\(ga"
            case "~": out += "\\(ti"
            case "^": out += "\\(ha"
            default: out.append(character)
            }
        }
        return out
    }
}
