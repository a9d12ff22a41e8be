import StratusHTTP
import Testing

@Suite struct CORSTests {
    static let listed = CORSPolicy(
        origins: .listed(["https://app.example.org", "https://*.example.net", "http://[::1]:8080"]))

    typealias Row = (name: String, origin: String?, allowed: String?)
    static let rows: [Row] = [
        ("no Origin", nil, nil),
        ("on the list", "https://app.example.org", "https://app.example.org"),
        ("on the list in capitals", "HTTPS://App.Example.ORG", "HTTPS://App.Example.ORG"),
        ("another scheme", "http://app.example.org", nil),
        ("another port", "https://app.example.org:8443", nil),
        ("another name", "https://example.org", nil),
        ("the listed name as a prefix", "https://app.example.org.evil.test", nil),
        ("the listed name as a suffix", "https://evilapp.example.org", nil),
        ("below a wildcard", "https://a.example.net", "https://a.example.net"),
        ("far below a wildcard", "https://a.b.example.net", "https://a.b.example.net"),
        ("the wildcard's own name", "https://example.net", nil),
        ("a name that ends alike", "https://evilexample.net", nil),
        ("below a wildcard by another scheme", "http://a.example.net", nil),
        ("below a wildcard at another port", "https://a.example.net:1", nil),
        ("an address", "http://[::1]:8080", "http://[::1]:8080"),
        ("G-20: null", "null", nil),
        ("G-20: a star", "*", nil),
        ("nothing", "", nil),
        ("a path", "https://app.example.org/", nil),
        ("a user below a wildcard", "https://a@b.example.net", nil),
        ("a slash below a wildcard", "https://evil.test/.example.net", nil),
        ("a line end below a wildcard", "https://a\r\nb.example.net", nil),
        ("two origins in one", "https://app.example.org https://a.example.net", nil),
    ]

    @Test(arguments: rows)
    func `G-20: an origin is allowed by the list and by nothing else`(row: Row) {
        var headers = HeaderFields()
        if let origin = row.origin { headers.append("Origin", origin) }
        let answer = Self.listed.responseHeaders(headers)
        #expect(answer["access-control-allow-origin"] == row.allowed, "\(row.name)")
        #expect(answer["vary"] == "Origin", "\(row.name)")
        #expect(answer["access-control-allow-credentials"] == nil)
        let preflight = Self.listed.preflightHeaders(headers)
        #expect(preflight["access-control-allow-origin"] == row.allowed, "\(row.name)")
        #expect(preflight.contains("access-control-allow-methods") == (row.allowed != nil))
        let decision = Self.listed.decide(headers)
        #expect((decision == .sameOrigin) == (row.origin == nil), "\(row.name)")
        #expect((decision == .refused) == (row.origin != nil && row.allowed == nil), "\(row.name)")
    }

    @Test func `G-20: any origin is a star, never a reflection, never with credentials`() {
        for origin in ["https://a.test", "null", "x"] {
            let answer = CORSPolicy().responseHeaders(["origin": origin])
            #expect(answer["access-control-allow-origin"] == "*")
            #expect(!answer.contains("access-control-allow-credentials"))
            #expect(!answer.contains("vary"))
            #expect(
                answer["access-control-expose-headers"]
                    == "X-Apple-Request-UUID,X-Apple-CloudKit-Web-Auth-Token,X-Responding-Instance,Via"
            )
        }
    }

    @Test func `two Origin lines are refused`() {
        let headers: HeaderFields = ["origin": "https://app.example.org", "Origin": "https://b"]
        #expect(Self.listed.decide(headers) == .refused)
        #expect(CORSPolicy().decide(headers) == .refused)
    }

    @Test func `a preflight is OPTIONS with an origin and a method asked for`() {
        let asks: HeaderFields = ["origin": "https://a", "Access-Control-Request-Method": "POST"]
        #expect(CORSPolicy.isPreflight(RequestHead(method: "OPTIONS", path: "/", headers: asks)))
        #expect(!CORSPolicy.isPreflight(RequestHead(method: "POST", path: "/", headers: asks)))
        #expect(
            !CORSPolicy.isPreflight(
                RequestHead(method: "OPTIONS", path: "/", headers: ["origin": "https://a"])))
    }

    @Test func `a preflight passes the headers of a server-to-server signature`() {
        let answer = CORSPolicy().preflightHeaders(["origin": "https://a"])
        #expect(answer["access-control-allow-methods"] == "GET,POST,PUT,OPTIONS")
        #expect(
            answer["access-control-allow-headers"]
                == "content-type,x-apple-cloudkit-request-keyid,"
                + "x-apple-cloudkit-request-iso8601date,x-apple-cloudkit-request-signaturev1")
        #expect(answer["access-control-max-age"] == "3600")
    }
}
