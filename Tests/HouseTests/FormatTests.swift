import Testing

/// Every first byte above 1 is a flag that is described, or a format that came with a release.
@Suite struct FormatTests {
    let repository = Repository()

    /// The formats whose first byte says what they hold, by their file. `Docs/internals/levels.md`
    /// says what the values mean.
    static let flags: [String: [String]] = [
        "ClusterFormation.swift": ["ClusterFormation"],
        "ClusterSettings.swift": ["ClusterSettings"], "ClusterView.swift": ["ClusterView"],
        "ContainerDescriptor.swift": ["ContainerDescriptor"], "Device.swift": ["Device"],
        "MailRows.swift": ["OfficeRow", "RouteRow"], "RecordRow.swift": ["FeedRow", "RecordRow"],
        "Session.swift": ["Session"], "SubscriptionRows.swift": ["FollowerRow"],
    ]

    /// Files with a first byte above 1 that is neither.
    static let exempt: [String: String] = [
        "PeerEnvelopeCoding.swift": "the kind of a message",
        "RegisterState.swift": "the example of a next level",
    ]

    @Test func `a first byte above 1 is a flag of the list`() throws {
        var found: Set<String> = []
        for file in try self.repository.swiftFiles(under: "Sources")
        where LevelTests.modules.contains(file.module) && file.module != "StratusSimulation" {
            guard Self.hasOtherFormats(file.text) else { continue }
            let name = String(file.path.split(separator: "/").last ?? "")
            found.insert(name)
            #expect(
                Self.flags[name] != nil || Self.exempt[name] != nil,
                "\(file.path): see 'First bytes that are flags' in Docs/internals/levels.md")
        }
        #expect(found == Set(Self.flags.keys).union(Self.exempt.keys))
    }

    @Test func `the page says what each of them means`() throws {
        let page = try self.repository.text("Docs/internals/levels.md")
        for name in Self.flags.values.joined().sorted() {
            #expect(page.contains("| `\(name)` | 1 "), "\(name)")
        }
    }

    /// A version that is not the first has the level of a release, or is the example of the next.
    @Test func `every version above 1 has a level`() throws {
        let registry = try self.repository.text(
            "Sources/StratusModel/Levels/NumberRegistry.swift")
        let family =
            /NumberFamily\(\s*"([a-z ]+ version)",\s*\[([^\]]*)\](?:, since: \[([^\]]*)\])?/
        for match in registry.matches(of: family) {
            let versions = match.output.2.matches(of: /(\d+):/).map { String($0.output.1) }
            let levels = (match.output.3 ?? "").matches(of: /(\d+):/).map { String($0.output.1) }
            #expect(versions.dropFirst() == levels[...], "\(match.output.1)")
        }
    }

    @Test func `a second format is found, wherever it is written or read`() {
        for text in [
            "        var writer = ByteWriter(reserving: 8)\n"
                + "        writer.write(self.isNew ? 2 : 1 as UInt8)\n",
            "        let format = try reader.format(1...2)\n",
            "        guard version == 1 || version == 2 else {\n",
            "        guard (1...3).contains(format) else {\n",
            "        if format > 1 { self.size = try reader.varint() }\n",
        ] { #expect(Self.hasOtherFormats(text), "\(text)") }
        #expect(!Self.hasOtherFormats("        try reader.format(1)\n"))
        #expect(
            !Self.hasOtherFormats(
                "        var writer = ByteWriter()\n        writer.write(1 as UInt8)\n"
                    + "        writer.write(2 as UInt8)\n"))
    }

    /// Whether a text writes a first byte above 1, or compares a format or version with one.
    private static func hasOtherFormats(_ text: String) -> Bool {
        let read =
            /format\(1\.\.\.\d\)|\(1\.\.\.\d\)\.contains\((?:version|format)\)|\b(?:version|format) (?:==|<=) [2-9]\b|\b(?:version|format) > [1-9]\b/
        if text.contains(read) { return true }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: true)
        for (number, line) in lines.enumerated() where line.contains("= ByteWriter(") {
            let first = lines[(number + 1)...].prefix(7).first { $0.contains("writer.write(") }
            guard let first, first.contains("UInt8") || first.contains(" ? ") else { continue }
            let numbers = first.matches(of: /\b(\d+)\b/).compactMap { Int($0.output.1) }
            if numbers.contains(where: { $0 > 1 }) { return true }
        }
        return false
    }
}
