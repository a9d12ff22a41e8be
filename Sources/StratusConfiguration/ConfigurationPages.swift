/// The two pages made from the table of keys: `Config/stratus.example.json5` and
/// `Docs/reference/configuration.md`. A test keeps them in step.
package enum ConfigurationPages {
    /// A file to start from: it parses, sets nothing, and shows every key with its default.
    package static func example() -> String {
        var lines = [
            "// Stratus: every key, with its default. Lines that begin with '//' and a space explain.",
            "// To change a value, remove the '//' in front of its key. The file is JSON5; 'stratus",
            "// config check FILE' says what is wrong with it.",
            "{",
        ]
        for key in ConfigurationKey.all where key.section.isEmpty {
            lines += Self.exampleKey(key, depth: 1)
        }
        for section in ConfigurationKey.sections where !section.path.contains(".") {
            lines += Self.exampleSection(section.path, section.text, depth: 1)
        }
        return lines.joined(separator: "\n") + "\n}\n"
    }

    private static func exampleSection(_ path: String, _ text: String, depth: Int) -> [String] {
        let margin = String(repeating: "    ", count: depth)
        let name = path.split(separator: ".").last.map(String.init) ?? path
        var lines = [""] + Self.comment(text, depth: depth) + ["\(margin)\(name): {"]
        for key in ConfigurationKey.all where key.section == path {
            lines += Self.exampleKey(key, depth: depth + 1)
        }
        for section in ConfigurationKey.sections where section.path.hasPrefix(path + ".") {
            lines += Self.exampleSection(section.path, section.text, depth: depth + 1)
        }
        return lines + ["\(margin)},"]
    }

    private static func exampleKey(_ key: ConfigurationKey, depth: Int) -> [String] {
        let margin = String(repeating: "    ", count: depth)
        return [""] + Self.comment(key.text, depth: depth)
            + ["\(margin)//\(key.name): \(key.default?.source ?? "null"),"]
    }

    private static func comment(_ text: String, depth: Int) -> [String] {
        let margin = String(repeating: "    ", count: depth) + "// "
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ") {
            if !line.isEmpty, margin.count + line.count + 1 + word.count > 100 {
                lines.append(margin + line)
                line = ""
            }
            line += (line.isEmpty ? "" : " ") + word
        }
        return lines + [margin + line]
    }

    package static func reference() -> String {
        var text = """
            # Configuration

            A node reads one JSON5 file: `stratus serve --config FILE`. Most keys have a default, so a file \
            holds only what differs. This page and the commented [example](../../Config/stratus.example.json5) \
            are made from the table in the code.

            ## How values are found

            Each of these overrides the ones before it:

            1. The default.
            2. The file. A relative path in it counts from the file's own directory.
            3. An environment variable: `STRATUS_` and the key in capitals, with `_` for the dots and \
            before the capitals of the key. Lists are separated by commas. A `STRATUS_…` variable that \
            names no key is reported and ignored, because orchestrators set variables of their own.
            4. An option of the command line, where the command has one.

            `stratus config check FILE` checks a file against all rules without starting a node. Its exit \
            code is 0, or 78 with one line for each problem. `stratus config print --config FILE` shows \
            every value and where it comes from. A node does not start with an unknown key, a value of \
            the wrong type or outside its range, a missing file, or a contradiction between keys:

            ```text
            stratus.json5:4:9: log.levle: there is no such key; did you mean 'log.level'?
            ```

            **Secrets** never stand in the file: keys ending in `File` name a file that holds one. Such \
            a file must not be readable by everybody or writable by its group: mode 0600 or 0640.

            **SIGHUP** makes the node read the file again. A changed key marked *Reloads on SIGHUP* takes \
            effect at once. A change to any other key is reported in the log and waits for a restart. If \
            the file has a problem, nothing changes and the node continues.


            """
        text += Self.table("At the top", nil, ConfigurationKey.all.filter { $0.section.isEmpty })
        for section in ConfigurationKey.sections {
            text += Self.table(
                "`\(section.path)`", section.text,
                ConfigurationKey.all.filter { $0.section == section.path })
        }
        return text
    }

    private static func table(_ title: String, _ text: String?, _ keys: [ConfigurationKey])
        -> String
    {
        var out = "## \(title)\n\n"
        if let text { out += text + "\n\n" }
        for key in keys {
            out += "### `\(key.path)`\n\n\(key.text)\n\n"
            out += "- Must be \(key.kind.allowed).\n"
            out += "- Default: \(key.default.map { "`\($0.source)`" } ?? "none").\n"
            out += "- Variable: `\(key.environmentName)`."
            out += key.reloads ? " Reloads on SIGHUP.\n\n" : "\n\n"
        }
        return out
    }
}
