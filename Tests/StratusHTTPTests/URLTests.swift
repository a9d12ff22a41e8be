import StratusHTTP
import Testing

@Suite struct URLTests {
    static let paths: [(String, [String]?)] = [
        ("/", [""]), ("/a", ["a"]), ("/a/", ["a", ""]), ("/a//b", ["a", "", "b"]),
        ("/a%20b", ["a b"]), ("/a+b", ["a+b"]), ("/a%2Fb/c", ["a/b", "c"]),
        ("/%E2%82%AC", ["€"]), ("/..", [".."]), ("/%2e%2E", [".."]), ("/a%00b", ["a\0b"]),
        ("/${f}", ["${f}"]), ("/$%7Bf%7D", ["${f}"]), ("/%252F", ["%2F"]),
        ("", nil), ("a", nil), ("*", nil), ("/%", nil), ("/%2", nil), ("/%2G", nil), ("/%G2", nil),
        ("/%%", nil), ("/%C0%80", nil), ("/%ED%A0%80", nil), ("/%FF", nil), ("/%C3/%A4", nil),
    ]

    @Test(arguments: paths)
    func `a path is taken apart first and decoded after`(path: String, segments: [String]?) {
        #expect(URLPath(path)?.segments == segments, "\(path)")
    }

    static let queries: [(String?, [(String, String)]?)] = [
        (nil, []), ("", []), ("&", []), ("a", [("a", "")]), ("a=", [("a", "")]),
        ("=b", [("", "b")]), ("a=b&c=d", [("a", "b"), ("c", "d")]),
        ("a=1&a=2", [("a", "1"), ("a", "2")]), ("a=b=c", [("a", "b=c")]),
        ("a=b+c", [("a", "b c")]), ("a=b%2Bc", [("a", "b+c")]), ("a%3Db=c", [("a=b", "c")]),
        ("a=%26", [("a", "&")]), ("a;b", [("a;b", "")]), ("&&a=b&", [("a", "b")]),
        ("a=%C3%A4", [("a", "ä")]), ("a=%2", nil), ("%=a", nil), ("a=%FF", nil), ("a=b&c=%", nil),
    ]

    @Test(arguments: queries)
    func `a query keeps order and repetitions`(query: String?, items: [(String, String)]?) {
        let read = URLQuery(query)?.items.map { "\($0.name)=\($0.value)" }
        #expect(read == items?.map { "\($0.0)=\($0.1)" }, "\(query ?? "nil")")
    }

    @Test func `the first of a repeated name is found by it`() throws {
        let query = try #require(URLQuery("a=1&b=2&a=3"))
        #expect(query["a"] == "1")
        #expect(query.values(of: "a") == ["1", "3"])
        #expect(query["c"] == nil)
    }

    @Test func `whatever is encoded decodes to itself`() {
        for text in ["", "plain", "a b+c%", "/?#[]@!$&'()*+,;=", "€ä\0\r\n", "~-._"] {
            let encoded = PercentCoding.encode(text)
            #expect(PercentCoding.decode(encoded) == text)
            #expect(PercentCoding.decode(encoded, plusIsSpace: true) == text)
        }
        #expect(PercentCoding.encode("a b/c") == "a%20b%2Fc")
    }
}
