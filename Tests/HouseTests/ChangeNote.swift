/// One note: `Kind: Title`, an empty line, one paragraph.
struct ChangeNote {
    /// In the order in which the changelog lists them.
    enum Kind: String, CaseIterable {
        case security = "Security"
        case feature = "Feature"
        case change = "Change"
        case fix = "Fix"

        var heading: String {
            switch self {
            case .security: "Security"
            case .feature: "Features"
            case .change: "Changes"
            case .fix: "Fixes"
            }
        }
    }

    static let sentencesMax = 3
    static let wordsMax = 90

    let path: String
    let lines: [String]

    init(path: String, text: String) {
        self.path = path
        self.lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    var number: String { String(self.path.split(separator: "/").last!.prefix(4)) }

    var kind: Kind? { Kind(rawValue: String(self.lines[0].prefix { $0 != ":" })) }

    var title: String { String(self.lines[0].drop { $0 != ":" }.dropFirst(2)) }

    var body: [String] { Array(self.lines.dropFirst(2).dropLast()) }

    /// The parts that the form requires and this note lacks; empty if all is well.
    var faults: [String] {
        var faults: [String] = []
        let name = self.path.split(separator: "/").last!
        if name.wholeMatch(of: /[0-9]{4}(-[a-z0-9]+)+\.md/) == nil {
            faults.append("the file is not named NNNN-a-few-words.md")
        }
        if self.kind == nil || self.title.isEmpty {
            faults.append("the first line is not 'Security|Feature|Change|Fix: Title'")
        }
        if self.title.hasSuffix(".") { faults.append("the title ends with a full stop") }
        if self.lines.count < 4 || !self.lines[1].isEmpty || self.lines.last != "" {
            faults.append("it is not a title, an empty line and a paragraph")
        }
        if self.body.contains(where: { $0.isEmpty || $0.hasPrefix("- ") || $0.hasPrefix("#") }) {
            faults.append("it has more than one paragraph")
        }
        let words = self.body.joined(separator: " ").split(separator: " ")
        if words.count > Self.wordsMax {
            faults.append("it has \(words.count) words, more than \(Self.wordsMax)")
        }
        let sentences = self.sentenceCount
        if sentences > Self.sentencesMax {
            faults.append("it has \(sentences) sentences, more than \(Self.sentencesMax)")
        }
        return faults
    }

    private var sentenceCount: Int {
        let text = self.body.joined(separator: " ").replacing(/`[^`]*`/, with: "`")
        return text.matches(of: /[.!?](?=\s|$)/).count
    }

    /// One item of a list in the changelog, whose links start at the top of the project.
    var entry: String {
        let body = self.body.joined(separator: "\n  ").replacing("](../", with: "](Docs/")
        return "- **\(self.title).** ([\(self.number)](\(self.path)))\n  \(body)\n"
    }
}
