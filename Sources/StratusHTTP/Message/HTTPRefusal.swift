/// Why a message is not taken. After every one of them the connection closes: where framing is in
/// doubt, nothing that follows may be read as a request.
package enum HTTPRefusal: String, Error, Sendable, Equatable, CaseIterable {
    case requestLine = "malformed request line"
    case target = "malformed request target"
    case requestLineTooLong = "request line too long"
    case method = "method unknown"
    case version = "HTTP version not supported"
    case lineEnd = "a line that does not end with CR LF"
    case headerLine = "malformed header line"
    case foldedHeader = "header line folded"
    case headersTooLarge = "header too large"
    case tooManyHeaders = "too many header lines"
    case host = "Host missing, repeated, malformed or not the target's"
    case contentLength = "malformed or repeated Content-Length"
    case bothLengths = "Content-Length beside Transfer-Encoding"
    case transferEncoding = "malformed or repeated Transfer-Encoding"
    case transferCoding = "transfer coding unknown"
    case contentCoding = "request body compressed"
    case expectation = "expectation not supported"
    case bodyTooLarge = "body too large"
    case chunk = "malformed chunk"
    case chunkOverhead = "too much chunk framing"
    case trailer = "malformed or oversized trailer"
    case headersTooSlow = "header not received in time"
    case bodyTooSlow = "body not received in time"

    package var status: Int {
        switch self {
        case .requestLine, .target, .lineEnd, .headerLine, .foldedHeader, .host, .contentLength,
            .bothLengths, .transferEncoding, .chunk, .chunkOverhead, .trailer:
            400
        case .headersTooSlow, .bodyTooSlow: 408
        case .bodyTooLarge: 413
        case .requestLineTooLong: 414
        case .contentCoding: 415
        case .expectation: 417
        case .headersTooLarge, .tooManyHeaders: 431
        case .method, .transferCoding: 501
        case .version: 505
        }
    }
}
