import StratusHTTP
import StratusModel
import StratusRuntime

/// The answer of an operation.
enum GatewayAnswer: Sendable {
    /// One object, as it is sent.
    case json(Bytes)
    /// Bytes that are no object, and their headers.
    case file(Bytes, HeaderFields)
    /// An answer with a status of its own.
    case whole(HTTPResponse)
    /// Pulled as fast as the client takes it. What was read for it is counted until its end.
    case stream(any ResponseBody, length: Int?, contentType: String)
    /// Server-Sent Events, for as long as there are any. The body counts what it holds.
    case events(any ResponseBody)
    /// Comes when something has happened. What the request is made of is not held until then.
    case later(@Sendable () async throws -> GatewayAnswer)
    /// There is nothing, and there will be nothing.
    case nothing
}

extension HTTPResponse {
    /// The answer as every surface that tells something of a person sends it.
    func finished(_ request: HTTPRequest) -> HTTPResponse {
        var response = self
        // What one person was told is nobody else's to keep.
        response.headers.set("Cache-Control", "no-store")
        response.headers.set("X-Apple-Request-UUID", request.identity.uuid)
        return response
    }
}
