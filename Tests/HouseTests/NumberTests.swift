import Testing

/// Every registered number is made by the product. A number that tests alone can make stands for a
/// form that nobody sends, and is kept for nobody.
@Suite struct NumberTests {
    let repository = Repository()

    /// What tests, the simulator and the programs that measure replicate and drive.
    static let doubles: Set = [
        "StratusDoubles", "StratusSimulation", "StratusLoad", "stratus-bench", "stratus-load",
        "stratus-sim",
    ]

    /// Families of which nothing is a name in the sources, or which the product never makes.
    static let exempt: [String: String] = [
        "register command": "the reference state belongs to tests and the simulator",
        "comparator": "requests name them, as Comparator+WireName says",
        "peer protocol": "PeerGreeting says the numbers themselves",
    ]

    /// Numbers that the sources call by another name than the registry.
    static let spellings: [String: String] = [
        "fill indexes": "fill", "drop indexes": "drop", "clear fields": "clear",
        "install schema": "install",
        "extend schema": "extend", "withdrawn certificate": "withdrawn",
    ]

    /// Numbers that partitions know and no gateway makes yet. Whoever makes one deletes it here.
    static let coming: Set = ["phone", "encrypted data reset"]

    @Test func `the product makes every registered number`() throws {
        let registry = try self.repository.text(
            "Sources/StratusModel/Levels/NumberRegistry.swift")
        var files = try self.repository.swiftFiles(under: "Sources")
        files.removeAll { Self.doubles.contains($0.module) }
        let families = Self.families(of: registry)
        #expect(families.count > 20)
        for (family, numbers) in families
        where !family.hasSuffix("version") && Self.exempt[family] == nil {
            let missing = numbers.filter {
                (!Self.isMade($0, in: files) && !Self.isType($0, in: files))
                    != Self.coming.contains($0)
            }
            #expect(
                missing.isEmpty,
                "\(family): made by nothing but tests, or coming no more: \(missing)")
        }
    }

    @Test func `a number that is only read or matched is found`() {
        let declared = SourceFile(
            module: "M", path: "A.swift",
            text: "enum E {\n    case one = 1\n}\nlet x = E.one\n")
        let coding = SourceFile(
            module: "M", path: "ECoding.swift", text: "        case 1: self = .one\n")
        let matched = SourceFile(
            module: "M", path: "B.swift",
            text: "switch e {\n        case .one: 5\n        case .two,\n            .one: 6\n}\n")
        #expect(!Self.isMade("one", in: [declared, coding, matched]))
        let made = SourceFile(module: "M", path: "C.swift", text: "send(.one)\n")
        #expect(Self.isMade("one", in: [declared, coding, matched, made]))
    }

    /// The families of the registry with the names of their numbers.
    private static func families(of registry: String) -> [(name: String, numbers: [String])] {
        registry.matches(of: /NumberFamily\(\s*"([a-z ]+)",\s*\[([^\]]*)\]/).map { match in
            (
                String(match.output.1),
                match.output.2.matches(of: /\d+: "([^"]+)"/).map { String($0.output.1) }
            )
        }
    }

    /// Whether the number belongs to an operation or a question that is a type, which a file makes
    /// that neither declares it nor lists it in a table.
    private static func isType(_ number: String, in files: [SourceFile]) -> Bool {
        let words = number.split { $0 == " " || $0 == "-" }
        let name = words.map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
        for type in [name, name + "Ask"]
        where files.contains(where: { $0.path.hasSuffix("/\(type).swift") }) {
            return files.contains {
                !$0.path.hasSuffix("/\(type).swift")
                    && ($0.has(" \(type)(") || $0.has("(\(type)(") || $0.has(" \(type) {"))
            }
        }
        return false
    }

    /// Whether a file that neither declares the case nor decodes it uses its name, other than to
    /// match it.
    private static func isMade(_ number: String, in files: [SourceFile]) -> Bool {
        let words = number.split { $0 == " " || $0 == "-" }
        let name =
            Self.spellings[number]
            ?? words.dropFirst().reduce(String(words[0])) {
                $0 + $1.prefix(1).uppercased() + $1.dropFirst()
            }
        for file in files
        where !file.path.hasSuffix("Coding.swift") && !file.path.hasSuffix("Levels.swift") {
            let use = "." + name
            guard file.has(use) else { continue }
            let lines = file.text.split(separator: "\n").map {
                $0.drop { $0 == " " }
            }
            let declares = lines.contains { line in
                line.hasPrefix("case ")
                    && line.dropFirst(5).prefix { $0 != "=" && $0 != "(" }
                        .split { $0 == "," || $0 == " " || $0 == "`" }.contains { $0 == name }
            }
            if declares { continue }
            // A pattern may take several lines, and ends with its colon.
            var isPattern = false
            for line in lines where !line.hasPrefix("//") {
                if isPattern || line.hasPrefix("case ") && !line.has(":") {
                    isPattern = !line.has(":")
                    continue
                }
                if line.has(use), Self.uses(use, in: line) { return true }
            }
        }
        return false
    }

    private static func uses(_ use: String, in line: Substring) -> Bool {
        var rest = line
        // What stands behind a pattern's colon is code again.
        let head = /(?:\}? ?(?:else )?(?:if|guard|for|while) )?case\b[^:=]*[:=]/
        if let match = try? head.prefixMatch(in: rest) { rest = rest[match.range.upperBound...] }
        if line.hasPrefix("case "), rest.startIndex == line.startIndex { return false }
        while let range = rest.firstRange(of: use) {
            let next = rest[range.upperBound...].first
            if next?.isLetter != true, next?.isNumber != true { return true }
            rest = rest[range.upperBound...]
        }
        return false
    }
}
