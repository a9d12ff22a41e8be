import StratusHTTP
import StratusModel
import StratusRecords
import StratusRuntime

/// An error of WebDAV: a status, and the condition that was not met, where RFC 4918 names one.
struct DAVFailure: Error, Sendable, Equatable {
    var status: Int
    var reason: String
    /// The local name of an element of `DAV:`.
    var condition: String?
    /// The resource that the condition is about.
    var href: String?
    var headers: HeaderFields = [:]

    init(_ status: Int, _ reason: String, condition: String? = nil, href: String? = nil) {
        self.status = status
        self.reason = reason
        self.condition = condition
        self.href = href
    }

    init(_ error: ClientError) {
        let status =
            switch error.code {
            case .quotaExceeded: 507
            case .authenticationRequired: 401
            default: error.code.status
            }
        self.init(status, error.reason)
        if let retryAfter = error.retryAfter {
            self.headers.set("Retry-After", String(retryAfter))
        }
    }

    init(_ failure: AssetFailure) {
        switch failure {
        case .full: self.init(507, failure.error.reason, condition: "quota-not-exceeded")
        case .unsatisfiable(let size):
            self.init(failure.status, failure.error.reason)
            self.headers.set("Content-Range", ByteRange.contentRange(unsatisfiedOf: size))
        case .later: self.init(failure.error)
        default: self.init(failure.status, failure.error.reason)
        }
    }

    init(_ refusal: DocumentRefusal, subject: String) {
        let reason = ClientError(refusal, subject: subject).reason
        self =
            switch refusal {
            case .notFound, .versionNotFound: Self(404, reason)
            case .nameInvalid: Self(400, reason)
            case .staysLocal, .isRoot, .circle, .tooDeep: Self(403, reason)
            case .nameTaken, .stale, .versionsWait: Self(412, reason)
            case .folderNotFound, .notAFile, .tooManyVersions, .idInvalid, .atomicFailure:
                Self(409, reason)
            case .tooManyItems: Self(507, reason)
            case .contentTooLarge: Self(413, reason)
            case .databaseFull: Self(507, reason, condition: "quota-not-exceeded")
            case .locked:
                Self(423, "the item is locked", condition: "lock-token-submitted")
            case .notAPackage: Self(409, reason)
            case .lockNotFound: Self(409, reason, condition: "lock-token-matches-request-uri")
            // Sent a moment ago, and gone: the client sends it again.
            case .assetMissing: Self(503, reason)
            }
    }

    func response() -> HTTPResponse {
        var headers = self.headers
        guard let condition else {
            headers.set("Content-Type", "text/plain; charset=UTF-8")
            headers.set("X-Content-Type-Options", "nosniff")
            return HTTPResponse(
                status: self.status, headers: headers,
                body: .bytes(Bytes((self.reason + "\n").utf8)))
        }
        var inner = XMLElement(.dav(condition))
        if let href {
            inner.children = [.element(XMLElement(.dav("href"), children: [.text(href)]))]
        }
        headers.set("Content-Type", "application/xml; charset=UTF-8")
        return HTTPResponse(
            status: self.status, headers: headers,
            body: .bytes(
                XMLWriter.write(
                    XMLElement(.dav("error"), children: [.element(inner)]),
                    prefixes: [("DAV:", "D")])))
    }
}

extension XMLName {
    static func dav(_ local: String) -> XMLName { XMLName("DAV:", local) }
}
