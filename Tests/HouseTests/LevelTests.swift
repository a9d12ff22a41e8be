import Testing

/// Everything that encodes for a disk or a peer says which feature level its readers need.
@Suite struct LevelTests {
    let repository = Repository()

    /// Modules whose encodings leave the process. The rest encodes for clients.
    static let modules: Set = [
        "StratusModel", "StratusCoding", "StratusRows", "StratusPlacement", "StratusConsensus",
        "StratusQuery",
        "StratusRecords", "StratusStorage", "StratusCluster", "StratusIdentity",
        "StratusDoubles", "StratusSimulation",
    ]

    /// Encoders without a level, and why.
    static let exempt: [String: String] = [
        "Base64URL": "text for people and clients",
        "CopyFrame": "what administrators send",
        "Askable": "a protocol: each question says its own level",
        "Submittable": "a protocol: each operation says its own level",
        "FormRow": "a protocol: each row says its own level",
        "BatchEncoder": "cannot be copied, so cannot conform: LogFormat says it",
    ]

    @Test func `every encoder declares its level`() throws {
        var files: [SourceFile] = []
        for file in try self.repository.swiftFiles(under: "Sources")
        where Self.modules.contains(file.module) { files.append(file) }
        let undeclared = Self.undeclared(in: files)
        #expect(
            undeclared.isEmpty,
            "not Levelled or FixedLevel, see Docs/internals/levels.md: \(undeclared)")
    }

    @Test func `an encoder without a level is found`() {
        let text = """
            package struct Row: Equatable {
                func encoded() -> Bytes { [] }
            }
            extension Other.Inner {
                package static func encode(_ value: Int) -> Bytes { [] }
            }
            struct Good: FixedLevel {
                func encodedRow() -> Bytes { [] }
            }
            extension Row: Sendable {}
            """
        let file = SourceFile(module: "StratusCoding", path: "x", text: text)
        #expect(Self.undeclared(in: [file]) == ["Inner in x", "Row in x"])
    }

    private static let kinds = [
        "struct ", "enum ", "class ", "actor ", "extension ", "protocol ",
    ]

    /// The types of encoders that no declaration calls levelled.
    private static func undeclared(in files: [SourceFile]) -> [String] {
        var declared: Set<String> = []
        var encoders: [(type: String, path: String)] = []
        let head =
            /(?:struct|enum|class|actor|extension|protocol) ([A-Za-z0-9_.]+)(?:<[^>]*>)?(?:: ([^{]*))?/
        let encoder = /func (encode|encoded[A-Za-z]*|encode[A-Z][A-Za-z]*)\(/
        for file in files {
            // The types around a line, by how deep each is indented.
            var around: [(depth: Int, name: String)] = []
            for line in file.text.split(separator: "\n", omittingEmptySubsequences: true) {
                let depth = line.prefix { $0 == " " }.count
                let code = line.dropFirst(depth)
                if code.hasPrefix("//") { continue }
                while let last = around.last, last.depth >= depth, code.first != "{" {
                    around.removeLast()
                }
                if Self.kinds.contains(where: { code.has($0) }), !code.hasPrefix("func"),
                    let match = try? head.firstMatch(in: code)
                {
                    let name = String(
                        match.output.1.split(separator: ".").last ?? match.output.1)
                    around.append((depth, name))
                    let conformances = (match.output.2 ?? "").split {
                        !$0.isLetter && !$0.isNumber
                    }
                    if conformances.contains("Levelled") || conformances.contains("FixedLevel") {
                        declared.insert(name)
                    }
                }
                if code.has("func encode"), code.contains(encoder), let type = around.last?.name {
                    encoders.append((type, file.path))
                }
            }
        }
        return Set(
            encoders.filter { !declared.contains($0.type) && Self.exempt[$0.type] == nil }
                .map { "\($0.type) in \($0.path)" }
        ).sorted()
    }
}
