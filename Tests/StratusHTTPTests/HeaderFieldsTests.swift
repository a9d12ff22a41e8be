import StratusHTTP
import Testing

@Suite struct HeaderFieldsTests {
    @Test func `names compare without regard to case, and the first value is the one`() {
        let headers: HeaderFields = ["Content-Type": "a", "content-type": "b", "X": "c"]
        #expect(headers["CONTENT-TYPE"] == "a")
        #expect(headers.values(of: "content-Type") == ["a", "b"])
        #expect(headers["content-typ"] == nil)
        #expect(headers.contains("x"))
        #expect(!headers.contains(""))
        #expect(headers.lines.map(\.name) == ["Content-Type", "content-type", "X"])
    }

    @Test func `setting replaces every line of the name and moves it last`() {
        var headers: HeaderFields = ["A": "1", "B": "2", "a": "3"]
        headers.set("A", "4")
        #expect(headers == ["B": "2", "A": "4"])
        headers.remove("b")
        #expect(headers == ["A": "4"])
        #expect(headers.count == 1)
    }

    @Test func `fields are equal by what they say, not by how they are held`() {
        var headers: HeaderFields = ["X": "gone", "A": "1"]
        headers.remove("X")
        #expect(headers == ["A": "1"])
        #expect(headers != ["a": "1"])
        #expect(headers != ["A": "1", "B": ""])
    }

    @Test func `a list is read over all its lines, trimmed, without empty members`() {
        let headers: HeaderFields = ["Accept": " a, b ,,c\t", "accept": "", "ACCEPT": "d e"]
        #expect(headers.list("accept") == ["a", "b", "c", "d e"])
    }
}
