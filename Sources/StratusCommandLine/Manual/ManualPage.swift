/// A man page. Those of a program are made from its declaration, as its `--help` is.
package struct ManualPage: Sendable, Equatable {
    /// `stratusctl-cluster`.
    package var name: String
    package var section: Int
    package var text: String

    /// What stands in the margins of every page, and what the pages of one program share.
    package struct Edition: Sendable {
        package var version: String
        /// `2026-11-28`.
        package var date: String

        package init(version: String, date: String) {
            self.version = version
            self.date = date
        }
    }

    package init(name: String, section: Int, text: String) {
        self.name = name
        self.section = section
        self.text = text
    }

    package var fileName: String { "\(self.name).\(self.section)" }

    /// One page for the program, and one for each of its commands with all that is below it.
    ///
    /// - Parameter also: pages to refer to, such as `stratus.json5(5)`.
    package static func pages(
        of program: CommandDefinition, _ edition: Edition, also: [String] = []
    ) -> [ManualPage] {
        let writer = ManualWriter(program: program, edition: edition, also: also)
        return [writer.programPage()] + program.subcommands.map(writer.page)
    }
}

/// Writes the pages of one program.
private struct ManualWriter {
    let program: CommandDefinition
    let edition: ManualPage.Edition
    let also: [String]

    func programPage() -> ManualPage {
        let name = self.program.name
        var roff = self.begin(name, self.program.summary, [self.program])
        for command in self.program.subcommands {
            if command == self.program.subcommands.first { roff.macro("SH", "COMMANDS") }
            roff.macro("TP")
            roff.macro("B", command.name)
            roff.words(command.summary + ". See " + self.reference(to: command) + ".")
        }
        roff.macro("SH", "OPTIONS")
        self.list(self.program.options + CommandDefinition.common, in: &roff)
        self.examples(of: self.program, in: &roff)
        roff.macro("SH", "EXIT STATUS")
        for code in ExitCode.allCases {
            roff.macro("TP")
            roff.macro("B", "\(code.rawValue)")
            roff.words(code.meaning)
        }
        self.end(self.also + self.program.subcommands.map(self.reference), &roff)
        return ManualPage(name: name, section: 1, text: roff.text)
    }

    func page(of command: CommandDefinition) -> ManualPage {
        let name = "\(self.program.name)-\(command.name)"
        var roff = self.begin(name, command.summary, [self.program, command])
        self.arguments(of: command, in: &roff)
        if !command.options.isEmpty {
            roff.macro("SH", "OPTIONS")
            self.list(command.options, in: &roff)
        }
        self.examples(of: command, in: &roff)
        if !command.subcommands.isEmpty {
            roff.macro("SH", "COMMANDS")
            self.commands(below: [self.program, command], in: &roff)
        }
        self.end(["\(self.program.name)(1)"] + self.also, &roff)
        return ManualPage(name: name, section: 1, text: roff.text)
    }

    private func reference(to command: CommandDefinition) -> String {
        "\(self.program.name)-\(command.name)(1)"
    }

    private func begin(_ name: String, _ summary: String, _ chain: [CommandDefinition]) -> RoffText
    {
        var roff = RoffText()
        roff.title(name, 1, self.edition)
        roff.macro("SH", "NAME")
        roff.words("\(name) - \(summary)")
        roff.macro("SH", "SYNOPSIS")
        roff.words(HelpText.usage(chain))
        roff.macro("SH", "DESCRIPTION")
        let command = chain[chain.count - 1]
        roff.words(summary + ".")
        for paragraph in command.discussion {
            roff.macro("PP")
            roff.words(paragraph)
        }
        return roff
    }

    /// Every command below one, whatever its depth: each under the words that call it.
    private func commands(below chain: [CommandDefinition], in roff: inout RoffText) {
        for command in chain[chain.count - 1].subcommands {
            let here = chain + [command]
            roff.macro("SS", here.map(\.name).joined(separator: " "))
            roff.words(command.summary + ".")
            roff.macro("PP")
            roff.words("Usage: " + HelpText.usage(here))
            for paragraph in command.discussion {
                roff.macro("PP")
                roff.words(paragraph)
            }
            for positional in command.positionals {
                roff.macro("TP")
                roff.macro("I", positional.name)
                roff.words(positional.summary)
            }
            self.list(command.options, in: &roff)
            self.lines(of: command, isFirst: false, in: &roff)
            self.commands(below: here, in: &roff)
        }
    }

    private func arguments(of command: CommandDefinition, in roff: inout RoffText) {
        guard !command.positionals.isEmpty else { return }
        roff.macro("SH", "ARGUMENTS")
        for positional in command.positionals {
            roff.macro("TP")
            roff.macro("I", positional.name)
            roff.words(positional.summary)
        }
    }

    private func list(_ options: [OptionDefinition], in roff: inout RoffText) {
        for option in options {
            roff.macro("TP")
            roff.macro("B", HelpText.left(option))
            roff.words(HelpText.right(option))
        }
    }

    private func examples(of command: CommandDefinition, in roff: inout RoffText) {
        guard !command.examples.isEmpty else { return }
        roff.macro("SH", "EXAMPLES")
        self.lines(of: command, isFirst: true, in: &roff)
    }

    /// - Parameter isFirst: whether a heading stands above, which begins a paragraph by itself.
    private func lines(of command: CommandDefinition, isFirst: Bool, in roff: inout RoffText) {
        for (index, example) in command.examples.enumerated() {
            if index > 0 || !isFirst { roff.macro("PP") }
            roff.words(example.says + ":")
            roff.macro("PP")
            roff.macro("RS", "4")
            roff.macro("EX")
            roff.code(example.command)
            roff.macro("EE")
            roff.macro("RE")
        }
    }

    private func end(_ pages: [String], _ roff: inout RoffText) {
        guard !pages.isEmpty else { return }
        roff.macro("SH", "SEE ALSO")
        for (index, page) in pages.enumerated() {
            let name = String(page.prefix { $0 != "(" })
            let rest = page.dropFirst(name.count) + (index < pages.count - 1 ? "," : "")
            roff.macro("BR", name, String(rest))
        }
    }
}
