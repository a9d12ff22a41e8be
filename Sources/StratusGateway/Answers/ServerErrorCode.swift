/// The fourteen codes a client may ever see. Closed: one widely used client stops its process on
/// any other string, two more fail to decode the answer.
package enum ServerErrorCode: String, Sendable, Hashable, CaseIterable {
    case accessDenied = "ACCESS_DENIED"
    case atomicError = "ATOMIC_ERROR"
    case authenticationFailed = "AUTHENTICATION_FAILED"
    case authenticationRequired = "AUTHENTICATION_REQUIRED"
    case badRequest = "BAD_REQUEST"
    case conflict = "CONFLICT"
    case exists = "EXISTS"
    case internalError = "INTERNAL_ERROR"
    case notFound = "NOT_FOUND"
    case quotaExceeded = "QUOTA_EXCEEDED"
    case throttled = "THROTTLED"
    case tryAgainLater = "TRY_AGAIN_LATER"
    case validatingReferenceError = "VALIDATING_REFERENCE_ERROR"
    case zoneNotFound = "ZONE_NOT_FOUND"

    /// The status of an answer that fails as a whole. As an item the code rides in a 200.
    package var status: Int {
        switch self {
        case .accessDenied: 403
        case .atomicError: 400
        case .authenticationFailed: 401
        case .authenticationRequired: 421
        case .badRequest: 400
        case .conflict: 409
        case .exists: 409
        case .internalError: 500
        case .notFound: 404
        case .quotaExceeded: 413
        case .throttled: 429
        case .tryAgainLater: 503
        case .validatingReferenceError: 412
        case .zoneNotFound: 404
        }
    }
}
