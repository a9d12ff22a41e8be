import Foundation
import Testing

/// Notes have one form, and the changelog holds them all. To rewrite it after a change:
/// `STRATUS_TEST_REWRITE=1 swift test --filter ChangeNotesTests`.
@Suite struct ChangeNotesTests {
    let notes = ChangeNotes(repository: Repository())

    @Test func `every change note has the form of a note`() throws {
        let notes = try self.notes.current()
        #expect(notes.count > 50)
        for note in notes {
            for fault in note.faults { Issue.record("\(note.path): \(fault)") }
        }
    }

    @Test func `no two change notes share a number`() throws {
        let byNumber = Dictionary(grouping: try self.notes.current(), by: \.number)
        for (number, notes) in byNumber.sorted(by: { $0.key < $1.key }) where notes.count > 1 {
            Issue.record("\(number): \(notes.map(\.path))")
        }
    }

    @Test(arguments: [
        ("0001-a.md", "Added: A thing\n\nIt is there.\n"),
        ("0001-a.md", "Fix: A thing.\n\nIt is there.\n"),
        ("0001-a.md", "Fix: A thing\nIt is there.\n"),
        ("0001-a.md", "Fix: A thing\n\nIt was not. It is. It stays. Do nothing.\n"),
        ("0001-a.md", "Fix: A thing\n\n- It is there.\n"),
        ("0001-a.md", "Fix: A thing\n\nIt is there.\n\nIt stays.\n"),
        ("1-a.md", "Fix: A thing\n\nIt is there.\n"),
        (
            "0001-a.md",
            "Fix: A thing\n\n" + String(repeating: "It is\n", count: ChangeNote.wordsMax)
                + "there.\n"
        ),
    ])
    func `a note of another form is found`(path: String, text: String) {
        #expect(ChangeNote(path: path, text: text).faults.count == 1)
    }

    @Test func `full stops inside names end no sentence`() {
        let text = "Fix: A thing\n\nSet `a.b. c.` to 1.5 in 0.1.0. It is e.g.there. It stays.\n"
        #expect(ChangeNote(path: "0001-a.md", text: text).faults.isEmpty)
    }

    @Test func `the changelog is assembled from the notes`() throws {
        let changelog = try self.notes.changelog()
        let url = self.notes.repository.root.appendingPathComponent(ChangeNotes.path)
        if ProcessInfo.processInfo.environment["STRATUS_TEST_REWRITE"] != nil {
            try Data(changelog.utf8).write(to: url)
        }
        #expect(
            try self.notes.repository.text(ChangeNotes.path) == changelog,
            "rewrite it: STRATUS_TEST_REWRITE=1 swift test --filter ChangeNotesTests")
    }

    @Test func `the changelog's version is the program's`() throws {
        let versions = try self.notes.repository.text("Sources/StratusProcess/Versions.swift")
        #expect(versions.contains("stratus = \"\(ChangeNotes.version)"))
    }
}
