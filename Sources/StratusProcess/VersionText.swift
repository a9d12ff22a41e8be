import StratusHTTP

/// The text that `--version` prints: our version, those of linked libraries, and their flaws that
/// Stratus works around.
package struct VersionText: Sendable {
    /// Name and version of every C library in use, as the running process finds them.
    package var libraries: [(name: String, version: String)]
    /// Flaws in these versions that Stratus works around.
    package var knownFlaws: [(library: String, flaw: String)] = []
    /// Why the program cannot run with these libraries; empty when it can.
    package var problems: [String]

    package init(libraries: [(name: String, version: String)], problems: [String]) {
        self.libraries = libraries
        self.problems = problems
    }

    package func write(json: Bool) -> String { json ? self.json() : self.text() }

    private func text() -> String {
        var text = "Stratus \(Versions.stratus)\n"
        for library in self.libraries { text += "  \(library.name) \(library.version)\n" }
        for (library, flaw) in self.knownFlaws {
            text += "Worked around in \(library): \(flaw)\n"
        }
        for problem in self.problems { text += "Cannot run: \(problem)\n" }
        return text
    }

    private func json() -> String {
        var json = JSONWriter()
        json.beginObject()
        json.member("version", Versions.stratus)
        json.key("libraries")
        json.beginObject()
        for library in self.libraries { json.member(library.name, library.version) }
        json.endObject()
        json.key("workedAround")
        json.beginArray()
        for (library, flaw) in self.knownFlaws {
            json.beginObject()
            json.member("library", library)
            json.member("flaw", flaw)
            json.endObject()
        }
        json.endArray()
        json.endObject()
        return String(decoding: json.finish(), as: UTF8.self) + "\n"
    }
}
