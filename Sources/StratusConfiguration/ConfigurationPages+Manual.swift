package import StratusCommandLine

extension ConfigurationPages {
    /// `stratus.json5(5)`: every key of the configuration.
    package static func manual(_ edition: ManualPage.Edition) -> ManualPage {
        var roff = RoffText()
        roff.title("stratus.json5", 5, edition)
        roff.macro("SH", "NAME")
        roff.words("stratus.json5 - configuration of a Stratus node")
        roff.macro("SH", "DESCRIPTION")
        for (index, paragraph) in Self.rules.enumerated() {
            if index > 0 { roff.macro("PP") }
            roff.words(paragraph)
        }
        Self.section("KEYS AT THE TOP", "", nil, &roff)
        for section in ConfigurationKey.sections {
            Self.section(section.path, section.path, section.text, &roff)
        }
        roff.macro("SH", "FILES")
        roff.macro("TP")
        roff.macro("I", "/etc/stratus/stratus.json5")
        roff.words("The file that the packaged service reads.")
        roff.macro("SH", "SEE ALSO")
        roff.macro("BR", "stratus", "(1),")
        roff.macro("BR", "stratusctl", "(1)")
        return ManualPage(name: "stratus.json5", section: 5, text: roff.text)
    }

    private static let rules = [
        "A node that is started with 'stratus serve --config FILE' reads one JSON5 file. Most keys "
            + "have a default, so a file holds only what differs.",
        "Each of these overrides the ones before it: the default; the file, where a relative path "
            + "counts from the file's own directory; an environment variable, which is named with "
            + "each key; an option of the command line, where the command has one.",
        "'stratus config check FILE' checks a file without starting a node. A key that ends in "
            + "File names a file with a secret: its mode must be 0600 or 0640.",
        "On SIGHUP the node reads the file again. Keys that reload take effect at once, all others "
            + "wait for a restart.",
    ]

    private static func section(
        _ title: String, _ path: String, _ text: String?, _ roff: inout RoffText
    ) {
        roff.macro("SH", title)
        if let text { roff.words(text) }
        for key in ConfigurationKey.all where key.section == path {
            roff.macro("TP")
            roff.macro("B", key.path)
            roff.words(key.text)
            roff.macro("IP")
            let value = key.default.map { "Default: \($0.source)." } ?? "No default."
            roff.words(
                "Must be \(key.kind.allowed). \(value) Variable: \(key.environmentName)."
                    + (key.reloads ? " Reloads on SIGHUP." : ""))
        }
    }
}
