import Foundation

/// The notes under `Docs/changes`, and the changelog that they make.
struct ChangeNotes {
    /// The version under way: notes that lie in no folder belong to it.
    static let version = "0.1.0"
    static let folder = "Docs/changes"
    static let path = "CHANGELOG.md"

    let repository: Repository

    /// Every note of the version under way, in the order of their names.
    func current() throws -> [ChangeNote] { try self.notes(in: Self.folder) }

    /// The whole changelog: the version under way, then released ones, the newest first.
    func changelog() throws -> String {
        var page = """
            # Changelog

            Assembled from the notes in [Docs/changes](Docs/changes/README.md), which say how to write one and how to
            rewrite this page.

            """
        page += Self.section("\(Self.version), not released yet", try self.current())
        for version in try self.released() {
            page += Self.section(version, try self.notes(in: "\(Self.folder)/\(version)"))
        }
        return page
    }

    private func released() throws -> [String] {
        try self.names(in: Self.folder).filter {
            $0.wholeMatch(of: /[0-9]+\.[0-9]+\.[0-9]+/) != nil
        }
        .sorted { $0.compare($1, options: .numeric) == .orderedDescending }
    }

    private func notes(in folder: String) throws -> [ChangeNote] {
        try self.names(in: folder).filter { $0.hasSuffix(".md") && $0 != "README.md" }.sorted()
            .map {
                ChangeNote(
                    path: "\(folder)/\($0)", text: try self.repository.text("\(folder)/\($0)"))
            }
    }

    private func names(in folder: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(
            atPath: self.repository.root.appendingPathComponent(folder).path)
    }

    private static func section(_ title: String, _ notes: [ChangeNote]) -> String {
        var text = "\n## \(title)\n"
        for kind in ChangeNote.Kind.allCases {
            let own = notes.filter { $0.kind == kind }
            guard !own.isEmpty else { continue }
            text += "\n### \(kind.heading)\n\n"
            for note in own { text += note.entry }
        }
        return text
    }
}
