/// The head of one HTTP/1.1 request, already held against RFC 9112.
package struct RequestHead: Sendable, Equatable {
    /// The method as received; by convention in upper case: `GET`, `POST`, …
    package var method: String
    /// The path as the client sent it, percent-encoding and all: signatures are made over it.
    package var path: String
    /// The text after the first `?`, as sent; nil without one.
    package var query: String?
    /// 0 or 1.
    package var minorVersion: Int
    package var headers: HeaderFields

    package init(
        method: String, path: String, query: String? = nil, minorVersion: Int = 1,
        headers: HeaderFields = HeaderFields()
    ) {
        self.method = method
        self.path = path
        self.query = query
        self.minorVersion = minorVersion
        self.headers = headers
    }
}
