import StratusHTTP

/// What `--version` prints: ours, what is linked, and the flaws of that which Stratus works around.
package enum VersionText {
    package static func write(json: Bool) -> String { json ? Self.json() : Self.text() }

    private static func text() -> String {
        var text = "Stratus \(Versions.stratus)\n"
        for library in Versions.libraries { text += "  \(library.name) \(library.version)\n" }
        for (library, flaw) in Versions.knownFlaws {
            text += "Worked around in \(library): \(flaw)\n"
        }
        for problem in Versions.problems { text += "Cannot run: \(problem)\n" }
        return text
    }

    private static func json() -> String {
        var json = JSONWriter()
        json.beginObject()
        json.member("version", Versions.stratus)
        json.key("libraries")
        json.beginObject()
        for library in Versions.libraries { json.member(library.name, library.version) }
        json.endObject()
        json.key("workedAround")
        json.beginArray()
        for (library, flaw) in Versions.knownFlaws {
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
