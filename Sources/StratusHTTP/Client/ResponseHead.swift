/// The head of one HTTP/1.1 answer.
package struct ResponseHead: Sendable, Equatable {
    package var status: Int
    /// 0 or 1.
    package var minorVersion: Int
    package var headers: HeaderFields

    package init(status: Int, minorVersion: Int = 1, headers: HeaderFields = HeaderFields()) {
        self.status = status
        self.minorVersion = minorVersion
        self.headers = headers
    }
}
