import StratusHTTP
import StratusRuntime

/// Cross-origin access (CORS) for scripts of other origins: the answer to a preflight, and the
/// headers every answer carries.
enum CrossOrigin {
    static func preflight(_ request: HTTPRequest) -> HTTPResponse {
        var response = HTTPResponse(
            status: 204,
            headers: [
                "Access-Control-Allow-Methods": "GET,POST,PUT,OPTIONS",
                "Access-Control-Allow-Headers":
                    "content-type,x-apple-cloudkit-request-keyid,"
                    + "x-apple-cloudkit-request-iso8601date,"
                    + "x-apple-cloudkit-request-signaturev1,x-stratus-request-id",
                "Access-Control-Max-Age": "86400",
            ])
        response.headers.set("X-Apple-Request-UUID", request.identity.uuid)
        Self.allow(request.head, in: &response.headers)
        return response
    }

    /// The origin is named rather than starred, so that a cache keeps the answers of two sites
    /// apart.
    static func allow(_ head: RequestHead, in headers: inout HeaderFields) {
        headers.set("Access-Control-Allow-Origin", head.headers["Origin"] ?? "*")
        headers.set(Self.always)
    }

    private static let always: HeaderFields = [
        "Vary": "Origin",
        "Access-Control-Expose-Headers":
            "X-Apple-Request-UUID,X-Apple-CloudKit-Web-Auth-Token,X-Apple-CloudKit-Session,"
            + "X-Responding-Instance,Via,Retry-After,RateLimit-Policy",
    ]
}
