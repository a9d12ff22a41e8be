import Testing

@testable import StratusCommandLine

/// Man pages and completions of a small program. `Tests/Stages/76-package` gives those of the real
/// ones to man and to the shells.
@Suite struct ManualPageTests {
    static let program = CommandDefinition(
        "tool", "Keep things", discussion: ["It has a word like --this and 'that'."],
        options: [.value("node", .text("URL"), "Which node")],
        subcommands: [
            CommandDefinition("look", "Look around", positionals: [.init("FILE", .file, "a file")]),
            CommandDefinition(
                "box", "Boxes",
                options: [
                    .value("size", .choice(["small", "large"]), default: "small", "How large")
                ],
                subcommands: [
                    CommandDefinition(
                        "open", "Open one",
                        examples: [.init("tool box open --size large .", "At night")])
                ]),
        ])

    static let pages = ManualPage.pages(
        of: Self.program, .init(version: "1.2-x", date: "2026-11-28"), also: ["other(5)"])

    @Test func `a program has a page, and so has each of its commands`() {
        #expect(Self.pages.map(\.fileName) == ["tool.1", "tool-look.1", "tool-box.1"])
        for page in Self.pages {
            #expect(page.text.hasPrefix(".TH TOOL"))
            #expect(page.text.contains(" 1 2026-11-28 \"Stratus 1.2\\-x\" Stratus\n"))
        }
        #expect(Self.pages[0].text.contains(".B look\nLook around. See tool\\-look(1).\n"))
        #expect(Self.pages[0].text.contains(".BR other (5),\n.BR tool\\-look (1),\n"))
    }

    @Test func `a page holds every command below it, with options and examples`() {
        let text = Self.pages[2].text
        #expect(text.contains(".SS \"tool box open\"\nOpen one.\n"))
        #expect(text.contains(".B \"\\-\\-size small|large\"\nHow large (default: small)\n"))
        #expect(
            text.contains("At night:\n.PP\n.RS 4\n.EX\ntool box open \\-\\-size large .\n.EE\n"))
    }

    @Test(arguments: [
        ("--this 'that'", "\\-\\-this \\(aqthat\\(aq\n"), (".not a macro", "\\&.not a macro\n"),
        ("a\\b", "a\\eb\n"), ("a|b", "a|\\:b\n"),
    ])
    func `no text can be mistaken for a macro, and dashes stay dashes`(text: String, roff: String) {
        var writer = RoffText()
        writer.words(text)
        #expect(writer.text == roff)
    }

    @Test(arguments: CompletionScript.allCases)
    func `a shell's script knows every command, option and value`(shell: CompletionScript) {
        let text = shell.text(of: Self.program)
        for word in ["look", "box", "box open", "node", "help", "version", "size", "small large"] {
            #expect(text.contains(word), "\(word)")
        }
    }

    @Test func `a word in quotes stays one`() {
        #expect(CompletionTable.quoted("the node's") == "'the node'\\''s'")
    }
}
