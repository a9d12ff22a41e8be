import StratusHTTP
import StratusModel
import Testing

/// The field `If` of WebDAV.
@Suite struct IfHeaderTests {
    private func condition(_ state: IfHeader.State, not: Bool = false) -> IfHeader.Condition {
        var parsed = IfHeader("(<x>)")?.lists[0].conditions[0]
        parsed?.isNegated = not
        parsed?.state = state
        return parsed!
    }

    @Test func `lists of tokens and tags are read`() throws {
        let plain = try #require(IfHeader("(<urn:a> [\"1\"]) (Not <urn:b>[W/\"x y\"])"))
        #expect(plain.lists.map(\.resource) == [nil, nil])
        #expect(
            plain.lists[0].conditions
                == [self.condition(.token("urn:a")), self.condition(.tag("\"1\""))])
        #expect(
            plain.lists[1].conditions
                == [
                    self.condition(.token("urn:b"), not: true),
                    self.condition(.tag("W/\"x y\"")),
                ])
        #expect(plain.tokens == ["urn:a", "urn:b"])
        let tagged = try #require(
            IfHeader("<http://h/a> (<urn:a>) (not<DAV:no-lock>)\t</b> ([\"]\"])"))
        #expect(tagged.lists.map(\.resource) == ["http://h/a", "http://h/a", "/b"])
        #expect(tagged.lists[2].conditions == [self.condition(.tag("\"]\""))])
    }

    @Test(arguments: [
        "", " ", "()", "(", ")", "(<a>", "(<a)", "(<>)", "(< a>)", "<a>", "<a> <b> (<c>)",
        "(<a>) <b> (<c>)", "<a> (<b>) <c>", "([1])", "([\"1)", "([\"1\")", "([w/\"1\"])",
        "([W\"1\"])", "(Not)", "(Not Not <a>)", "(Nope <a>)", "a", "(<a>) x", "(<a\u{1}>)",
        "([\"\u{1}\"])", "<a>(<b>)<", "((<a>))",
    ])
    func `what is no such field is refused`(_ text: String) {
        #expect(IfHeader(text) == nil)
    }

    @Test func `its size and its conditions are bounded`() {
        let many = { (count: Int) in "(" + String(repeating: "<a>", count: count) + ")" }
        #expect(IfHeader(many(IfHeader.conditionCountMax)) != nil)
        #expect(IfHeader(many(IfHeader.conditionCountMax + 1)) == nil)
        #expect(IfHeader("(<" + String(repeating: "a", count: IfHeader.sizeMax) + ">)") == nil)
    }
}
