/// The two tokens of a browser's or app's request, as its query string carries them.
package struct TokenCredentials: Sendable, Equatable {
    package var apiToken: String?
    package var webAuthToken: String?

    package init(query: String?) { self.init(QueryParameters(query)) }

    private init(_ parameters: QueryParameters) {
        self.apiToken = parameters["ckAPIToken"].flatMap { $0.isEmpty ? nil : $0 }
        // Older clients say ckSession; signed out they send the words null or undefined.
        self.webAuthToken =
            [parameters["ckWebAuthToken"], parameters["ckSession"]]
            .compactMap { $0.flatMap(Self.webAuthToken) }.first
    }

    /// Nil where a credential stands more than once: two readers could take two different ones.
    package init?(unambiguous query: String?) {
        let parameters = QueryParameters(query)
        for name in ["ckAPIToken", "ckWebAuthToken", "ckSession"]
        where parameters.count(of: name) > 1 {
            return nil
        }
        self.init(parameters)
        // Both names of the user's token at once: 1.x clients' null beside a real one is no conflict.
        let texts = ["ckWebAuthToken", "ckSession"].compactMap { name in
            parameters[name].flatMap(Self.webAuthToken)
        }
        if texts.count == 2, texts[0] != texts[1] { return nil }
    }

    /// 64 lower-case hexadecimal digits.
    package static func isWellFormed(apiToken: String) -> Bool {
        apiToken.utf8.count == 64
            && apiToken.utf8.allSatisfy {
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
                    || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
            }
    }

    /// One client percent-encodes twice, and a raw `+` may have become a space on its way.
    private static func webAuthToken(_ value: String) -> String? {
        let space = UInt8(ascii: " ")
        let spaced =
            value.utf8.contains(space)
            ? String(
                decoding: value.utf8.map { $0 == space ? UInt8(ascii: "+") : $0 }, as: UTF8.self)
            : value
        let token = PercentEncoding.decode(spaced[...]) ?? spaced
        return token.isEmpty || token == "null" || token == "undefined" ? nil : token
    }
}
