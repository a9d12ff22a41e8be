import StratusCompression
import StratusHTTP
import StratusModel

/// gzip for answers that are worth it, to clients that accept it (RFC 9110 §12.5.3).
enum ResponseCompression {
    /// Up to this size an answer is compressed on the spot: less than a millisecond.
    private static let immediateSizeMax = 32 << 10

    /// - Parameter sizeMin: nil switches it off.
    static func applied(
        to response: HTTPResponse, for head: RequestHead, sizeMin: ByteCount?
    ) -> HTTPResponse {
        guard let sizeMin, case .bytes(let bytes) = response.body, bytes.count >= sizeMin.raw,
            response.status == 200, Self.isCompressible(response)
        else { return response }
        var response = response
        // Caches must know that the answer depends on it, also when it is not compressed.
        response.headers.append("vary", "accept-encoding")
        guard AcceptEncoding.prefersGzip(head.headers) else { return response }
        response.headers.append("content-encoding", "gzip")
        response.body =
            bytes.count <= Self.immediateSizeMax
            ? .bytes(Gzip.compress(bytes)) : .stream(GzipBody(bytes), length: nil)
        return response
    }

    private static func isCompressible(_ response: HTTPResponse) -> Bool {
        // Ready lines are those of JSON.
        if response.ready != nil { return true }
        let headers = response.headers
        guard !headers.contains("content-encoding"), let type = headers["content-type"] else {
            return false
        }
        return type.hasPrefix("text/") || type.hasPrefix("application/json")
            || type.hasPrefix("application/javascript") || type.hasPrefix("image/svg+xml")
    }
}

/// A large answer compressed piece by piece as the client takes it, so that the loop is never kept.
///
/// `@unchecked`: pulled by one task at a time.
private final class GzipBody: ResponseBody, @unchecked Sendable {
    private static let pieceSize = 32 << 10

    private let bytes: Bytes
    private var at = 0
    private var encoder: GzipEncoder?

    init(_ bytes: Bytes) {
        self.bytes = bytes
        self.encoder = GzipEncoder()
    }

    func next() async throws -> Bytes? {
        var output: Bytes = []
        while output.isEmpty {
            guard var encoder = self.encoder.take() else { return nil }
            let end = min(self.at + Self.pieceSize, self.bytes.count)
            encoder.encode(self.bytes[self.at..<end], into: &output)
            self.at = end
            if end == self.bytes.count {
                encoder.finish(into: &output)
            } else {
                self.encoder = consume encoder
                // Others have their turn between two pieces.
                await Task.yield()
            }
        }
        return output
    }
}
