import StratusHTTP
import StratusModel

/// The two tokens of a browser's or app's request, as its query string carries them.
package struct TokenCredentials: Sendable, Equatable {
    package var apiToken: String?
    package var webAuthToken: String?

    package init(query: String?) {
        let (apiToken, texts) = Self.read(URLQuery(ofClient: query))
        self.init(apiToken: apiToken, webAuthToken: texts.token ?? texts.session)
    }

    private init(apiToken: String?, webAuthToken: String?) {
        self.apiToken = apiToken
        self.webAuthToken = webAuthToken
    }

    /// Fails if a credential stands more than once: two readers could take two different
    /// ones.
    package init?(unambiguous query: String?) {
        let parameters = URLQuery(ofClient: query)
        guard parameters.count(of: "ckAPIToken") <= 1, parameters.count(of: "ckWebAuthToken") <= 1,
            parameters.count(of: "ckSession") <= 1
        else { return nil }
        let (apiToken, texts) = Self.read(parameters)
        // Both names of the user's token together: a null from 1.x clients beside a real token is
        // no conflict.
        if let token = texts.token, let session = texts.session, token != session { return nil }
        self.init(apiToken: apiToken, webAuthToken: texts.token ?? texts.session)
    }

    /// Older clients say ckSession; signed out they send the words null or undefined.
    private static func read(
        _ parameters: URLQuery
    ) -> (apiToken: String?, texts: (token: String?, session: String?)) {
        let apiToken = parameters["ckAPIToken"].flatMap { $0.isEmpty ? nil : $0 }
        let token = parameters["ckWebAuthToken"].flatMap(Self.webAuthToken)
        return (apiToken, (token, parameters["ckSession"].flatMap(Self.webAuthToken)))
    }

    /// 64 lower-case hexadecimal digits.
    package static func isWellFormed(apiToken: String) -> Bool {
        apiToken.utf8.count == 64
            && apiToken.holdsOnlyBytes {
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
        let token = PercentCoding.decode(spaced) ?? spaced
        return token.isEmpty || token == "null" || token == "undefined" ? nil : token
    }
}
